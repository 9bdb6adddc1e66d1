import type { Knex } from 'knex';
import { nextTurn } from '../../runtime/event-loop';
import { gtinDigest } from '../../stock/items';
import {
  differences,
  type Posting,
  type PostingDifference,
  postingsOf,
  type RefundKey,
} from '../../stock/rules/allocation';
import { leftOfSale, readLeft, shareOnTop, writeLeft } from '../../stock/rules/sale-left';
import { LEVELS_TABLE, MOVEMENTS_TABLE } from '../../stock/tables';
import { connectionWait, mappingDigest, type Wait } from '../mappings';
import { lineNames, quantityOf, type RefundRecord, type SaleRecord } from '../rules/records';
import {
  graceIsOver,
  type GroupRefund,
  type GroupSale,
  type RefundOutcome,
  refundToShare,
  settledFlags,
  settleRefunds,
  stateOfRefund,
} from '../rules/settle-refunds';
import { type ConnectionRow, POS_EVENTS_TABLE, type PosEventRow } from '../tables';
import {
  type ContextOf,
  isRefund,
  isSale,
  namedLocation,
  openContext,
  placedLines,
  type ProcessingContext,
  unknownLines,
  waitingLines,
} from './processing-context';
import type { Tx } from '../../database/db';

/** When groups are settled, and how long a refund waits for its sale; epoch milliseconds. */
export interface Times {
  nowMs: number;
  graceMs: number;
}

/** A refund as the rules of its group see it. */
const refundOfGroup = (work: ContextOf<RefundRecord>, { nowMs, graceMs }: Times): GroupRefund => ({
  id: work.id,
  connection: Number(work.connection.id),
  effectiveMs: Number(work.row.effective_at),
  externalId: work.record.externalId,
  lines:
    work.record.lines?.flatMap(({ quantity }, line) => {
      const item = work.items[line] ?? null;
      return item === null ? [] : [{ line, item, quantity }];
    }) ?? null,
  namedLocation: namedLocation(work),
  onlyLocation: work.onlyLocationId,
  graceOver: graceIsOver(Number(work.row.received_at), nowMs, graceMs),
  accepted: (work.row.accepted_at ?? null) !== null,
});

/** Which relatives have to be looked at again. */
type Reach =
  /** None: there is no sale yet, and each refund is held, or stands, by itself. */
  | { relatives: 'none' }
  /** None: one sale, and no other refund's share changes. `outcomes` are those of the batch. */
  | { relatives: 'unchanged'; outcomes: RefundOutcome[]; unknownLines: number; refunded: Refunded }
  /** One sale, some of whose refunds have to make way: those that were allocated anything. */
  | { relatives: 'allocated' }
  /** A sale that is new or another one than before; or nothing is known of what was allocated. */
  | { relatives: 'all' };

/** What a sale has left, for its row. */
interface Refunded {
  sale: number;
  text: string;
}

/** A refund that no sale was shared out to yet: its share is new, and changes none of its own. */
const isFresh = ({ row }: ProcessingContext): boolean =>
  row.processed_at === null || row.state === 'held';

/**
 * How far into its group a batch reaches. Most refunds come alone, after their sale, and take of
 * what it has left: then nobody else is read again, and the thousandth costs what the tenth did.
 * @param sales  the sales of the group that were processed before
 */
const reachOf = (
  batch: readonly ProcessingContext[],
  sales: readonly Pick<PosEventRow, 'id' | 'refunded'>[],
  times: Times
): Reach => {
  if (batch.some(isSale)) return { relatives: 'all' };
  const [sale, second] = sales;
  if (!sale) return { relatives: 'none' };
  if (second || sale.refunded === null || !batch.every(isFresh)) return { relatives: 'all' };
  const { left, unknownLines } = readLeft(sale.refunded);
  const refunds = batch.filter(isRefund).map((work) => refundToShare(refundOfGroup(work, times)));
  const result = shareOnTop(left, refunds);
  if (!result) return { relatives: 'allocated' };
  const saleId = Number(sale.id);
  return {
    relatives: 'unchanged',
    outcomes: result.shared.map((one) => ({ ...one, status: 'allocated', sale: saleId })),
    unknownLines,
    refunded: { sale: saleId, text: writeLeft(result.left, unknownLines) },
  };
};

/**
 * A *refund group* is what is settled together: the sales of one id and the refunds that name it,
 * on connections that may know of each other, of one mode (rules/settle-refunds.ts). Of its members
 * some are in the batch that is being applied; those that were processed before are *relatives* of
 * these. How many of the relatives have to be read again is its *reach*.
 */
interface RefundGroup {
  key: string;
  /** Of the sale's id. */
  digest: string;
  /** Its members in the batch. */
  batch: ProcessingContext[];
  reach: Reach;
}

type Connections = ReadonlyMap<number, ConnectionRow>;

const CHUNK = 200;
/** Bodies of relatives are read this many at a time, and kept no longer than it takes. */
const BODIES = 20;

/** Adds to the list that a map has under a key. */
export const addTo = <K, V>(lists: Map<K, V[]>, key: K, value: V): void => {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
};

type GroupColumns = Pick<PosEventRow, 'mode' | 'family_digest'>;

/** The key of the group that a sale or refund belongs to. */
export const refundGroupKey = (row: GroupColumns, connection: ConnectionRow): string =>
  `${row.mode}/${connection.group_digest ?? `connection ${connection.id}`}/${row.family_digest}`;

/** Members by the key of their group; an inventory message belongs to none. */
const byRefundGroup = (works: readonly ProcessingContext[]): Map<string, ProcessingContext[]> => {
  const members = new Map<string, ProcessingContext[]>();
  for (const work of works) {
    if (work.row.family_digest !== null)
      addTo(members, refundGroupKey(work.row, work.connection), work);
  }
  return members;
};

const digestsOf = (works: readonly ProcessingContext[]): string[] => [
  ...new Set(works.flatMap(({ row }) => row.family_digest ?? [])),
];

/**
 * Rows of relatives, by the ids of their sales. An id may be of several groups: whoever asks compares
 * keys.
 */
const processedRows = async <Row>(
  tx: Tx,
  digests: readonly string[],
  connections: Connections,
  narrow: (query: Knex.QueryBuilder) => Knex.QueryBuilder
): Promise<Row[]> => {
  const rows: Row[] = [];
  for (let start = 0; start < digests.length; start += CHUNK) {
    const query = tx
      .table(POS_EVENTS_TABLE)
      .whereIn('family_digest', digests.slice(start, start + CHUNK))
      .whereIn('connection_id', [...connections.keys()])
      .whereNotIn('state', ['pending', 'failed']);
    for (const row of (await narrow(query)) as Row[]) rows.push(row);
  }
  return rows;
};

type SaleHead = Pick<PosEventRow, 'id' | 'connection_id' | 'family_digest' | 'mode' | 'refunded'>;

/** The sales that were processed before, by group; without their bodies. */
const saleHeads = async (
  tx: Tx,
  digests: readonly string[],
  connections: Connections
): Promise<Map<string, SaleHead[]>> => {
  const heads = new Map<string, SaleHead[]>();
  const rows = await processedRows<SaleHead>(tx, digests, connections, (query) =>
    query.select('id', 'connection_id', 'family_digest', 'mode', 'refunded').where({ kind: 'sale' })
  );
  for (const row of rows) {
    const connection = connections.get(Number(row.connection_id));
    if (connection) addTo(heads, refundGroupKey(row, connection), row);
  }
  return heads;
};

/**
 * The refund groups of the batch, and the reach of each. The lines of the batch must be resolved,
 * and its connections and those of their groups locked: nobody else then adds to them.
 */
export const planRefundGroups = async (
  tx: Tx,
  works: readonly ProcessingContext[],
  connections: Connections,
  times: Times
): Promise<RefundGroup[]> => {
  const sales = await saleHeads(tx, digestsOf(works), connections);
  const own = new Set(works.map(({ id }) => id));
  return [...byRefundGroup(works)].map(([key, batch]) => {
    const before = (sales.get(key) ?? []).filter(({ id }) => !own.has(Number(id)));
    const digest = batch[0]?.row.family_digest ?? '';
    return { key, digest, batch, reach: reachOf(batch, before, times) };
  });
};

const relativeIds = async (
  tx: Tx,
  digests: readonly string[],
  connections: Connections,
  which: 'allocated' | 'all'
): Promise<number[]> => {
  const rows = await processedRows<{ id: number }>(tx, digests, connections, (query) => {
    query.select('id').orderBy('id');
    if (which === 'all') return query;
    return query.where((allocated) => {
      allocated.where({ kind: 'sale' }).orWhereNull('took').orWhere('took', '>', 0);
    });
  });
  return rows.map(({ id }) => Number(id));
};

/** Hundreds of relatives with all that tills sent beside the lines would fill the memory. */
const withoutBody = (work: ProcessingContext): ProcessingContext => ({
  ...work,
  row: { ...work.row, body: '' },
  record: isSale(work) ? { ...work.record, customer: null, meta: null } : work.record,
});

/** The relatives that the reach of the groups asks for. */
export const loadRelatives = async (
  tx: Tx,
  groups: readonly RefundGroup[],
  connections: Connections
): Promise<ProcessingContext[]> => {
  const own = new Set(groups.flatMap(({ batch }) => batch.map(({ id }) => id)));
  const relatives: ProcessingContext[] = [];
  for (const which of ['allocated', 'all'] as const) {
    const reached = groups.filter(({ reach }) => reach.relatives === which);
    const keys = new Set(reached.map(({ key }) => key));
    const digests = [...new Set(reached.map(({ digest }) => digest))];
    const found = await relativeIds(tx, digests, connections, which);
    const ids = found.filter((id) => !own.has(id));
    for (let start = 0; start < ids.length; start += BODIES) {
      const rows = (await tx
        .table(POS_EVENTS_TABLE)
        .select('*')
        .whereIn('id', ids.slice(start, start + BODIES))) as PosEventRow[];
      for (const row of rows) {
        const connection = connections.get(Number(row.connection_id));
        if (!connection || !keys.has(refundGroupKey(row, connection))) continue;
        relatives.push(withoutBody(openContext(row, connection, false)));
      }
      await nextTurn();
    }
  }
  return relatives;
};

const other = (digest: string): Wait => ({
  digest,
  kind: 'other',
  value: null,
  inbox: null,
  pieces: 0,
});

const named = (kind: 'sku' | 'gtin', value: string, pieces: number): Wait => {
  const digest = mappingDigest(kind, value, null);
  return { digest, kind, value, inbox: digest, pieces };
};

/** What the lines of a record wait for whose items are not known; a line is in one row of the inbox. */
export const itemWaitsOf = (work: ProcessingContext): Wait[] => {
  const names = lineNames(work.record);
  return unknownLines(work).flatMap((line): Wait[] => {
    const { sku = null, gtin = null } = names[line] ?? {};
    const pieces = Math.abs(quantityOf(work.record, line));
    if (sku === null) return gtin === null ? [] : [named('gtin', gtin, pieces)];
    return [named('sku', sku, pieces), ...(gtin === null ? [] : [other(gtinDigest(gtin))])];
  });
};

/** What a record waits for whose location is not known. */
export const locationWaitOf = ({ record, connection, items, ignored }: ProcessingContext): Wait => {
  const id = Number(connection.id);
  const { locationRef } = record;
  if (locationRef === null) return other(connectionWait(id));
  const pieces = items.reduce(
    (sum: number, _item, line) =>
      ignored.includes(line) ? sum : sum + Math.abs(quantityOf(record, line)),
    0
  );
  const inbox = mappingDigest('location_ref', locationRef, id);
  return { digest: connectionWait(id), kind: 'location_ref', value: locationRef, inbox, pieces };
};

/** What a refund waits for whose sale, or whose location, its connection or its group may still have. */
const saleWaitOf = ({ connection }: ProcessingContext): Wait =>
  other(connectionWait(Number(connection.id)));

/** The quantities of refunds that are in the ledger, by refund, item and location. */
const postedOf = async (tx: Tx, refunds: readonly number[]): Promise<Posting[]> => {
  const postings: Posting[] = [];
  for (let start = 0; start < refunds.length; start += CHUNK) {
    const rows = (await tx
      .table(`${MOVEMENTS_TABLE} as m`)
      .join(`${LEVELS_TABLE} as l`, 'l.id', 'm.level_id')
      .select('m.event_id', 'l.item_id', 'l.location_id')
      .sum({ quantity: 'm.quantity' })
      .whereIn('m.event_id', refunds.slice(start, start + CHUNK))
      .groupBy('m.event_id', 'l.item_id', 'l.location_id')) as Record<string, number | string>[];
    for (const row of rows) {
      postings.push({
        refund: Number(row.event_id),
        item: Number(row.item_id),
        location: Number(row.location_id),
        quantity: Number(row.quantity),
      });
    }
  }
  return postings;
};

const groupSaleOf = (work: ContextOf<SaleRecord>): GroupSale => ({
  id: work.id,
  connection: Number(work.connection.id),
  lines: placedLines(work).map((line) => ({
    item: work.items[line] as number,
    location: work.locationId as number,
    quantity: work.record.lines[line]?.quantity ?? 0,
  })),
});

/** Lines whose item is not known: its own, or those of the sale that it refunds as a whole. */
const unknownLinesOf = (refund: ContextOf<RefundRecord>, ofSale: number): number =>
  refund.record.lines === null ? ofSale : unknownLines(refund).length;

const waitsOf = (refund: ContextOf<RefundRecord>, { status, shares }: RefundOutcome): Wait[] => {
  const homeless = shares.some(({ location }) => location === null);
  // Without lines it may have no share yet, while its sale waits too.
  const unmapped = namedLocation(refund) === 'unknown';
  return [
    ...itemWaitsOf(refund),
    ...(unmapped ? [locationWaitOf(refund)] : []),
    ...(homeless || status === 'held' || status === 'ambiguous' ? [saleWaitOf(refund)] : []),
  ];
};

/** Sets state, flags and waits of a refund from what its group came to. */
const settleRefund = (
  refund: ContextOf<RefundRecord>,
  outcome: RefundOutcome,
  unknownLines: number
): void => {
  refund.state = stateOfRefund(refund.row.mode, outcome, unknownLines);
  refund.flags = settledFlags(outcome);
  refund.took =
    outcome.status === 'allocated'
      ? outcome.shares.reduce((sum, { allocated }) => sum + allocated, 0)
      : 0;
  refund.waits = waitsOf(refund, outcome);
};

/** What the groups of a batch came to. */
class Settled {
  readonly refunds = new Map<number, ContextOf<RefundRecord>>();
  /** What the ledger should have of these refunds. */
  readonly postings: Posting[] = [];
  readonly refunded: Refunded[] = [];

  /** @param unknownOfSale  how many lines of the refund's sale are not in the ledger */
  add(refund: ContextOf<RefundRecord>, outcome: RefundOutcome, unknownOfSale: number): void {
    settleRefund(refund, outcome, unknownLinesOf(refund, unknownOfSale));
    this.refunds.set(refund.id, refund);
    this.postings.push(...postingsOf(outcome.id, outcome.shares));
  }
}

/** Refunds that change nobody else's share: how they come out is known from their reach. */
const settleOnTop = (
  batch: readonly ProcessingContext[],
  { outcomes, unknownLines, refunded }: Extract<Reach, { relatives: 'unchanged' }>,
  settled: Settled
): void => {
  const refunds = new Map(batch.filter(isRefund).map((work) => [work.id, work]));
  for (const outcome of outcomes) {
    const refund = refunds.get(outcome.id);
    if (refund) settled.add(refund, outcome, unknownLines);
  }
  settled.refunded.push(refunded);
};

const refundKeyOf = ({ row, record, connection }: ContextOf<RefundRecord>): RefundKey => ({
  effectiveMs: Number(row.effective_at),
  externalId: record.externalId,
  connection: Number(connection.id),
});

/** Shares the sales of a group out anew, to all of these members. */
const settleAnew = (
  members: readonly ProcessingContext[],
  times: Times,
  settled: Settled
): void => {
  const sales = new Map(members.filter(isSale).map((work) => [work.id, work]));
  const refunds = new Map(members.filter(isRefund).map((work) => [work.id, work]));
  const groupSales = [...sales.values()].map(groupSaleOf);
  const outcomes = settleRefunds(
    groupSales,
    [...refunds.values()].map((work) => refundOfGroup(work, times))
  );
  const shared = new Map<number, { refund: RefundKey; shares: RefundOutcome['shares'] }[]>();
  for (const outcome of outcomes) {
    const refund = refunds.get(outcome.id);
    if (!refund) continue;
    const sale = outcome.status === 'allocated' ? sales.get(outcome.sale) : undefined;
    settled.add(refund, outcome, sale ? waitingLines(sale) : 0);
    if (sale) addTo(shared, sale.id, { refund: refundKeyOf(refund), shares: outcome.shares });
  }
  for (const { id, lines } of groupSales) {
    const sale = sales.get(id);
    if (!sale) continue;
    const left = leftOfSale(lines, shared.get(id) ?? []);
    settled.refunded.push({ sale: id, text: writeLeft(left, waitingLines(sale)) });
  }
};

const settleAll = (
  groups: readonly RefundGroup[],
  relatives: readonly ProcessingContext[],
  times: Times
): Settled => {
  const relativesOf = byRefundGroup(relatives);
  const settled = new Settled();
  for (const { key, batch, reach } of groups) {
    if (reach.relatives === 'unchanged') {
      settleOnTop(batch, reach, settled);
      continue;
    }
    const members = [...batch, ...(relativesOf.get(key) ?? [])];
    if (members.some(isRefund)) settleAnew(members, times, settled);
  }
  return settled;
};

/** A difference that the ledger has to append, beside the refund it belongs to. */
export interface RefundDifference extends PostingDifference {
  work: ContextOf<RefundRecord>;
}

/** In test mode nothing was ever posted, so everything is appended. */
const toAppend = async (tx: Tx, { refunds, postings }: Settled): Promise<RefundDifference[]> => {
  const live = [...refunds.values()].filter(({ row }) => row.mode === 'live').map(({ id }) => id);
  const posted = await postedOf(tx, live);
  const todo = differences(postings, posted, (id) => refunds.get(id)?.record.restock ?? true);
  return todo.flatMap((difference) => {
    const work = refunds.get(difference.refund);
    return work ? [{ ...difference, work }] : [];
  });
};

/**
 * Settles every group that has a refund: sets state, flags and waits of its refunds, writes down
 * what its sales have left, and returns what the ledger has to append.
 * @param preview  nothing is written down
 */
export const settleRefundGroups = async (
  tx: Tx,
  groups: readonly RefundGroup[],
  relatives: readonly ProcessingContext[],
  times: Times,
  { preview = false }: { preview?: boolean } = {}
): Promise<RefundDifference[]> => {
  const settled = settleAll(groups, relatives, times);
  if (settled.refunds.size === 0) return [];
  for (const { sale, text } of preview ? [] : settled.refunded) {
    await tx.table(POS_EVENTS_TABLE).where({ id: sale }).update({ refunded: text });
  }
  return toAppend(tx, settled);
};
