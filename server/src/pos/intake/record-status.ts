import type { Core } from '@strapi/strapi';
import type { Context } from 'koa';
import type { Knex } from 'knex';
import type { RecordStatus, TillMovement } from '../../../../shared/contracts/till-answers';
import { currentExecutor, type Executor, table } from '../../database/connection';
import { createTimeSlice } from '../../runtime/event-loop';
import { isoTime } from '../../runtime/iso-time';
import type { LedgerLine } from '../../stock/ledger';
import { ITEMS_TABLE, LEVELS_TABLE, MOVEMENTS_TABLE } from '../../stock/tables';
import { flagsOf } from '../serialize';
import { type ConnectionRow, mappedLocations, type PosEventRow, POS_EVENTS_TABLE } from '../tables';
import { answer } from './answers';
import { hasScope } from './record-checks';
import { externalDigest } from './submission';
import { type TellingRules, toldMovement, toldMovements } from './told-movements';

const COLUMNS = [
  'id',
  'kind',
  'external_digest',
  'state',
  'mode',
  'flags',
  'settled_flags',
  'payload_mismatch',
  'received_at',
] as const satisfies readonly (keyof PosEventRow)[];

type Found = Pick<PosEventRow, (typeof COLUMNS)[number]>;

interface MovedRow {
  sku: string;
  location_id: number;
  quantity: number | string;
  effect: number | string;
  quantity_after: number | string;
}

const movementsOf = async (
  strapi: Core.Strapi,
  executor: Executor,
  event: number,
  rules: TellingRules
): Promise<TillMovement[]> => {
  const schema = strapi.db.getSchemaName();
  const named = (name: string): string => (schema ? `${schema}.${name}` : name);
  const rows = (await (executor as Knex)(`${named(MOVEMENTS_TABLE)} as m`)
    .join(`${named(LEVELS_TABLE)} as l`, 'l.id', 'm.level_id')
    .join(`${named(ITEMS_TABLE)} as i`, 'i.id', 'l.item_id')
    .select('i.sku', 'l.location_id', 'm.quantity', 'm.effect', 'm.quantity_after')
    .where('m.event_id', event)
    .orderBy('m.id')) as MovedRow[];
  return rows.map((row) =>
    toldMovement(
      row.sku,
      {
        location: Number(row.location_id),
        quantity: Number(row.quantity),
        effect: Number(row.effect),
        quantityAfter: Number(row.quantity_after),
      },
      rules
    )
  );
};

const simulatedOf = async (
  strapi: Core.Strapi,
  executor: Executor,
  event: number,
  rules: TellingRules
): Promise<TillMovement[]> => {
  const row = (await table(strapi, executor, POS_EVENTS_TABLE)
    .select('simulated')
    .where({ id: event })
    .first()) as Pick<PosEventRow, 'simulated'> | undefined;
  const lines = JSON.parse(row?.simulated ?? '[]') as LedgerLine[];
  return toldMovements(strapi, executor, lines, rules);
};

/**
 * Answers what became of records of the connection, in the order asked
 * (docs/tills.md#what-became-of-a-record). Written as text, a record after the other: a hundred of a
 * thousand lines each would hold the event loop.
 */
export const answerStatus = async (
  strapi: Core.Strapi,
  ctx: Context,
  connection: ConnectionRow,
  ids: readonly string[]
): Promise<void> => {
  const executor = await currentExecutor(strapi);
  const rules: TellingRules = {
    mapped: mappedLocations(connection),
    withQuantity: hasScope(connection, 'stock:read'),
  };
  const rows = (await table(strapi, executor, POS_EVENTS_TABLE)
    .select(...COLUMNS)
    .where({ connection_id: connection.id })
    .whereIn('external_digest', [...new Set(ids.map(externalDigest))])) as Found[];
  const byDigest = new Map(rows.map((row) => [row.external_digest, row]));

  const statusOf = async (externalId: string): Promise<RecordStatus> => {
    const row = byDigest.get(externalDigest(externalId));
    if (!row) return { external_id: externalId, state: 'unknown' };
    const event = Number(row.id);
    const read = row.mode === 'test' ? simulatedOf : movementsOf;
    return {
      external_id: externalId,
      event_id: event,
      kind: row.kind,
      state: row.state,
      flags: flagsOf(row),
      accepted_at: isoTime(Number(row.received_at)),
      movements: await read(strapi, executor, event, rules),
    };
  };

  const texts: string[] = [];
  const slice = createTimeSlice();
  for (const id of ids) {
    if (slice.isOver()) await slice.next();
    texts.push(JSON.stringify(await statusOf(id)));
  }
  answer(ctx, 200, `{"ok":true,"records":[${texts.join(',')}]}`);
  ctx.type = 'application/json';
};
