import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { currentExecutor, table } from '../../database/connection';
import { documentsOf } from '../../database/tables/internal-types';
import {
  CAME_FROM_ANOTHER_SITE,
  isFromAnotherSite,
  siteInstance,
} from '../../database/site-instance';
import { errorText } from '../../runtime/text';
import { nextTurn } from '../../runtime/event-loop';
import { getDeliveryStore } from '../deliveries/store';
import { repairSubscriptionIndex } from '../subscription-index';
import { WEBHOOK, type WebhookRow, WEBHOOKS_TABLE } from '../tables';

const END_AT_ONCE = 1000;
const WEBHOOKS_AT_ONCE = 100;

/** Webhooks that an import or a transfer brought and that were not looked after yet. */
const arrived = (strapi: Core.Strapi, executor: Knex): Knex.QueryBuilder =>
  table(strapi, executor, WEBHOOKS_TABLE).where((any) => {
    any.whereNot('origin_id', executor.ref('id')).orWhere((stranger) => {
      stranger.whereNot('site_instance', siteInstance(strapi)).andWhere((open) => {
        open
          .where({ active: true })
          .orWhereNull('disabled_reason')
          .orWhereNot('disabled_reason', CAME_FROM_ANOTHER_SITE);
      });
    });
  });

/** What waited when it was exported is not sent by an import: the original did, or will. */
const endWaiting = async (strapi: Core.Strapi, webhookIds: readonly number[]): Promise<void> => {
  while ((await getDeliveryStore(strapi).endImported(webhookIds, END_AT_ONCE)) > 0)
    await nextTurn();
};

const settle = async (strapi: Core.Strapi, rows: readonly WebhookRow[]): Promise<void> => {
  const ids = rows.map(({ id }) => Number(id));
  await endWaiting(strapi, ids);
  const executor = (await currentExecutor(strapi)) as Knex;
  const webhooks = () => table(strapi, executor, WEBHOOKS_TABLE);
  const strangers = rows.filter((row) => isFromAnotherSite(strapi, row));
  for (const row of strangers) {
    const off = {
      active: false,
      disabled_reason: CAME_FROM_ANOTHER_SITE,
      disabled_at: Date.now(),
    };
    await documentsOf(strapi, WEBHOOK).update({ documentId: row.document_id, data: off });
    // Whatever a lifecycle of the site's made of it.
    await webhooks().where({ id: row.id }).update(off);
  }
  if (strangers.length > 0) {
    const names = strangers.map(({ id, name }) => `${id} ${JSON.stringify(name)}`).join(', ');
    strapi.log.warn(
      `switchboard: switched off, because they came from another site: webhooks ${names}. Switch on ` +
        'those that are to send from here.'
    );
  }
  await webhooks()
    .whereIn('id', ids)
    .update({ origin_id: executor.ref('id') });
};

const settleAll = async (strapi: Core.Strapi): Promise<void> => {
  for (;;) {
    const executor = (await currentExecutor(strapi)) as Knex;
    const rows = (await arrived(strapi, executor)
      .select('*')
      .orderBy('id')
      .limit(WEBHOOKS_AT_ONCE)) as WebhookRow[];
    if (rows.length === 0) break;
    await settle(strapi, rows);
    await nextTurn();
  }
  await repairSubscriptionIndex(strapi);
};

const settling = new WeakMap<Core.Strapi, Promise<void>>();

/**
 * Switches off what came from another site, ends what waited with webhooks that an import brought,
 * and brings them into the index of subscriptions. A transfer may reach a site that runs, so this is asked at boot, by the clock, and before
 * somebody looks at webhooks; publishing and sending judge each webhook's stamp by themselves.
 */
export const settleArrivedWebhooks = (strapi: Core.Strapi): Promise<void> => {
  // Who asks within a transaction must not wait for work that waits for the transaction's end.
  if (strapi.db.inTransaction()) return settleAll(strapi);
  const running = settling.get(strapi);
  if (running) return running;
  const work = settleAll(strapi).finally(() => settling.delete(strapi));
  settling.set(strapi, work);
  return work;
};

/** The same by the clock: what goes wrong now (the site may be stopping) is tried again. */
export const settleArrivedWebhooksLater = async (strapi: Core.Strapi): Promise<void> => {
  try {
    await settleArrivedWebhooks(strapi);
  } catch (error) {
    strapi.log.debug(
      `switchboard: imported webhooks could not be switched off: ${errorText(error)}`
    );
  }
};
