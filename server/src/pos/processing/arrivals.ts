import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { currentExecutor, inTransaction, table } from '../../database/connection';
import { documentsOf } from '../../database/tables/internal-types';
import {
  CAME_FROM_ANOTHER_SITE,
  isFromAnotherSite,
  siteInstance,
} from '../../database/site-instance';
import { CONNECTION, type ConnectionRow, CONNECTIONS_TABLE } from '../tables';

/** Whether an import or a transfer brought this connection, and it was not looked after yet. */
export const hasArrived = (strapi: Core.Strapi, row: ConnectionRow): boolean =>
  isFromAnotherSite(strapi, row)
    ? Boolean(row.active) || row.disabled_reason !== CAME_FROM_ANOTHER_SITE
    : row.origin_id !== null && Number(row.origin_id) !== Number(row.id);

/**
 * Its own site gives a connection its id back: records and the ids that were taken hang on it, and
 * under another id a till's record that was applied would be applied again.
 */
const giveIdBack = async (strapi: Core.Strapi, row: ConnectionRow): Promise<void> => {
  await inTransaction(strapi, async ({ trx }) => {
    const rows = () => table(strapi, trx, CONNECTIONS_TABLE);
    const taken = (await rows().where({ id: row.origin_id }).first()) as ConnectionRow | undefined;
    if (taken) await rows().where({ id: row.id }).update({ origin_id: row.id });
    else await rows().where({ id: row.id }).update({ id: row.origin_id });
  });
};

/** @returns whether it was switched off. */
const settle = async (strapi: Core.Strapi, row: ConnectionRow): Promise<boolean> => {
  if (!isFromAnotherSite(strapi, row)) {
    await giveIdBack(strapi, row);
    return false;
  }
  await documentsOf(strapi, CONNECTION).update({
    documentId: row.document_id,
    data: {
      origin_id: Number(row.id),
      active: false,
      disabled_reason: CAME_FROM_ANOTHER_SITE,
    },
  });
  return true;
};

/**
 * Switches off connections that came from another site, and gives those of this one that an import
 * brought back their ids. Asked at boot, before somebody looks at connections, and when a till sends.
 */
export const settleArrivedConnections = async (strapi: Core.Strapi): Promise<void> => {
  const executor = (await currentExecutor(strapi)) as Knex;
  const rows = (await table(strapi, executor, CONNECTIONS_TABLE)
    .whereNot('origin_id', executor.ref('id'))
    .orWhereNot('site_instance', siteInstance(strapi))
    .orderBy('id')) as ConnectionRow[];
  const off: string[] = [];
  for (const row of rows) {
    if (!hasArrived(strapi, row)) continue;
    if (await settle(strapi, row)) off.push(`${row.id} ${JSON.stringify(row.name)}`);
  }
  if (off.length === 0) return;
  strapi.log.warn(
    `switchboard: switched off, because they came from another site: connections ${off.join(', ')}. ` +
      'Switch on those whose tills are to report here.'
  );
};
