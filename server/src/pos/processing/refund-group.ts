import type { Knex } from 'knex';
import { findInChunks } from '../../database/written-rows';
import type { Tx } from '../../database/db';
import { nextTurn } from '../../runtime/event-loop';
import { postedOf } from '../../stock/ledger';
import {
  differences,
  postingsOf,
  readLeft,
  type SaleLeft,
  shareOnTop,
  writeLeft,
} from '../../stock/rules/allocation';
import {
  type Counted,
  type ItemSum,
  readCounted,
  SumChanges,
  writeCounted,
} from '../sales-figures';
import type { ConnectionMode, RefundRecord, SaleRecord } from '../rules/records';
import {
  graceIsOver,
  type GroupRefund,
  type GroupSale,
  type MoneyLeft,
  type PricedGroup,
  type PricedRefund,
  priceOnTop,
  priceRefunds,
  type RefundOutcome,
  type RefundToPrice,
  type ReturnedPieces,
  settledFlags,
  settleRefunds,
  type SoldMoney,
  stateOfRefund,
} from '../rules/refunds';
import type { Connections } from '../connections';
import { POS_EVENTS_TABLE, type PosEventRow } from '../tables';
import {
  type ContextOf,
  isRefund,
  isSale,
  itemWaitsOf,
  locationWaitOf,
  openContext,
  placesOf,
  type ProcessingContext,
  readStored,
  type RefundDifference,
  saleWaitOf,
  unknownLines,
  waitingLines,
} from './resolve';

/** When groups are settled, and how long a refund waits for its sale; epoch milliseconds. */
export interface Times {
  nowMs: number;
  graceMs: number;
}

/** A sale or refund, with what its money is worked out from. */
type Member = Pick<ProcessingContext, 'row' | 'record' | 'items'>;

/** The full bodies of hundreds of members would fill the memory. */
const withoutBody = <M extends Member>(member: M): M => ({
  ...member,
  row: { ...member.row, body: '' },
  record:
    member.record.kind === 'sale'
      ? { ...member.record, customer: null, meta: null }
      : member.record,
});

/** Bodies are read this many at a time, and kept no longer than it takes. */
const BODIES = 20;

const readBodies = async <T>(
  tx: Tx,
  ids: readonly number[],
  open: (row: PosEventRow) => T[]
): Promise<T[]> => {
  const found: T[] = [];
  for (let start = 0; start < ids.length; start += BODIES) {
    const rows: PosEventRow[] = await tx
      .table(POS_EVENTS_TABLE)
      .whereIn('id', ids.slice(start, start + BODIES))
      .orderBy('id');
    for (const row of rows) found.push(...open(row));
    await nextTurn();
  }
  return found;
};

/** The sales and refunds of these ids that can be read, with what their bodies say of money. */
export const readMembers = (tx: Tx, ids: readonly number[]): Promise<Member[]> =>
  readBodies(tx, ids, (row): Member[] => {
    if (row.kind !== 'sale' && row.kind !== 'refund') return [];
    const reading = readStored(row.kind, row);
    if (!reading.ok) return [];
    const items = JSON.parse(row.items ?? '[]') as (number | null)[];
    return [withoutBody({ row, record: reading.value, items })];
  });

/** Members by the key of their group; an inventory message belongs to none. */
const byGroup = <M>(
  members: readonly M[],
  rowOf: (member: M) => Pick<PosEventRow, 'mode' | 'family_digest' | 'connection_id'>,
  connections: Connections
): Map<string, M[]> => {
  const groups = new Map<string, M[]>();
  for (const member of members) {
    const { mode, family_digest: digest, connection_id: id } = rowOf(member);
    const connection = connections.get(Number(id));
    if (!connection || digest === null) continue;
    const key = `${mode}/${connection.group_digest ?? `connection ${connection.id}`}/${digest}`;
    const known = groups.get(key);
    if (known) known.push(member);
    else groups.set(key, [member]);
  }
  return groups;
};

/** Rows by the ids of their sales. An id may be of several groups: the caller compares keys. */
const rowsOf = (tx: Tx, digests: readonly string[], connections: Connections): Knex.QueryBuilder =>
  tx
    .table(POS_EVENTS_TABLE)
    .whereIn('family_digest', digests)
    .whereIn('connection_id', [...connections.keys()]);

const notProcessed = ['pending', 'failed'];

const goodsOfRefund = (work: ContextOf<RefundRecord>, { nowMs, graceMs }: Times): GroupRefund => ({
  id: work.id,
  connection: Number(work.connection.id),
  effectiveMs: Number(work.row.effective_at),
  externalId: work.record.externalId,
  lines:
    work.record.lines?.flatMap(({ quantity }, line) => {
      const item = work.items[line] ?? null;
      return item === null ? [] : [{ line, item, quantity }];
    }) ?? null,
  destination: work.locationId ?? (work.record.locationRef === null ? 'of_sale' : 'unknown'),
  onlyLocation: work.onlyLocationId,
  graceOver: graceIsOver(Number(work.row.received_at), nowMs, graceMs),
  accepted: (work.row.accepted_at ?? null) !== null,
});

const goodsOfSale = (work: ContextOf<SaleRecord>): GroupSale => ({
  id: work.id,
  connection: Number(work.connection.id),
  lines: placesOf(work).flatMap((place, line) =>
    place ? [{ ...place, quantity: work.record.lines[line]?.quantity ?? 0 }] : []
  ),
});

const moneyOf = (members: readonly Member[]): [SoldMoney[], RefundToPrice[]] => {
  const sales: SoldMoney[] = [];
  const refunds: RefundToPrice[] = [];
  for (const { row, record } of members) {
    const ids = { id: Number(row.id), connection: Number(row.connection_id) };
    if (record.kind === 'sale') sales.push({ ...record, ...ids });
    if (record.kind === 'refund') {
      refunds.push({ ...record, ...ids, effectiveMs: Number(row.effective_at) });
    }
  }
  return [sales, refunds];
};

/** The cost of the refunds of these sales' ids by all accepted records of a mode, processed or not; by their ids. */
export const priceAccepted = async (
  tx: Tx,
  digests: Iterable<string>,
  mode: ConnectionMode,
  connections: Connections
): Promise<Map<number, PricedRefund>> => {
  const rows = await findInChunks<{ id: number }, string>(digests, (some) =>
    rowsOf(tx, some, connections).select('id').where({ mode }).orderBy('id')
  );
  const ids = rows.map(({ id }) => Number(id));
  const members = await readMembers(tx, ids);
  const groups = byGroup(members, ({ row }) => row, connections);
  return new Map(
    [...groups.values()].flatMap((group) => [...priceRefunds(...moneyOf(group)).refunds])
  );
};

/** A sale or refund that closings may count otherwise now. */
export type Touched = Pick<PosEventRow, 'connection_id' | 'mode' | 'occurred_ms'>;

/** Larger item sums of a record are not counted, so that columns cannot overflow; totals do not depend on it. */
const LARGEST = 10n ** 18n;

/** Some pieces at one unit price; null: their item is unknown. */
type PricedPieces = Pick<ReturnedPieces, 'quantity' | 'unitPrice'> & { item: number | null };

const figuresOf = (lines: readonly PricedPieces[]): Pick<Counted, 'pieces' | 'items'> => {
  const sums = new Map<number, ItemSum>();
  for (const { item, quantity, unitPrice } of lines) {
    if (item === null) continue;
    const { total, pieces } = sums.get(item) ?? { total: 0n, pieces: 0 };
    const price = BigInt(quantity) * BigInt(unitPrice ?? 0);
    sums.set(item, { total: total + price, pieces: pieces + quantity });
  }
  return {
    pieces: lines.reduce((sum, { quantity }) => sum + quantity, 0),
    items: new Map([...sums].filter(([, { total }]) => total <= LARGEST && total >= -LARGEST)),
  };
};

const countedSale = ({ record, items }: ContextOf<SaleRecord>): Counted => {
  const lines = record.lines.map(({ quantity, unitPrice }, line) => ({
    item: items[line] ?? null,
    quantity,
    unitPrice,
  }));
  const amount = BigInt(record.total);
  return { currency: record.currency, amount, sale: null, ...figuresOf(lines) };
};

const countedRefund = (
  member: ProcessingContext,
  { currency, amount, sale, pieces }: PricedRefund,
  members: readonly ProcessingContext[]
): Counted | null => {
  if (currency === null) return null;
  const sold = members.find(({ id }) => id === sale);
  const lines = pieces.map(({ saleLine, refundLine, quantity, unitPrice }) => {
    const own = refundLine === null ? null : (member.items[refundLine] ?? null);
    const ofSale = saleLine === null ? null : (sold?.items[saleLine] ?? null);
    return { item: own ?? ofSale, quantity, unitPrice };
  });
  return { currency, amount, sale, ...figuresOf(lines) };
};

const readMoneyLeft = (text: string): MoneyLeft => {
  const { left, rest } = JSON.parse(text) as { left: number[]; rest: string };
  return { left, rest: BigInt(rest) };
};

const updateRow = async (tx: Tx, id: number, columns: Partial<PosEventRow>): Promise<void> => {
  await tx.table(POS_EVENTS_TABLE).where({ id }).update(columns);
};

class Counting {
  readonly changes = new SumChanges();
  /** Sales whose refunds cost otherwise now. */
  readonly repriced = new Set<number>();

  /** @param after  what the figures are to have of the member; one of the batch is written with it */
  async count(tx: Tx, member: ProcessingContext, after: Counted | null): Promise<void> {
    const text = after && writeCounted(after);
    const { counted: known } = member.row;
    member.counted = text;
    if (text === known) return;
    const before = known === null ? null : readCounted(known);
    this.changes.replace(member.row, before, after);
    for (const one of [before, after]) if (one && one.sale !== null) this.repriced.add(one.sale);
    if (!member.inBatch) await updateRow(tx, member.id, { counted: text });
  }

  async setLeft(tx: Tx, sale: ProcessingContext, left: MoneyLeft | null): Promise<void> {
    const text = left && JSON.stringify({ left: left.left, rest: String(left.rest) });
    if (text !== (sale.row.money_left ?? null)) await updateRow(tx, sale.id, { money_left: text });
  }
}

type SaleHead = Pick<
  PosEventRow,
  'id' | 'connection_id' | 'family_digest' | 'mode' | 'refunded' | 'money_left'
>;

/** Which of the relatives have to be looked at again: none, those that were allocated anything, all. */
type Reach = 'none' | 'allocated' | 'all';

interface SettledGoods {
  outcomes: RefundOutcome[];
  /** The rest of sales, by their ids, and how many of their lines are not in the ledger. */
  left: ReadonlyMap<number, { left: SaleLeft; unknownLines: number }>;
}

interface PricedMembers extends PricedGroup {
  members: readonly ProcessingContext[];
}

/** A refund that no sale was shared out to yet: its share is new, and changes none of its own. */
const isFresh = ({ row }: ProcessingContext): boolean =>
  row.processed_at === null || row.state === 'held';

/** Sets state, flags and waits of a refund from what its group came to. */
const settleRefund = (
  refund: ContextOf<RefundRecord>,
  outcome: RefundOutcome,
  { left }: SettledGoods
): void => {
  const { status, shares } = outcome;
  const homeless = shares.some(({ location }) => location === null);
  const allocated = status === 'allocated' ? shares : [];
  const ofSale = status === 'allocated' ? (left.get(outcome.sale)?.unknownLines ?? 0) : 0;
  const unknown = refund.record.lines === null ? ofSale : unknownLines(refund).length;
  refund.state = stateOfRefund(refund.row.mode, outcome, unknown);
  refund.flags = settledFlags(outcome);
  refund.took = allocated.reduce((sum, share) => sum + share.allocated, 0);
  refund.waits = [
    ...itemWaitsOf(refund),
    // Without lines it may have no share yet, while its sale waits too.
    ...(refund.locationId === null && refund.record.locationRef !== null
      ? [locationWaitOf(refund)]
      : []),
    ...(homeless || status === 'held' || status === 'ambiguous' ? [saleWaitOf(refund)] : []),
  ];
};

/**
 * Records that are settled together: the sales of one id and the refunds that name it, of one mode, on connections of
 * one group (rules/refunds.ts). *Relatives* are members that were processed in earlier batches. Most refunds come one
 * by one after their sale, within what it has left. Then only the sale is read, and each costs the same.
 */
export class RefundGroup {
  /** As far as they have to be looked at again. */
  readonly relatives: ProcessingContext[] = [];
  /** The sale by whose body refunds are priced that may come on top of all others. */
  readonly saleToPrice: number | null;
  /** Test mode counts for nothing. */
  private readonly isLive: boolean;
  /** It has only refunds, which were not counted yet. */
  private readonly isNewMoney: boolean;
  /** The goods of the batch by itself; null if the relatives are settled with it. */
  private goods: SettledGoods | null = null;
  private money: PricedMembers | null = null;

  /**
   * @param batch its members in the batch, their lines resolved
   * @param sales earlier ones, without bodies; not needed if the batch has one
   */
  constructor(
    readonly batch: readonly ProcessingContext[],
    private readonly sales: readonly SaleHead[],
    private readonly times: Times
  ) {
    this.isLive = batch[0]?.row.mode === 'live';
    this.isNewMoney =
      this.isLive && batch.every((work) => isRefund(work) && work.row.counted === null);
    const [sale, second] = sales;
    const isPlain = sale && !second && (sale.money_left ?? null) !== null;
    this.saleToPrice = isPlain && this.isNewMoney ? Number(sale.id) : null;
  }

  /** Relatives whose goods are settled with the batch's; others are only counted with them. */
  get settledRelatives(): readonly ProcessingContext[] {
    return this.goods ? [] : this.relatives;
  }

  /** For a batch of refunds only. @returns the relatives to read */
  plan(sale: ProcessingContext | undefined, withMoney: boolean): Reach {
    const reach = this.planGoods();
    if (!withMoney || reach === 'all') return reach;
    this.money = this.planMoney(sale);
    if (this.money || (!this.isLive && this.sales.length === 0)) return reach;
    return 'all';
  }

  private planGoods(): Reach {
    const { batch, times } = this;
    const [sale, second] = this.sales;
    const refunds = batch.filter(isRefund).map((work) => goodsOfRefund(work, times));
    if (!sale) {
      // Each refund is held, or stands, by itself.
      this.goods = { ...settleRefunds([], refunds), left: new Map() };
      return 'none';
    }
    if (second || sale.refunded === null || !batch.every(isFresh)) return 'all';
    const { left, unknownLines: unknown } = readLeft(sale.refunded);
    const result = shareOnTop(left, refunds);
    if (!result) return 'allocated';
    const id = Number(sale.id);
    this.goods = {
      outcomes: result.shared.map((one) => ({ ...one, status: 'allocated', sale: id })),
      left: new Map([[id, { left: result.left, unknownLines: unknown }]]),
    };
    return 'none';
  }

  private planMoney(sale: ProcessingContext | undefined): PricedMembers | null {
    if (!this.isNewMoney) return null;
    const [, refunds] = moneyOf(this.batch);
    if (this.sales.length === 0) return { ...priceRefunds([], refunds), members: this.batch };
    const [sold] = sale ? moneyOf([sale])[0] : [];
    if (!sale || !sold || sale.row.money_left === null) return null;
    const result = priceOnTop(sold, readMoneyLeft(sale.row.money_left), refunds);
    return (
      result && {
        refunds: new Map(result.priced.map((one) => [one.id, one])),
        left: new Map([[sale.id, result.left]]),
        members: [...this.batch, sale],
      }
    );
  }

  settleGoods(): SettledGoods & { refunds: readonly ContextOf<RefundRecord>[] } {
    const members = [...this.batch, ...this.settledRelatives];
    const refunds = members.filter(isRefund);
    if (refunds.length === 0) return { refunds, outcomes: [], left: new Map() };
    const goods = this.goods ?? this.settleMembers(members.filter(isSale), refunds);
    const outcomes = new Map(goods.outcomes.map((outcome) => [outcome.id, outcome]));
    for (const refund of refunds) {
      const outcome = outcomes.get(refund.id);
      if (outcome) settleRefund(refund, outcome, goods);
    }
    return { ...goods, refunds };
  }

  private settleMembers(
    sales: readonly ContextOf<SaleRecord>[],
    refunds: readonly ContextOf<RefundRecord>[]
  ): SettledGoods {
    const goods = refunds.map((work) => goodsOfRefund(work, this.times));
    const { outcomes, left } = settleRefunds(sales.map(goodsOfSale), goods);
    return {
      outcomes,
      left: new Map(
        sales.map((sale) => [
          sale.id,
          { left: left.get(sale.id) ?? [], unknownLines: waitingLines(sale) },
        ])
      ),
    };
  }

  private priceMembers(): PricedMembers {
    const members = [...this.batch, ...this.relatives];
    const isPlain = members.every((work) => isSale(work) && (work.row.money_left ?? null) === null);
    // Most sales have no refund.
    const priced = isPlain
      ? { refunds: new Map(), left: new Map() }
      : priceRefunds(...moneyOf(members));
    return { ...priced, members };
  }

  async countMoney(tx: Tx, counting: Counting): Promise<void> {
    if (!this.isLive) return;
    const { members, refunds, left } = this.money ?? this.priceMembers();
    const refunded = new Set([...refunds.values()].map(({ sale }) => sale));
    for (const member of members) {
      const price = refunds.get(member.id);
      if (price) await counting.count(tx, member, countedRefund(member, price, members));
      else if (isSale(member)) await counting.count(tx, member, countedSale(member));
      const rest = left.get(member.id);
      const isNews = refunded.has(member.id) || (member.row.money_left ?? null) !== null;
      if (rest !== undefined && isNews) await counting.setLeft(tx, member, rest);
    }
  }
}

const openRelatives = (tx: Tx, ids: readonly number[], connections: Connections) =>
  readBodies(tx, ids, (row) => {
    const connection = connections.get(Number(row.connection_id));
    return connection ? [withoutBody(openContext(row, connection, false))] : [];
  });

const loadRelatives = async (
  tx: Tx,
  groups: ReadonlyMap<string, RefundGroup>,
  which: Exclude<Reach, 'none'>,
  connections: Connections
): Promise<void> => {
  const digests = [...groups.values()].flatMap(({ batch }) => batch[0]?.row.family_digest ?? []);
  const rows = await findInChunks<SaleHead, string>(digests, (some) => {
    const query = rowsOf(tx, some, connections).whereNotIn('state', notProcessed);
    query.select('id', 'connection_id', 'family_digest', 'mode').orderBy('id');
    if (which === 'all') return query;
    return query.where((allocated) => {
      allocated.where({ kind: 'sale' }).orWhereNull('took').orWhere('took', '>', 0);
    });
  });
  for (const [key, found] of byGroup(rows, (row) => row, connections)) {
    const group = groups.get(key);
    if (!group) continue;
    const own = new Set(group.batch.map(({ id }) => id));
    const ids = found.map(({ id }) => Number(id)).filter((id) => !own.has(id));
    if (ids.length > 0) group.relatives.push(...(await openRelatives(tx, ids, connections)));
  }
};

/**
 * Refund groups of the batch, with the relatives to settle again. Requires resolved lines and locked connections with
 * their groups, so that no other process adds to them.
 * @param withMoney the groups are counted, too
 */
export const loadRefundGroups = async (
  tx: Tx,
  works: readonly ProcessingContext[],
  connections: Connections,
  { times, withMoney }: { times: Times; withMoney: boolean }
): Promise<RefundGroup[]> => {
  const batches = byGroup(works, ({ row }) => row, connections);
  // The relatives of a sale of the batch are looked at anyway.
  const digests = [...batches.values()].flatMap((batch) =>
    batch.some(isSale) ? [] : (batch[0]?.row.family_digest ?? [])
  );
  const heads = await findInChunks<SaleHead, string>(digests, (some) =>
    rowsOf(tx, some, connections)
      .select('id', 'connection_id', 'family_digest', 'mode', 'refunded', 'money_left')
      .where({ kind: 'sale' })
      .whereNotIn('state', notProcessed)
  );
  const sales = byGroup(heads, (row) => row, connections);
  const groups = [...batches].map(
    ([key, batch]) => [key, new RefundGroup(batch, sales.get(key) ?? [], times)] as const
  );
  const toPrice = withMoney ? groups.flatMap(([, { saleToPrice }]) => saleToPrice ?? []) : [];
  const priced = toPrice.length > 0 ? await openRelatives(tx, toPrice, connections) : [];
  const reaches = groups.map(([, group]): Reach => {
    const sale = priced.find(({ id }) => id === group.saleToPrice);
    return group.batch.some(isSale) ? 'all' : group.plan(sale, withMoney);
  });
  for (const which of ['allocated', 'all'] as const) {
    const reached = groups.filter((_group, at) => reaches[at] === which);
    await loadRelatives(tx, new Map(reached), which, connections);
  }
  return groups.map(([, group]) => group);
};

/** Settles refunds, stores what their sales have left (unless `preview`), and returns the ledger lines to append. */
export const settleGoods = async (
  tx: Tx,
  groups: readonly RefundGroup[],
  { preview }: { preview: boolean }
): Promise<RefundDifference[]> => {
  const settled = groups.map((group) => group.settleGoods());
  for (const [id, { left, unknownLines: unknown }] of preview
    ? []
    : settled.flatMap((one) => [...one.left])) {
    await updateRow(tx, id, { refunded: writeLeft(left, unknown) });
  }
  const refunds = new Map(settled.flatMap((one) => one.refunds).map((work) => [work.id, work]));
  if (refunds.size === 0) return [];
  // In test mode nothing was ever posted, so everything is appended.
  const live = [...refunds.values()].filter(({ row }) => row.mode === 'live').map(({ id }) => id);
  const posted = await postedOf(tx, live);
  const postings = settled
    .flatMap(({ outcomes }) => outcomes)
    .flatMap(({ id, shares }) => postingsOf(id, shares));
  const todo = differences(postings, posted, (id) => refunds.get(id)?.record.restock ?? true);
  return todo.flatMap((difference) => {
    const work = refunds.get(difference.refund);
    return work ? [{ ...difference, work }] : [];
  });
};

/**
 * Counts the groups in money, in the processing transaction: sets `counted` in the batch, updates sales figures and
 * relatives. Returns the closings to compare again, and the ids of sales whose refunds changed their cost.
 */
export const countMoney = async (
  tx: Tx,
  groups: readonly RefundGroup[]
): Promise<{ touched: Touched[]; repriced: number[] }> => {
  const counting = new Counting();
  for (const group of groups) await group.countMoney(tx, counting);
  await counting.changes.save(tx);
  return {
    touched: groups
      .flatMap(({ batch, relatives }) => [...batch, ...relatives])
      .map(({ row }) => row),
    repriced: [...counting.repriced],
  };
};
