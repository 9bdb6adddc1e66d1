import type { Knex } from 'knex';
import {
  type ClosingComparison,
  type ClosingSummary,
  HANDLINGS_KEPT,
  type PosEvent,
  type PosEventDetail,
  type RecordAction,
  type RecordHandling,
  RECORDS_SEARCHED,
  type RelatedRecord,
  type SimulatedMovement,
} from '../../../../shared/contracts/pos';
import type { Page } from '../../../../shared/contracts/webhooks';
import { minorDigits } from '../../../../shared/currencies';
import type { App } from '../../app';
import type { Db, Tx } from '../../database/db';
import { firstOrNotFound, withTransientRetry } from '../../database/retry';
import { offsetOf, type PageRequest, paginationMeta, readPage } from '../../http/pagination';
import { debugLog, isoTime, isoTimeOrNull } from '../../runtime/text';
import { nextTurn, TimeSlice } from '../../runtime/event-loop';
import { type LedgerLine, movementsOfEvent } from '../../stock/ledger';
import { type ItemRow, ITEMS_TABLE, type LocationRow, LOCATIONS_TABLE } from '../../stock/tables';
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
import { readCounted } from '../sales-figures';
import { getRecordStore } from '../processing/record-store';
import { wokenLine } from '../processing/waits';
import { recordMatcher } from '../rules/record-match';
import { type EventState, linesOf, type PosRecord, stateAfter } from '../rules/records';
import { readRecord } from '../rules/validate';
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

type HandledRow = Pick<PosEventRow, 'id' | 'by_hand'>;

const storedOf = ({ by_hand: stored }: HandledRow): StoredHandling[] =>
  JSON.parse(stored ?? '[]') as StoredHandling[];

/**
 * Writes down who did what with a record, together with the action.
 * @param row  locked by the transaction
 * @param madeBy  who does it, as lists name an admin user
 */
const noteHandling = async (
  tx: Tx,
  row: HandledRow,
  action: RecordAction,
  madeBy: string | null
): Promise<void> => {
  const handling: StoredHandling = { action, made_by: madeBy, at: Date.now() };
  const kept = [...storedOf(row), handling].slice(-HANDLINGS_KEPT);
  await tx
    .table(POS_EVENTS_TABLE)
    .where({ id: row.id })
    .update({ by_hand: JSON.stringify(kept) });
};

/** How many refunds of one sale are named. */
const REFUNDS_NAMED = 50;

type Relative = Pick<PosEventRow, 'id' | 'connection_id' | 'external_id' | 'counted'>;

const related = ({ id, external_id }: Relative): RelatedRecord => ({ id: Number(id), external_id });

const saleOf = ({ counted }: Relative): number | null =>
  counted === null ? null : readCounted(counted, { kind: 'refund', connection: 0, at: 0 }).sale;

/** Others of its refund group: of its own connection, and those that money says belong to it. */
const readRelatives = async (
  db: Db,
  row: PosEventRow,
  kind: 'sale' | 'refund'
): Promise<RelatedRecord[]> => {
  if (row.family_digest === null) return [];
  const rows = (await db
    .table(POS_EVENTS_TABLE)
    .select('id', 'connection_id', 'external_id', 'counted')
    .where({ family_digest: row.family_digest, kind })
    .orderBy('id')
    .limit(REFUNDS_NAMED)) as Relative[];
  const isOwn = (one: Relative): boolean => Number(one.connection_id) === Number(row.connection_id);
  const belongs = (one: Relative): boolean =>
    kind === 'refund' ? saleOf(one) === Number(row.id) : saleOf(row) === Number(one.id);
  return rows.filter((one) => isOwn(one) || belongs(one)).map(related);
};

/** The sale of a refund, the refunds of a sale, and the contact of either. */
const relationsOf = async (
  db: Db,
  row: PosEventRow
): Promise<Pick<PosEventDetail, 'contact' | 'sale' | 'refunds'>> => {
  const purchase = (await db
    .table(PURCHASES_TABLE)
    .select('contact_id')
    .where({ event_id: row.id })
    .first()) as Pick<PurchaseRow, 'contact_id'> | undefined;
  const [sale] = row.kind === 'refund' ? await readRelatives(db, row, 'sale') : [];
  return {
    contact: purchase?.contact_id ? { id: purchase.contact_id } : null,
    sale: sale ?? null,
    refunds: row.kind === 'sale' ? await readRelatives(db, row, 'refund') : [],
  };
};

interface StoredClosing {
  comparison: ClosingComparison;
  summary: ClosingSummary;
}

/** How closings compare, by the ids of their events. */
const closingsOf = async (db: Db, ids: readonly number[]): Promise<Map<number, StoredClosing>> => {
  if (ids.length === 0) return new Map();
  const rows = (await db
    .table(POS_CLOSINGS_TABLE)
    .whereIn('event_id', [...ids])) as PosClosingRow[];
  return new Map(
    rows.map((row): [number, StoredClosing] => {
      const comparison = JSON.parse(row.result) as ClosingComparison;
      const { missing = [], unexpected = [], unexpected_count: all, differences } = comparison;
      const summary = {
        from: isoTime(Number(row.from_at)),
        to: isoTime(Number(row.to_at)),
        missing: missing.length,
        unexpected: all ?? unexpected.length,
        ...(all !== undefined && { unexpected_listed: unexpected.length }),
        differences,
      };
      return [Number(row.event_id), { comparison, summary }];
    })
  );
};

/** No more of bodies than this is looked into, though these be fewer records. */
const BYTES_SEARCHED = 64 * 1024 * 1024;
const CHUNK = 50;

type Row = Pick<PosEventRow, 'id' | 'kind' | 'external_id' | 'counted' | 'received_at' | 'body'>;

interface FoundRecords {
  /** Newest first. */
  ids: number[];
  /** When the oldest record was received that was looked at; null: there was none. */
  searchedFrom: string | null;
}

/**
 * Looks for a text in the newest records that filters leave. A whole id is found however old it is.
 * @param filtered  of the log's table, without columns and order
 */
const searchRecords = async (
  db: Db,
  filtered: Knex.QueryBuilder,
  search: string
): Promise<FoundRecords> => {
  const matches = recordMatcher(search, minorDigits);
  const byId = (await filtered
    .clone()
    .where({ external_digest: externalDigest(search) })
    .select('id')) as { id: number }[];
  const found = new Set(byId.map(({ id }) => Number(id)));
  const slice = new TimeSlice();
  let oldest: Row | undefined;
  let bytes = 0;
  for (let seen = 0; seen < RECORDS_SEARCHED && bytes < BYTES_SEARCHED; seen += CHUNK) {
    const query = filtered.clone().select('id').orderBy('id', 'desc').limit(CHUNK);
    if (oldest) query.where('id', '<', oldest.id);
    const ids = ((await query) as { id: number }[]).map(({ id }) => Number(id));
    const rows = (await db
      .table(POS_EVENTS_TABLE)
      .select('id', 'kind', 'external_id', 'counted', 'received_at', 'body')
      .whereIn('id', ids)
      .orderBy('id', 'desc')) as Row[];
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

/** All but what nobody looks at in a list: the body, what a test would have moved, who handled it. */
const LIST_COLUMNS = Object.keys(posEventTable.attributes).filter(
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
    if (!mayWait(row)) {
      events.push(toPosEvent(row, facts));
      continue;
    }
    const bodies = db.table(POS_EVENTS_TABLE).where({ id });
    const whole = (await bodies.first('body')) as Pick<PosEventRow, 'body'> | undefined;
    events.push(toPosEvent({ ...row, body: whole?.body ?? '' }, facts));
    await nextTurn();
  }
  return events;
};

/** A line that a test-mode record would have written, as it is stored with its event. */
const simulatedOf = async (db: Db, row: PosEventRow): Promise<SimulatedMovement[]> => {
  const lines = JSON.parse(row.simulated ?? '[]') as LedgerLine[];
  if (lines.length === 0) return [];
  const itemIds = [...new Set(lines.map(({ item }) => item))];
  const items = (await db.table(ITEMS_TABLE).whereIn('id', itemIds)) as ItemRow[];
  const locations = (await db.table(LOCATIONS_TABLE)) as LocationRow[];
  const skus = new Map(items.map(({ id, sku }) => [Number(id), sku]));
  const places = new Map(locations.map((one) => [Number(one.id), one]));
  return lines.map((line) => {
    const place = places.get(line.location);
    return {
      type: line.type,
      sku: skus.get(line.item) ?? line.sku ?? '',
      location: { id: line.location, code: place?.code ?? '', name: place?.name ?? '' },
      effective_at: isoTime(line.at),
      quantity: line.quantity,
      effect: line.effect,
      reason: line.reason,
    };
  });
};

const filtered = (
  db: Db,
  {
    state,
    kind,
    connection,
    external_id: externalId,
    customer_error: unattached,
  }: Omit<PosEventsQuery, 'page' | 'per_page'>
): Knex.QueryBuilder => {
  const query = db.table(POS_EVENTS_TABLE);
  if (state !== undefined) query.whereIn('state', state);
  if (kind !== undefined) query.where({ kind });
  if (connection !== undefined) query.where({ connection_id: connection });
  if (externalId !== undefined) query.where({ external_digest: externalDigest(externalId) });
  if (unattached) query.whereIn('id', unattachedSales(db));
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
  async list({ q, page, per_page, ...filter }: PosEventsQuery): Promise<Page<PosEvent>> {
    const db = await this.app.db.current();
    const { ids, meta } = await idsOfPage(db, filtered(db, filter), q, { page, per_page });
    const rows = (await withConnection(db)
      .select(...LIST_COLUMNS.map((column) => `e.${column}`), 'c.name as connection_name')
      .whereIn('e.id', ids)
      .orderBy('e.id', 'desc')) as Joined[];
    return { data: await listed(db, rows, this.graceMs()), meta };
  }

  async get(id: number): Promise<PosEventDetail> {
    const db = await this.app.db.current();
    const row = await firstOrNotFound<Joined>(
      withConnection(db).select('e.*', 'c.name as connection_name').where('e.id', id),
      'Event'
    );
    const closing = (await closingsOf(db, idsOf([row], 'closing'))).get(id);
    const customerError = (await customerErrors(db, [id])).get(id);
    const facts = { graceMs: this.graceMs(), closing: closing?.summary, customerError };
    return {
      ...toPosEvent(row, facts),
      body: row.body,
      movements: await movementsOfEvent(db, id),
      simulated: await simulatedOf(db, row),
      closing: closing?.comparison ?? null,
      ...(await relationsOf(db, row)),
      by_hand: storedOf(row).map((one) => ({ ...one, at: isoTime(one.at) })),
    };
  }

  /**
   * Processes an event again now; one that failed starts over.
   * @param madeBy  who has it done
   */
  async reprocess(id: number, madeBy: string | null): Promise<PosEventDetail> {
    const { kind } = await this.get(id);
    if (kind === 'closing') await withTransientRetry(() => compareStored(this.app, id));
    await this.app.db.retrying(async (tx) => {
      const row = await lockedRow(tx, id);
      await noteHandling(tx, row, 'reprocessed', madeBy);
      await retryAttaching(tx, this.app, id);
      this.app.db.afterCommit(() => attaching(this.app).wake());
      if (kind === 'closing') return;
      const state = row.state === 'failed' ? stateAfter(row.state, 'pending') : row.state;
      await getRecordStore(this.app).startAgain(tx, row, state);
      this.announceWoken(id);
    });
    return this.get(id);
  }

  /**
   * Applies a held refund without its sale; should that come, both are settled as if it had come first.
   * Null: it is not held.
   * @param madeBy  who has it done
   */
  async acceptWithoutSale(id: number, madeBy: string | null): Promise<PosEventDetail | null> {
    const accepted = await this.app.db.retrying(async (tx) => {
      const row = await lockedRow(tx, id);
      if (row.kind !== 'refund' || row.state !== 'held') return false;
      await noteHandling(tx, row, 'accepted_without_sale', madeBy);
      await getRecordStore(this.app).acceptOne(tx, row);
      this.announceWoken(id);
      return true;
    });
    return accepted ? this.get(id) : null;
  }

  private graceMs(): number {
    return this.app.options.pos.refundGraceHours * 3_600_000;
  }

  private announceWoken(id: number): void {
    this.app.db.afterCommit(() => {
      debugLog(this.app.strapi)?.(wokenLine(id));
      getRecordStore(this.app).announce();
    });
  }
}

/** Test mode parks nothing, but what it did not know would be parked once the connection is live. */
const WITH_UNKNOWN: readonly EventState[] = [
  'needs_mapping',
  'partially_applied',
  'simulated',
  'held',
];

/** True if lines of an event may wait for something; only then is its body looked at in lists. */
const mayWait = ({ state }: Pick<PosEventRow, 'state'>): boolean => WITH_UNKNOWN.includes(state);

/** Lines that a mapping says to ignore. */
const ignoredOf = ({ ignored }: Pick<PosEventRow, 'ignored'>): number[] =>
  JSON.parse(ignored ?? '[]') as number[];

const recordOf = ({ kind, body, received_at: at }: PosEventRow): PosRecord | null => {
  if (kind === 'closing') return null;
  const reading = readRecord(kind, Buffer.from(body, 'utf8'), { receivedAtMs: Number(at) });
  return reading.ok ? reading.record : null;
};

/** The unknown values of an event's lines, from its stored state. */
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

/** Which sale a held refund waits for, and until when: one without lines until it comes. */
const holdOf = (
  row: PosEventRow,
  graceMs: number
): Pick<PosEvent, 'held_until' | 'waiting_for_sale'> => {
  const record = row.state === 'held' ? recordOf(row) : null;
  if (record?.kind !== 'refund') return { held_until: null, waiting_for_sale: null };
  const { lines, saleExternalId } = record;
  return {
    held_until: lines === null ? null : isoTime(Number(row.received_at) + graceMs),
    waiting_for_sale: saleExternalId,
  };
};

/** The amount of a live sale or refund in the figures. */
const moneyOf = ({
  kind,
  counted,
}: Pick<PosEventRow, 'kind' | 'counted'>): { currency: string; amount: bigint } | null => {
  if (counted === null || (kind !== 'sale' && kind !== 'refund')) return null;
  const { currency, amount } = readCounted(counted, { kind, connection: 0, at: 0 });
  return { currency, amount };
};

/** The facts that a record is shown with, in addition to its row. */
interface Facts {
  graceMs: number;
  /** How it compares, where it is a closing. */
  closing?: ClosingSummary;
  /** Why the customer of a sale could not be attached. */
  customerError?: string;
}

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
