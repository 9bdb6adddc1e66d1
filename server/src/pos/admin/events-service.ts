import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import type { PosEvent, PosEventDetail } from '../../../../shared/contracts/pos';
import type { PlacedMovement } from '../../../../shared/contracts/stock';
import type { Page } from '../../../../shared/contracts/webhooks';
import { getOptions } from '../../config';
import { afterCommit, currentExecutor, type Executor, table } from '../../database/connection';
import { inRetriedTransaction } from '../../database/retry';
import { firstOrNotFound } from '../../database/errors/first-or-not-found';
import { debugLog } from '../../runtime/debug-log';
import { offsetOf, type PageRequest, paginationMeta, readPage } from '../../http/pagination';
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
import { compareClosingAgain } from '../closings/compare-again';
import { customerErrors, retryAttaching, unattachedSales, wakeAttaching } from '../customers';
import { handlingsOf, noteHandling } from './by-hand';
import type { PosEventsQuery } from './inputs';
import { closingsOf, relationsOf } from './record-relations';
import { searchRecords } from './record-search';
import { getRecordStore } from '../processing/record-store';
import { stateAfter } from '../rules/states';
import { mayWait, type SimulatedLine, toPosEvent, toSimulated } from '../serialize';
import {
  CONNECTIONS_TABLE,
  type PosEventRow,
  POS_CLOSINGS_TABLE,
  POS_EVENTS_TABLE,
  posEventTable,
} from '../tables';

/** All but what nobody looks at in a list: the body, what a test would have moved, who handled it. */
const LIST_COLUMNS = Object.keys(posEventTable.attributes).filter(
  (column) => !['body', 'simulated', 'refunded', 'money_left', 'by_hand'].includes(column)
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
  /**
   * Processes an event again now; one that failed starts over.
   * @param madeBy  who has it done
   */
  reprocess(id: number, madeBy: string | null): Promise<PosEventDetail>;
  /**
   * Has a held refund applied without its sale; should that come, both are settled as if it had come
   * first. Null: it is not held.
   * @param madeBy  who has it done
   */
  acceptWithoutSale(id: number, madeBy: string | null): Promise<PosEventDetail | null>;
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
    const closings = await closingsOf(
      strapi,
      executor,
      rows.flatMap(({ id, kind }) => (kind === 'closing' ? [Number(id)] : []))
    );
    const unattached = await customerErrors(
      strapi,
      executor,
      rows.flatMap(({ id, kind }) => (kind === 'sale' ? [Number(id)] : []))
    );
    for (const row of rows) {
      const customerError = unattached.get(Number(row.id));
      if (!mayWait(row)) {
        events.push(toPosEvent(row, grace, closings.get(Number(row.id))?.summary, customerError));
        continue;
      }
      const whole = (await table(strapi, executor, POS_EVENTS_TABLE)
        .select('body')
        .where({ id: row.id })
        .first()) as Pick<PosEventRow, 'body'> | undefined;
      events.push(toPosEvent({ ...row, body: whole?.body ?? '' }, grace, null, customerError));
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

  const filtered = (
    executor: Executor,
    {
      state,
      kind,
      connection,
      external_id: externalId,
      customer_error: unattached,
    }: Omit<PosEventsQuery, 'page' | 'per_page'>
  ): Knex.QueryBuilder => {
    const query = table(strapi, executor, POS_EVENTS_TABLE);
    if (state !== undefined) query.whereIn('state', state);
    if (kind !== undefined) query.where({ kind });
    if (connection !== undefined) query.where({ connection_id: connection });
    if (externalId !== undefined) query.where({ external_digest: externalDigest(externalId) });
    if (unattached) query.whereIn('id', unattachedSales(strapi, executor));
    if (kind === 'closing') {
      // Few among many: they are found by a table of their own.
      const closings = table(strapi, executor, POS_CLOSINGS_TABLE).select('event_id');
      if (connection !== undefined) closings.where({ connection_id: connection });
      query.whereIn('id', closings);
    }
    return query;
  };

  const idsOfPage = async (
    executor: Executor,
    query: Knex.QueryBuilder,
    search: string | undefined,
    request: PageRequest
  ): Promise<{ ids: number[]; meta: Page<PosEvent>['meta'] }> => {
    if (search === undefined) {
      const ordered = query.select('id').orderBy('id', 'desc');
      const { rows, meta } = await readPage<{ id: number }>(executor, ordered, request);
      return { ids: rows.map(({ id }) => Number(id)), meta };
    }
    const { ids, searchedFrom } = await searchRecords(strapi, executor, query, search);
    const offset = offsetOf(request);
    return {
      ids: ids.slice(offset, offset + request.per_page),
      meta: { ...paginationMeta(request, ids.length), searched_from: searchedFrom },
    };
  };

  const get = async (id: number): Promise<PosEventDetail> => {
    const executor = await currentExecutor(strapi);
    const row = await firstOrNotFound<Joined>(
      withConnection(executor).select('e.*', 'c.name as connection_name').where('e.id', id),
      'Event'
    );
    const closings = await closingsOf(strapi, executor, row.kind === 'closing' ? [id] : []);
    const closing = closings.get(id);
    const unattached = await customerErrors(strapi, executor, [id]);
    return {
      ...toPosEvent(row, graceMs(), closing?.summary, unattached.get(id)),
      body: row.body,
      movements: await movementsOf(executor, id),
      simulated: await simulatedOf(executor, row),
      closing: closing?.comparison ?? null,
      ...(await relationsOf(strapi, executor, row)),
      by_hand: handlingsOf(row),
    };
  };

  const announceWoken = (id: number): void =>
    afterCommit(strapi, () => {
      debugLog(strapi)?.(wokenLine(id));
      getRecordStore(strapi).announce();
    });

  const lockedRow = (trx: Executor, id: number): Promise<PosEventRow> =>
    firstOrNotFound(table(strapi, trx, POS_EVENTS_TABLE).where({ id }).forUpdate(), 'Event');

  return {
    async list({ q, page, per_page, ...filter }) {
      const executor = await currentExecutor(strapi);
      const { ids, meta } = await idsOfPage(executor, filtered(executor, filter), q, {
        page,
        per_page,
      });
      const rows = (await withConnection(executor)
        .select(...LIST_COLUMNS.map((column) => `e.${column}`), 'c.name as connection_name')
        .whereIn('e.id', ids)
        .orderBy('e.id', 'desc')) as Joined[];
      return { data: await listed(executor, rows), meta };
    },

    get,

    async reprocess(id, madeBy) {
      const { kind } = await get(id);
      if (kind === 'closing') await compareClosingAgain(strapi, id);
      await inRetriedTransaction(strapi, async ({ trx }) => {
        const row = await lockedRow(trx, id);
        await noteHandling(strapi, trx, row, 'reprocessed', madeBy);
        await retryAttaching(strapi, trx, id);
        afterCommit(strapi, () => wakeAttaching(strapi));
        if (kind === 'closing') return;
        const state = row.state === 'failed' ? stateAfter(row.state, 'pending') : row.state;
        await getRecordStore(strapi).startAgain(trx, id, state);
        announceWoken(id);
      });
      return get(id);
    },

    async acceptWithoutSale(id, madeBy) {
      const accepted = await inRetriedTransaction(strapi, async ({ trx }) => {
        const row = await lockedRow(trx, id);
        if (row.kind !== 'refund' || row.state !== 'held') return false;
        await noteHandling(strapi, trx, row, 'accepted_without_sale', madeBy);
        await getRecordStore(strapi).acceptAlone(trx, id);
        announceWoken(id);
        return true;
      });
      return accepted ? get(id) : null;
    },
  };
};
