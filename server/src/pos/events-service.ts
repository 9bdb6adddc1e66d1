import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import type { PosEvent, PosEventDetail } from '../../../shared/contracts/pos';
import type { PlacedMovement } from '../../../shared/contracts/stock';
import type { Page } from '../../../shared/contracts/webhooks';
import { getOptions } from '../config';
import {
  afterCommit,
  currentExecutor,
  type Executor,
  inTransaction,
  table,
} from '../database/connection';
import { firstOrNotFound } from '../database/first-or-not-found';
import { readPage } from '../pagination';
import { summaryOf, toMovement } from '../stock/serialize';
import {
  type ItemRow,
  ITEMS_TABLE,
  LEVELS_TABLE,
  type LocationRow,
  LOCATIONS_TABLE,
  type MovementRow,
  MOVEMENTS_TABLE,
} from '../stock/tables';
import { externalDigest } from './accept';
import type { PosEventsQuery } from './inputs';
import { getRecordQueue } from './queue';
import { type SimulatedLine, toPosEvent, toSimulated } from './serialize';
import { CONNECTIONS_TABLE, type PosEventRow, POS_EVENTS_TABLE } from './tables';

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
      if (state !== undefined) query.where({ state });
      if (kind !== undefined) query.where({ kind });
      if (connection !== undefined) query.where({ connection_id: connection });
      if (externalId !== undefined) query.where({ external_digest: externalDigest(externalId) });
      const { rows: ids, meta } = await readPage<{ id: number }>(executor, query, request);
      const rows = (await withConnection(executor)
        .select('e.*', 'c.name as connection_name')
        .whereIn(
          'e.id',
          ids.map(({ id }) => id)
        )
        .orderBy('e.id', 'desc')) as Joined[];
      const grace = graceMs();
      return { data: rows.map((row) => toPosEvent(row, grace)), meta };
    },

    get,

    async reprocess(id) {
      await inTransaction(strapi, async ({ trx }) => {
        const found = table(strapi, trx, POS_EVENTS_TABLE).where({ id });
        const row = await firstOrNotFound<PosEventRow>(found.clone(), 'Event');
        const state = row.state === 'failed' ? 'pending' : row.state;
        await found.update({ state, tries: 0, error: null, due_at: Date.now(), owner: null });
        afterCommit(strapi, () => getRecordQueue(strapi).wake());
      });
      return get(id);
    },
  };
};
