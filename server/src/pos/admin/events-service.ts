import type { Knex } from 'knex';
import {
  type ClosingComparison,
  type ClosingSummary,
  HANDLINGS_KEPT,
  type PosEvent,
  type PosEventSummary,
  type PosEventDetail,
  type RecordAction,
  type RecordHandling,
  RECORDS_SEARCHED,
  type SimulatedMovement,
} from '../../../../shared/contracts/pos';
import type { Page } from '../../../../shared/contracts/webhooks';
import type { App } from '../../app';
import type { Db, Tx } from '../../database/db';
import { firstOrNotFound, withTransientRetry } from '../../database/retry';
import { findInChunks } from '../../database/written-rows';
import { offsetOf, type PageRequest, paginationMeta, readPage } from '../../http/pagination';
import { isoTime, isoTimeOrNull } from '../../runtime/text';
import { nextTurn, TimeSlice } from '../../runtime/event-loop';
import { namedItems } from '../../stock/items';
import { type LedgerLine, movementsOfEvent } from '../../stock/ledger';
import { locationSummary, readLocations } from '../../stock/locations';
import { compareStored } from '../closings';
import {
  attaching,
  customerErrors,
  type PurchaseRow,
  PURCHASES_TABLE,
  retryAttaching,
  unattachedSales,
} from '../customers';
import { externalDigest } from '../intake/accept';
import { type Counted, readCounted } from '../sales-figures';
import { timesOf } from '../processing/process';
import { getRecordStore } from '../processing/record-store';
import { readStored } from '../processing/resolve';
import { recordMatcher } from '../rules/record-match';
import { isWaiting, linesOf, type PosRecord, stateAfter } from '../rules/records';
import {
  CONNECTIONS_TABLE,
  flagsOf,
  POS_CLOSINGS_TABLE,
  POS_EVENTS_TABLE,
  type PosClosingRow,
  type PosEventRow,
  posEventTable,
} from '../tables';
import type { PosEventsQuery } from './inputs';

/** As it is stored; `at` in epoch milliseconds. */
type StoredHandling = Omit<RecordHandling, 'at'> & { at: number };

const storedOf = ({ by_hand: stored }: PosEventRow): StoredHandling[] =>
  JSON.parse(stored ?? '[]') as StoredHandling[];

/** Records who did what with a record (`row`, locked), together with the action; `madeBy` as lists name admin users. */
const noteHandling = async (
  tx: Tx,
  row: PosEventRow,
  action: RecordAction,
  madeBy: string | null
): Promise<void> => {
  const handling: StoredHandling = { action, made_by: madeBy, at: Date.now() };
  const kept = JSON.stringify([...storedOf(row), handling].slice(-HANDLINGS_KEPT));
  await tx.table(POS_EVENTS_TABLE).where({ id: row.id }).update({ by_hand: kept });
};

const REFUNDS_NAMED = 50;

type Relative = Pick<PosEventRow, 'id' | 'connection_id' | 'external_id' | 'counted'>;

const moneyOf = ({ counted }: Pick<PosEventRow, 'counted'>): Counted | null =>
  counted === null ? null : readCounted(counted);

/** Others of its refund group: of its own connection, and those that money says belong to it. */
const readRelatives = async (db: Db, row: PosEventRow, kind: 'sale' | 'refund') => {
  if (row.family_digest === null) return [];
  const rows = (await db
    .table(POS_EVENTS_TABLE)
    .select('id', 'connection_id', 'external_id', 'counted')
    .where({ family_digest: row.family_digest, kind })
    .orderBy('id')
    .limit(REFUNDS_NAMED)) as Relative[];
  const isOwn = (one: Relative): boolean => Number(one.connection_id) === Number(row.connection_id);
  const belongs = (one: Relative): boolean =>
    kind === 'refund'
      ? moneyOf(one)?.sale === Number(row.id)
      : moneyOf(row)?.sale === Number(one.id);
  const related = rows.filter((one) => isOwn(one) || belongs(one));
  return related.map(({ id, external_id }) => ({ id: Number(id), external_id }));
};

const relationsOf = async (
  db: Db,
  row: PosEventRow
): Promise<Pick<PosEventDetail, 'contact' | 'sale' | 'refunds'>> => {
  const purchase: Pick<PurchaseRow, 'contact_id'> | undefined = await db
    .table(PURCHASES_TABLE)
    .where({ event_id: row.id })
    .first('contact_id');
  const [sale] = row.kind === 'refund' ? await readRelatives(db, row, 'sale') : [];
  return {
    contact: purchase?.contact_id ? { id: purchase.contact_id } : null,
    sale: sale ?? null,
    refunds: row.kind === 'sale' ? await readRelatives(db, row, 'refund') : [],
  };
};

const closingsOf = async (db: Db, ids: readonly number[]) => {
  const rows = await findInChunks<PosClosingRow>(ids, (some) =>
    db.table(POS_CLOSINGS_TABLE).whereIn('event_id', some)
  );
  return new Map(
    rows.map((row) => {
      const comparison = JSON.parse(row.result) as ClosingComparison;
      const { missing = [], unexpected = [], unexpected_count: all, differences } = comparison;
      const summary: ClosingSummary = {
        from: isoTime(Number(row.from_at)),
        to: isoTime(Number(row.to_at)),
        missing: missing.length,
        unexpected: all ?? unexpected.length,
        ...(all !== undefined && { unexpected_listed: unexpected.length }),
        differences,
      };
      return [Number(row.event_id), { comparison, summary }] as const;
    })
  );
};

/** No more of bodies than this is looked into, though these be fewer records. */
const BYTES_SEARCHED = 64 * 1024 * 1024;
const CHUNK = 50;

type Row = Pick<PosEventRow, 'id' | 'kind' | 'external_id' | 'counted' | 'received_at' | 'body'>;

/** Ids of newest records with a text, or a complete id of any age; and when the oldest searched one was received. */
const searchRecords = async (db: Db, filtered: Knex.QueryBuilder, search: string) => {
  const matches = recordMatcher(search);
  const byId = filtered.clone().where({ external_digest: externalDigest(search) });
  const found = new Set(((await byId.pluck('id')) as number[]).map(Number));
  const slice = new TimeSlice();
  let oldest: Row | undefined;
  let bytes = 0;
  for (let seen = 0; seen < RECORDS_SEARCHED && bytes < BYTES_SEARCHED; seen += CHUNK) {
    const query = filtered.clone().orderBy('id', 'desc').limit(CHUNK);
    if (oldest) query.where('id', '<', oldest.id);
    const ids: number[] = await query.pluck('id');
    const rows: Row[] = await db
      .table(POS_EVENTS_TABLE)
      .select('id', 'kind', 'external_id', 'counted', 'received_at', 'body')
      .whereIn('id', ids)
      .orderBy('id', 'desc');
    for (const row of rows) {
      // A closing's body is nothing but ids of others.
      const body = row.kind === 'closing' ? null : row.body;
      bytes += row.body.length;
      if (matches({ externalId: row.external_id, body, money: moneyOf(row) })) {
        found.add(Number(row.id));
      }
      if (slice.isOver()) await slice.next();
    }
    oldest = rows.at(-1) ?? oldest;
    if (ids.length < CHUNK) break;
  }
  return {
    ids: [...found].sort((a, b) => b - a),
    searchedFrom: oldest ? isoTime(Number(oldest.received_at)) : null,
  };
};

/** All columns for lists: without the body, a test's movements, and who handled it. */
const LIST_COLUMNS = ['id', ...Object.keys(posEventTable.attributes)].filter(
  (column) => !['body', 'simulated', 'refunded', 'money_left', 'by_hand'].includes(column)
);

type Joined = PosEventRow & { connection_name: string };

const withConnection = (db: Db): Knex.QueryBuilder =>
  db
    .table(`${POS_EVENTS_TABLE} as e`)
    .leftJoin(`${CONNECTIONS_TABLE} as c`, 'c.id', 'e.connection_id');

const idsOf = (rows: readonly Joined[], kind: PosEventRow['kind']): number[] =>
  rows.flatMap((row) => (row.kind === kind ? [Number(row.id)] : []));

/** Bodies are large: they are read only for lines that wait, one at a time. */
const listed = async (db: Db, rows: readonly Joined[], graceMs: number): Promise<PosEvent[]> => {
  const events: PosEvent[] = [];
  const closings = await closingsOf(db, idsOf(rows, 'closing'));
  const unattached = await customerErrors(db, idsOf(rows, 'sale'));
  for (const row of rows) {
    const { id } = row;
    const facts = {
      graceMs,
      closing: closings.get(Number(id))?.summary,
      customerError: unattached.get(Number(id)),
    };
    const isRead = mayWait(row);
    const [body = ''] = isRead ? await db.table(POS_EVENTS_TABLE).where({ id }).pluck('body') : [];
    events.push(toPosEvent({ ...row, body }, facts));
    if (isRead) await nextTurn();
  }
  return events;
};

/** A line that a test-mode record would have written, as it is stored with its event. */
const simulatedOf = async (db: Db, row: PosEventRow): Promise<SimulatedMovement[]> => {
  const lines = JSON.parse(row.simulated ?? '[]') as LedgerLine[];
  if (lines.length === 0) return [];
  const ids = lines.map(({ item }) => item);
  const items = await namedItems(db, ids);
  const locations = await readLocations(db);
  return lines.map((line) => ({
    type: line.type,
    sku: items.get(line.item)?.sku ?? line.sku ?? '',
    location: locationSummary(line.location, locations.get(line.location)),
    effective_at: isoTime(line.at),
    quantity: line.quantity,
    effect: line.effect,
    reason: line.reason,
  }));
};

const filtered = (db: Db, filter: Omit<PosEventsQuery, 'page' | 'per_page' | 'view'>) => {
  const { state, kind, connection, external_id: externalId } = filter;
  const query = db.table(POS_EVENTS_TABLE);
  if (state !== undefined) query.whereIn('state', state);
  if (kind !== undefined) query.where({ kind });
  if (connection !== undefined) query.where({ connection_id: connection });
  if (externalId !== undefined) query.where({ external_digest: externalDigest(externalId) });
  if (filter.customer_error) query.whereIn('id', unattachedSales(db));
  if (kind === 'closing') {
    // Few among many: they are found by a table of their own.
    const closings = db.table(POS_CLOSINGS_TABLE).select('event_id');
    if (connection !== undefined) closings.where({ connection_id: connection });
    query.whereIn('id', closings);
  }
  return query;
};

const idsOfPage = async (
  db: Db,
  query: Knex.QueryBuilder,
  search: string | undefined,
  request: PageRequest
): Promise<{ ids: number[]; meta: Page<PosEvent>['meta'] }> => {
  if (search === undefined) {
    const ordered = query.select('id').orderBy('id', 'desc');
    const { rows, meta } = await readPage<{ id: number }>(db, ordered, request);
    return { ids: rows.map(({ id }) => Number(id)), meta };
  }
  const { ids, searchedFrom } = await searchRecords(db, query, search);
  const offset = offsetOf(request);
  return {
    ids: ids.slice(offset, offset + request.per_page),
    meta: { ...paginationMeta(request, ids.length), searched_from: searchedFrom },
  };
};

const lockedRow = (tx: Db, id: number): Promise<PosEventRow> =>
  firstOrNotFound(tx.table(POS_EVENTS_TABLE).where({ id }).forUpdate(), 'Event');

/** The log of accepted records. Unknown ids are a NotFoundError (404). */
export class PosEventsService {
  constructor(private readonly app: App) {}

  /** Newest first. */
  async list({
    q,
    page,
    per_page,
    view,
    ...filter
  }: PosEventsQuery): Promise<Page<PosEvent | PosEventSummary>> {
    const db = await this.app.db.current();
    const { ids, meta } = await idsOfPage(db, filtered(db, filter), q, { page, per_page });
    const rows: Joined[] = await withConnection(db)
      .select(...LIST_COLUMNS.map((column) => `e.${column}`), 'c.name as connection_name')
      .whereIn('e.id', ids)
      .orderBy('e.id', 'desc');
    const data = await listed(db, rows, timesOf(this.app).graceMs);
    return { data: view === 'summary' ? data.map(toSummary) : data, meta };
  }

  async get(id: number): Promise<PosEventDetail> {
    const db = await this.app.db.current();
    const found = withConnection(db).select('e.*', 'c.name as connection_name').where('e.id', id);
    const row = await firstOrNotFound<Joined>(found, 'Event');
    const closing = (await closingsOf(db, idsOf([row], 'closing'))).get(id);
    const customerError = (await customerErrors(db, [id])).get(id);
    const { graceMs } = timesOf(this.app);
    return {
      ...toPosEvent(row, { graceMs, closing: closing?.summary, customerError }),
      body: row.body,
      movements: await movementsOfEvent(db, id),
      simulated: await simulatedOf(db, row),
      closing: closing?.comparison ?? null,
      ...(await relationsOf(db, row)),
      by_hand: storedOf(row).map((one) => ({ ...one, at: isoTime(one.at) })),
    };
  }

  /** Processes an event again now; one that failed starts over. @param madeBy  who has it done */
  async reprocess(id: number, madeBy: string | null): Promise<PosEventDetail> {
    const { kind } = await this.get(id);
    if (kind === 'closing') await withTransientRetry(() => compareStored(this.app, id));
    await this.app.db.retrying(async (tx) => {
      const row = await lockedRow(tx, id);
      await noteHandling(tx, row, 'reprocessed', madeBy);
      await retryAttaching(tx, this.app, id);
      tx.onCommit(() => attaching(this.app).wake());
      if (kind === 'closing') return;
      const state = row.state === 'failed' ? stateAfter(row.state, 'pending') : row.state;
      await getRecordStore(this.app).startAgain(tx, row, { state, tries: 0, error: null });
    });
    return this.get(id);
  }

  /** Applies a held refund without its sale; if that arrives later, both are settled normally. Null: it is not held. */
  async acceptWithoutSale(id: number, madeBy: string | null): Promise<PosEventDetail | null> {
    const accepted = await this.app.db.retrying(async (tx) => {
      const row = await lockedRow(tx, id);
      if (row.kind !== 'refund' || row.state !== 'held') return false;
      await noteHandling(tx, row, 'accepted_without_sale', madeBy);
      await getRecordStore(this.app).startAgain(tx, row, { accepted_at: this.app.clock.now() });
      return true;
    });
    return accepted ? this.get(id) : null;
  }
}

/** True if lines may wait; lists read the body only then. Simulated records count, as live ones would be parked. */
const mayWait = ({ state }: PosEventRow): boolean => isWaiting(state) || state === 'simulated';

const ignoredOf = ({ ignored }: PosEventRow): number[] => JSON.parse(ignored ?? '[]') as number[];

const recordOf = (row: PosEventRow): PosRecord | null => {
  if (row.kind === 'closing') return null;
  const reading = readStored(row.kind, row);
  return reading.ok ? reading.value : null;
};

const waitingOf = (row: PosEventRow): PosEvent['waiting'] => {
  const record = mayWait(row) ? recordOf(row) : null;
  if (!record) return [];
  const items = JSON.parse(row.items ?? '[]') as (number | null)[];
  const ignored = ignoredOf(row);
  const lines = linesOf(record).flatMap(({ sku, gtin }, line) =>
    (items[line] ?? null) === null && !ignored.includes(line)
      ? [{ line, ...(sku !== null && { sku }), ...(gtin !== null && { gtin }) }]
      : []
  );
  const located = row.location_id !== null || row.location_ref === null;
  return located ? lines : [...lines, { line: null, location_ref: row.location_ref ?? '' }];
};

/** The sale that a held refund waits for, and until when: one without lines until it comes. */
const holdOf = (row: PosEventRow, graceMs: number) => {
  const record = row.state === 'held' ? recordOf(row) : null;
  if (record?.kind !== 'refund') return { held_until: null, waiting_for_sale: null };
  const until = isoTime(Number(row.received_at) + graceMs);
  const { lines, saleExternalId: sale } = record;
  return { held_until: lines === null ? null : until, waiting_for_sale: sale };
};

interface Facts {
  graceMs: number;
  closing?: ClosingSummary;
  /** Why the customer of a sale could not be attached. */
  customerError?: string;
}

const toSummary = (event: PosEvent): PosEventSummary => {
  const { id, connection, kind, external_id, state, flags, occurred_at, received_at } = event;
  const { held_until, money, waiting } = event;
  return {
    ...{ id, connection, kind, external_id, state, flags, occurred_at, received_at },
    ...{ held_until, money, waiting: waiting.slice(0, 1) },
  };
};

const toPosEvent = (row: Joined, { graceMs, closing, customerError }: Facts): PosEvent => {
  const money = moneyOf(row);
  return {
    id: Number(row.id),
    event_id: Number(row.id),
    connection: { id: Number(row.connection_id), name: row.connection_name },
    kind: row.kind,
    external_id: row.external_id,
    state: row.state,
    mode: row.mode,
    flags: flagsOf(row),
    occurred_at: row.occurred_at,
    effective_at: isoTime(Number(row.effective_at)),
    received_at: isoTime(Number(row.received_at)),
    processed_at: isoTimeOrNull(row.processed_at),
    ...holdOf(row, graceMs),
    accepted_without_sale_at: isoTimeOrNull(row.accepted_at),
    location_ref: row.location_ref,
    stale: JSON.parse(row.stale || '[]') as PosEvent['stale'],
    waiting: waitingOf(row),
    ignored: ignoredOf(row),
    error: row.error,
    customer_error: customerError ?? null,
    money: money && { currency: money.currency, total: Number(money.amount) },
    closing_summary: closing ?? null,
  };
};
