import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import type { PosEvent, PosEventDetail } from '../../../../shared/contracts/pos';
import type { PlacedMovement } from '../../../../shared/contracts/stock';
import type { Page } from '../../../../shared/contracts/webhooks';
import { getOptions } from '../../config';
import { afterCommit, currentExecutor, type Executor, table } from '../../database/connection';
import { inRetriedTransaction } from '../../database/errors/retry';
import { firstOrNotFound } from '../../database/errors/first-or-not-found';
import { debugLog } from '../../runtime/debug-log';
import { readPage } from '../../http/pagination';
import { summaryOf, toMovement } from '../../stock/serialize';
import {
  type ItemRow,
  ITEMS_TABLE,
  LEVELS_TABLE,
  type LocationRow,
  LOCATIONS_TABLE,
  type MovementRow,
  MOVEMENTS_TABLE,
} from '../../stock/tables';
import { externalDigest } from '../intake/submission';
import { wokenLine } from '../debug-lines';
import type { PosEventsQuery } from './inputs';
import { getRecordStore } from '../processing/record-store';
import { stateAfter } from '../rules/states';
import { mayWait, type SimulatedLine, toPosEvent, toSimulated } from '../serialize';
import { CONNECTIONS_TABLE, type PosEventRow, POS_EVENTS_TABLE, posEventTable } from '../tables';

/** All but what nobody looks at in a list: the body, and what a test would have moved. */
const LIST_COLUMNS = Object.keys(posEventTable.attributes).filter(
  (column) => !['body', 'simulated', 'refunded'].includes(column)
);

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

type Joined = PosEventRow & { connection_name: string };
type JoinedMovement = MovementRow & {
  sku: string;
  location_id: number;
  location_code: string;
  location_name: string;
};

/** The log of accepted records. Unknown ids are a NotFoundError (404). */
export interface PosEventsService {
  /** Newest first. */
  list(query: PosEventsQuery): Promise<Page<PosEvent>>;
  get(id: number): Promise<PosEventDetail>;
  /** Processes an event again now; one that failed starts over. */
  reprocess(id: number): Promise<PosEventDetail>;
}

export const createPosEventsService = ({ strapi }: { strapi: Core.Strapi }): PosEventsService => {
  const schema = strapi.db.getSchemaName();
  const named = (name: string): string => (schema ? `${schema}.${name}` : name);
  const graceMs = (): number => getOptions(strapi).pos.refundGraceHours * 3_600_000;

  const withConnection = (executor: Executor): Knex.QueryBuilder =>
    (executor as Knex)(`${named(POS_EVENTS_TABLE)} as e`).leftJoin(
      `${named(CONNECTIONS_TABLE)} as c`,
      'c.id',
      'e.connection_id'
    );

  /** Bodies are large: they are read only for lines that wait, one at a time. */
  const listed = async (executor: Executor, rows: readonly Joined[]): Promise<PosEvent[]> => {
    const grace = graceMs();
    const events: PosEvent[] = [];
    for (const row of rows) {
      if (!mayWait(row)) {
        events.push(toPosEvent(row, grace));
        continue;
      }
      const whole = (await table(strapi, executor, POS_EVENTS_TABLE)
        .select('body')
        .where({ id: row.id })
        .first()) as Pick<PosEventRow, 'body'> | undefined;
      events.push(toPosEvent({ ...row, body: whole?.body ?? '' }, grace));
      await nextTurn();
    }
    return events;
  };

  const movementsOf = async (executor: Executor, id: number): Promise<PlacedMovement[]> => {
    const rows = (await (executor as Knex)(`${named(MOVEMENTS_TABLE)} as m`)
      .join(`${named(LEVELS_TABLE)} as l`, 'l.id', 'm.level_id')
      .join(`${named(ITEMS_TABLE)} as i`, 'i.id', 'l.item_id')
      .join(`${named(LOCATIONS_TABLE)} as p`, 'p.id', 'l.location_id')
      .select('m.*', 'i.sku', 'l.location_id', 'p.code as location_code', 'p.name as location_name')
      .where('m.event_id', id)
      .orderBy('m.id')) as JoinedMovement[];
    return rows.map((row) => ({ ...toMovement(row), sku: row.sku, location: summaryOf(row) }));
  };

  const simulatedOf = async (
    executor: Executor,
    row: PosEventRow
  ): Promise<PosEventDetail['simulated']> => {
    const lines = JSON.parse(row.simulated ?? '[]') as SimulatedLine[];
    if (lines.length === 0) return [];
    const items = (await table(strapi, executor, ITEMS_TABLE)
      .select('*')
      .whereIn('id', [...new Set(lines.map(({ item }) => item))])) as ItemRow[];
    const locations = (await table(strapi, executor, LOCATIONS_TABLE).select('*')) as LocationRow[];
    const itemsById = new Map(items.map((item) => [Number(item.id), item]));
    const locationsById = new Map(locations.map((one) => [Number(one.id), one]));
    return lines.map((line) => toSimulated(line, itemsById, locationsById));
  };

  const get = async (id: number): Promise<PosEventDetail> => {
    const executor = await currentExecutor(strapi);
    const row = await firstOrNotFound<Joined>(
      withConnection(executor).select('e.*', 'c.name as connection_name').where('e.id', id),
      'Event'
    );
    return {
      ...toPosEvent(row, graceMs()),
      body: row.body,
      movements: await movementsOf(executor, id),
      simulated: await simulatedOf(executor, row),
    };
  };

  return {
    async list({ state, kind, connection, external_id: externalId, ...request }) {
      const executor = await currentExecutor(strapi);
      const query = table(strapi, executor, POS_EVENTS_TABLE).select('id').orderBy('id', 'desc');
      if (state !== undefined) query.whereIn('state', state);
      if (kind !== undefined) query.where({ kind });
      if (connection !== undefined) query.where({ connection_id: connection });
      if (externalId !== undefined) query.where({ external_digest: externalDigest(externalId) });
      const { rows: ids, meta } = await readPage<{ id: number }>(executor, query, request);
      const rows = (await withConnection(executor)
        .select(...LIST_COLUMNS.map((column) => `e.${column}`), 'c.name as connection_name')
        .whereIn(
          'e.id',
          ids.map(({ id }) => id)
        )
        .orderBy('e.id', 'desc')) as Joined[];
      return { data: await listed(executor, rows), meta };
    },

    get,

    async reprocess(id) {
      await inRetriedTransaction(strapi, async ({ trx }) => {
        const found = table(strapi, trx, POS_EVENTS_TABLE).where({ id });
        const row = await firstOrNotFound<PosEventRow>(found.clone().forUpdate(), 'Event');
        const state = row.state === 'failed' ? stateAfter(row.state, 'pending') : row.state;
        const store = getRecordStore(strapi);
        await store.startAgain(trx, id, state);
        afterCommit(strapi, () => {
          debugLog(strapi)?.(wokenLine(id));
          store.announce();
        });
      });
      return get(id);
    },
  };
};
