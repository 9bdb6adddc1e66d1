import type { Knex } from 'knex';
import { findInChunks } from '../../database/written-rows';
import type { Tx } from '../../database/db';
import { nextTurn } from '../../runtime/event-loop';
import { postedOf } from '../../stock/ledger';
import {
  differences,
  type Posting,
  type PostingDifference,
  postingsOf,
  readLeft,
  shareOnTop,
  writeLeft,
} from '../../stock/rules/allocation';
import {
  type Counted,
  type ItemSum,
  readCounted,
  SumChanges,
  writeCounted,
} from '../money/sales-figures';
import type { RefundRecord, SaleRecord } from '../rules/records';
import {
  graceIsOver,
  type GroupRefund,
  type GroupSale,
  type MoneyLeft,
  type PricedRefund,
  priceOnTop,
  priceRefunds,
  type RefundOutcome,
  refundToShare,
  type RefundToPrice,
  settledFlags,
  settleRefunds,
  type SoldMoney,
  stateOfRefund,
} from '../rules/refunds';
import type { ConnectionMode } from '../rules/states';
import { readRecord } from '../rules/validate';
import { type ConnectionRow, POS_EVENTS_TABLE, type PosEventRow } from '../tables';
import {
  type ContextOf,
  isRefund,
  isSale,
  itemWaitsOf,
  locationWaitOf,
  namedLocation,
  openContext,
  placedLines,
  type ProcessingContext,
  saleWaitOf,
  unknownLines,
  waitingLines,
} from './processing-context';

/** When groups are settled, and how long a refund waits for its sale; epoch milliseconds. */
export interface Times {
  nowMs: number;
  graceMs: number;
}

export type Connections = ReadonlyMap<number, ConnectionRow>;

/** A sale or refund, with what its money is worked out from. */
type Member = Pick<ProcessingContext, 'row' | 'record' | 'items'>;

/** Hundreds of members with all that tills sent beside the lines would fill the memory. */
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
    const receivedAtMs = Number(row.received_at);
    const reading = readRecord(row.kind, Buffer.from(row.body, 'utf8'), { receivedAtMs });
    if (!reading.ok) return [];
    const items = JSON.parse(row.items ?? '[]') as (number | null)[];
    return [withoutBody({ row, record: reading.record, items })];
  });

type GroupColumns = Pick<PosEventRow, 'mode' | 'family_digest' | 'connection_id'>;

/** Members by the key of their group; an inventory message belongs to none. */
const byGroup = <M extends { row: GroupColumns }>(
  members: readonly M[],
  connections: Connections
): Map<string, M[]> => {
  const groups = new Map<string, M[]>();
  for (const member of members) {
    const { mode, family_digest: digest, connection_id: id } = member.row;
    const connection = connections.get(Number(id));
    if (!connection || digest === null) continue;
    const key = `${mode}/${connection.group_digest ?? `connection ${connection.id}`}/${digest}`;
    const known = groups.get(key);
    if (known) known.push(member);
    else groups.set(key, [member]);
  }
  return groups;
};

/**
 * Rows by the ids of their sales. An id may be of several groups: whoever asks compares keys.
 */
const rowsOf = <Row>(
  tx: Tx,
  digests: Iterable<string>,
  connections: Connections,
  narrow: (query: Knex.QueryBuilder) => Knex.QueryBuilder
): Promise<Row[]> =>
  findInChunks<Row, string>(digests, (some) =>
    narrow(
      tx
        .table(POS_EVENTS_TABLE)
        .whereIn('family_digest', some)
        .whereIn('connection_id', [...connections.keys()])
    )
  );

const notProcessed = ['pending', 'failed'];

/** A refund as the rules of goods see it. */
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
  namedLocation: namedLocation(work),
  onlyLocation: work.onlyLocationId,
  graceOver: graceIsOver(Number(work.row.received_at), nowMs, graceMs),
  accepted: (work.row.accepted_at ?? null) !== null,
});

const goodsOfSale = (work: ContextOf<SaleRecord>): GroupSale => ({
  id: work.id,
  connection: Number(work.connection.id),
  lines: placedLines(work).map((line) => ({
    item: work.items[line] as number,
    location: work.locationId as number,
    quantity: work.record.lines[line]?.quantity ?? 0,
  })),
});

const moneyOfSale = ({ row, record }: Member): SoldMoney[] =>
  record.kind === 'sale'
    ? [{ ...record, id: Number(row.id), connection: Number(row.connection_id) }]
    : [];

const moneyOfRefund = ({ row, record }: Member): RefundToPrice[] => {
  if (record.kind !== 'refund') return [];
  const { id, connection_id: connection, effective_at: effectiveMs } = row;
  return [
    { ...record, id: Number(id), connection: Number(connection), effectiveMs: Number(effectiveMs) },
  ];
};

const priceGroup = (members: readonly Member[]) =>
  priceRefunds(members.flatMap(moneyOfSale), members.flatMap(moneyOfRefund));

/**
 * What the refunds of these sales' ids cost by all that was accepted in a mode, whether it was
 * processed or not; by their ids.
 */
export const priceAccepted = async (
  tx: Tx,
  digests: Iterable<string>,
  mode: ConnectionMode,
  connections: Connections
): Promise<Map<number, PricedRefund>> => {
  const rows = await rowsOf<{ id: number }>(tx, digests, connections, (query) =>
    query.select('id').where({ mode }).orderBy('id')
  );
  const members = await readMembers(
    tx,
    rows.map(({ id }) => Number(id))
  );
  const groups = [...byGroup(members, connections).values()];
  return new Map(groups.flatMap((group) => [...priceGroup(group).refunds]));
};

/** A sale or refund that closings may count otherwise now. */
export interface Touched {
  connection: number;
  mode: ConnectionMode;
  /** `occurred_at`, epoch milliseconds. */
  at: number;
}

type Base = Pick<Counted, 'kind' | 'connection' | 'at'>;

const baseOf = ({ row, record }: ProcessingContext): Base => ({
  kind: record.kind as Base['kind'],
  connection: Number(row.connection_id),
  at: Number(row.effective_at),
});

/**
 * A record's sum of an item that is larger is no figure, so that no number of them is more than the
 * columns hold; totals do not hang on it.
 */
const LARGEST = 10n ** 18n;
const isFigure = (total: bigint): boolean => total <= LARGEST && total >= -LARGEST;

/** Some pieces for one price each; null: nobody knows of which item, or at which price. */
interface PricedPieces {
  item: number | null;
  quantity: number;
  unitPrice: number | null;
}

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
    items: new Map([...sums].filter(([, { total }]) => isFigure(total))),
  };
};

const countedSale = (member: ContextOf<SaleRecord>): Counted => {
  const { record, items } = member;
  const lines = record.lines.map(({ quantity, unitPrice }, line) => ({
    item: items[line] ?? null,
    quantity,
    unitPrice,
  }));
  const amount = BigInt(record.total);
  return { ...baseOf(member), currency: record.currency, amount, sale: null, ...figuresOf(lines) };
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
  return { ...baseOf(member), currency, amount, sale, ...figuresOf(lines) };
};

const leftText = (left: MoneyLeft | null): string | null =>
  left && JSON.stringify({ left: left.left, rest: String(left.rest) });

const readMoneyLeft = (text: string): MoneyLeft => {
  const { left, rest } = JSON.parse(text) as { left: number[]; rest: string };
  return { left, rest: BigInt(rest) };
};

/** What members come to, and what their sales have left. */
class Counting {
  private readonly changes = new SumChanges();
  /** Sales whose refunds cost otherwise now. */
  readonly repriced = new Set<number>();

  constructor(private readonly tx: Tx) {}

  private async update(id: number, columns: Partial<PosEventRow>): Promise<void> {
    await this.tx.table(POS_EVENTS_TABLE).where({ id }).update(columns);
  }

  /** @param after  what the figures are to have of the member; one of the batch is written with it */
  async count(member: ProcessingContext, after: Counted | null): Promise<void> {
    const text = after && writeCounted(after);
    const known = member.row.counted;
    member.counted = text;
    if (text === known) return;
    const before = known === null ? null : readCounted(known, baseOf(member));
    this.changes.replace(before, after);
    for (const one of [before, after]) if (one && one.sale !== null) this.repriced.add(one.sale);
    if (!member.mine) await this.update(member.id, { counted: text });
  }

  async setLeft({ id, row }: ProcessingContext, left: MoneyLeft | null): Promise<void> {
    const text = leftText(left);
    if (text !== (row.money_left ?? null)) await this.update(id, { money_left: text });
  }

  save(): Promise<void> {
    return this.changes.save(this.tx);
  }
}

type SaleHead = Pick<
  PosEventRow,
  'id' | 'connection_id' | 'family_digest' | 'mode' | 'refunded' | 'money_left'
>;

/** Which of the relatives have to be looked at again: none, those that were allocated anything, all. */
const REACHES = ['none', 'allocated', 'all'] as const;
type Reach = (typeof REACHES)[number];

/** What refunds came to in goods on top of others. */
interface GoodsOnTop {
  sale: number;
  outcomes: RefundOutcome[];
  /** Of the sale: lines that are not in the ledger. */
  unknownLines: number;
  /** What the sale has left, for its row. */
  refunded: string;
}

interface MoneyOnTop {
  sale: ProcessingContext | null;
  priced: PricedRefund[];
  left: MoneyLeft | null;
}

/** A refund that no sale was shared out to yet: its share is new, and changes none of its own. */
const isFresh = ({ row }: ProcessingContext): boolean =>
  row.processed_at === null || row.state === 'held';

/** Lines whose item is not known: its own, or those of the sale that it refunds as a whole. */
const unknownLinesOf = (refund: ContextOf<RefundRecord>, ofSale: number): number =>
  refund.record.lines === null ? ofSale : unknownLines(refund).length;

/** Sets state, flags and waits of a refund from what its group came to. */
const settleRefund = (
  refund: ContextOf<RefundRecord>,
  outcome: RefundOutcome,
  unknownOfSale: number
): void => {
  const { status, shares } = outcome;
  const homeless = shares.some(({ location }) => location === null);
  const allocated = status === 'allocated' ? shares : [];
  refund.state = stateOfRefund(refund.row.mode, outcome, unknownLinesOf(refund, unknownOfSale));
  refund.flags = settledFlags(outcome);
  refund.took = allocated.reduce((sum, share) => sum + share.allocated, 0);
  refund.waits = [
    ...itemWaitsOf(refund),
    // Without lines it may have no share yet, while its sale waits too.
    ...(namedLocation(refund) === 'unknown' ? [locationWaitOf(refund)] : []),
    ...(homeless || status === 'held' || status === 'ambiguous' ? [saleWaitOf(refund)] : []),
  ];
};

/**
 * What is settled together: the sales of one id and the refunds that name it, on connections that may
 * know of each other, of one mode (rules/refunds.ts). Some of its members are in the batch that is
 * being applied; those that were processed before are *relatives* of these.
 *
 * Most refunds come alone, after their sale, and take of what it has left, of its goods and of its
 * money. Then no relative but the sale is read, and the thousandth costs what the tenth did.
 */
export class RefundGroup {
  /** As far as they have to be looked at again. */
  readonly relatives: ProcessingContext[] = [];
  private goodsReach: Reach = 'all';
  private goodsOnTop: GoodsOnTop | null = null;
  private moneyOnTop: MoneyOnTop | null = null;

  /**
   * @param batch  its members in the batch, their lines resolved
   * @param sales  those that were processed before, without their bodies
   */
  constructor(
    readonly key: string,
    readonly batch: readonly ProcessingContext[],
    readonly sales: readonly SaleHead[],
    private readonly times: Times
  ) {}

  /** Of the sale's id. */
  get digest(): string {
    return this.batch[0]?.row.family_digest ?? '';
  }

  /** Those whose goods are settled with the batch's; others are only counted with them. */
  get settledRelatives(): readonly ProcessingContext[] {
    return this.goodsReach === 'none' ? [] : this.relatives;
  }

  private get isLive(): boolean {
    return this.batch[0]?.row.mode === 'live';
  }

  /** The sale by whose body refunds are priced that may come on top of all others. */
  get saleToPrice(): number[] {
    const [sale, second] = this.sales;
    const isPlain = sale && !second && (sale.money_left ?? null) !== null;
    return isPlain && this.isNewMoney() ? [Number(sale.id)] : [];
  }

  /** @returns which relatives have to be read */
  plan(sale: ProcessingContext | undefined, withMoney: boolean): Reach {
    this.goodsReach = this.planGoods();
    if (!withMoney || this.goodsReach === 'all') return this.goodsReach;
    this.moneyOnTop = this.planMoney(sale);
    if (this.moneyOnTop || (!this.isLive && this.sales.length === 0)) return this.goodsReach;
    return 'all';
  }

  private planGoods(): Reach {
    const { batch } = this;
    const [sale, second] = this.sales;
    if (batch.some(isSale)) return 'all';
    // There is no sale yet, and each refund is held, or stands, by itself.
    if (!sale) return 'none';
    if (second || sale.refunded === null || !batch.every(isFresh)) return 'all';
    const { left, unknownLines: unknown } = readLeft(sale.refunded);
    const refunds = batch.filter(isRefund).map((work) => goodsOfRefund(work, this.times));
    const result = shareOnTop(left, refunds.map(refundToShare));
    if (!result) return 'allocated';
    const id = Number(sale.id);
    this.goodsOnTop = {
      sale: id,
      outcomes: result.shared.map((one) => ({ ...one, status: 'allocated', sale: id })),
      unknownLines: unknown,
      refunded: writeLeft(result.left, unknown),
    };
    return 'none';
  }

  private isNewMoney(): boolean {
    return this.isLive && this.batch.every((work) => isRefund(work) && work.row.counted === null);
  }

  private planMoney(sale: ProcessingContext | undefined): MoneyOnTop | null {
    if (!this.isNewMoney()) return null;
    const refunds = this.batch.flatMap(moneyOfRefund);
    if (this.sales.length === 0) {
      return { sale: null, priced: [...priceRefunds([], refunds).refunds.values()], left: null };
    }
    const [sold] = sale ? moneyOfSale(sale) : [];
    if (!sale || !sold || sale.row.money_left === null) return null;
    const result = priceOnTop(sold, readMoneyLeft(sale.row.money_left), refunds);
    return result && { sale, ...result };
  }

  /** Shares the goods of the group's sales out. */
  settleGoods(settled: SettledGroups): void {
    const { goodsOnTop, batch } = this;
    const members = [...batch, ...this.settledRelatives];
    const refunds = new Map(members.filter(isRefund).map((work) => [work.id, work]));
    if (refunds.size === 0) return;
    if (goodsOnTop) {
      const { sale, outcomes, refunded, unknownLines: unknown } = goodsOnTop;
      for (const outcome of outcomes) settled.add(refunds.get(outcome.id), outcome, unknown);
      settled.refunded.set(sale, refunded);
      return;
    }
    const sales = new Map(members.filter(isSale).map((work) => [work.id, work]));
    const { outcomes, left } = settleRefunds(
      [...sales.values()].map(goodsOfSale),
      [...refunds.values()].map((work) => goodsOfRefund(work, this.times))
    );
    for (const outcome of outcomes) {
      const sale = outcome.status === 'allocated' ? sales.get(outcome.sale) : undefined;
      settled.add(refunds.get(outcome.id), outcome, sale ? waitingLines(sale) : 0);
    }
    for (const [id, sale] of sales) {
      settled.refunded.set(id, writeLeft(left.get(id) ?? [], waitingLines(sale)));
    }
  }

  /** Counts what its members come to in money. Test mode counts for nothing. */
  async countMoney(counting: Counting): Promise<void> {
    if (!this.isLive) return;
    if (this.moneyOnTop) {
      const { sale, priced, left } = this.moneyOnTop;
      const members = [...this.batch, ...(sale ? [sale] : [])];
      for (const price of priced) {
        const member = members.find(({ id }) => id === price.id);
        if (member) await counting.count(member, countedRefund(member, price, members));
      }
      if (sale) await counting.setLeft(sale, left);
      return;
    }
    const members = [...this.batch, ...this.relatives];
    const { refunds, left } = priceGroup(members);
    const refunded = new Set([...refunds.values()].map(({ sale }) => sale));
    for (const member of members) {
      const price = refunds.get(member.id);
      if (price) await counting.count(member, countedRefund(member, price, members));
      else if (isSale(member)) await counting.count(member, countedSale(member));
      const rest = left.get(member.id);
      const isNews = refunded.has(member.id) || (member.row.money_left ?? null) !== null;
      if (rest !== undefined && isNews) await counting.setLeft(member, rest);
    }
  }

  get touched(): Touched[] {
    return [...this.batch, ...this.relatives].map(({ row }) => ({
      connection: Number(row.connection_id),
      mode: row.mode,
      at: Number(row.occurred_ms),
    }));
  }
}

/** What groups came to in goods. */
class SettledGroups {
  readonly refunds = new Map<number, ContextOf<RefundRecord>>();
  /** What the ledger should have of these refunds. */
  readonly postings: Posting[] = [];
  /** What sales have left, for their rows; by their ids. */
  readonly refunded = new Map<number, string>();

  /** @param unknownOfSale  how many lines of the refund's sale are not in the ledger */
  add(
    refund: ContextOf<RefundRecord> | undefined,
    outcome: RefundOutcome,
    unknownOfSale: number
  ): void {
    if (!refund) return;
    settleRefund(refund, outcome, unknownOfSale);
    this.refunds.set(refund.id, refund);
    this.postings.push(...postingsOf(outcome.id, outcome.shares));
  }
}

const idsOf = (rows: readonly { id: number }[]): number[] => rows.map(({ id }) => Number(id));

/** Reads the relatives that groups have to look at again. */
const loadRelatives = async (
  tx: Tx,
  groups: ReadonlyMap<string, RefundGroup>,
  which: Exclude<Reach, 'none'>,
  connections: Connections
): Promise<void> => {
  const rows = await rowsOf<SaleHead>(
    tx,
    [...groups.values()].map(({ digest }) => digest),
    connections,
    (query) => {
      query.select('id', 'connection_id', 'family_digest', 'mode').orderBy('id');
      query.whereNotIn('state', notProcessed);
      if (which === 'all') return query;
      return query.where((allocated) => {
        allocated.where({ kind: 'sale' }).orWhereNull('took').orWhere('took', '>', 0);
      });
    }
  );
  for (const [key, found] of byGroup(
    rows.map((row) => ({ row })),
    connections
  )) {
    const group = groups.get(key);
    const own = new Set(group?.batch.map(({ id }) => id));
    const ids = idsOf(found.map(({ row }) => row)).filter((id) => !own.has(id));
    if (group) group.relatives.push(...(await openRelatives(tx, ids, connections)));
  }
};

const openRelatives = (
  tx: Tx,
  ids: readonly number[],
  connections: Connections
): Promise<ProcessingContext[]> =>
  readBodies(tx, ids, (row) => {
    const connection = connections.get(Number(row.connection_id));
    return connection ? [withoutBody(openContext(row, connection, false))] : [];
  });

/**
 * The refund groups of the batch, with the relatives that have to be looked at again. The lines of
 * the batch must be resolved, and its connections and those of their groups locked: nobody else then
 * adds to them.
 * @param withMoney  the groups are to be counted, too
 */
export const loadRefundGroups = async (
  tx: Tx,
  works: readonly ProcessingContext[],
  connections: Connections,
  { times, withMoney }: { times: Times; withMoney: boolean }
): Promise<RefundGroup[]> => {
  const digests = works.flatMap(({ row }) => row.family_digest ?? []);
  const own = new Set(works.map(({ id }) => id));
  const heads = await rowsOf<SaleHead>(tx, digests, connections, (query) =>
    query
      .select('id', 'connection_id', 'family_digest', 'mode', 'refunded', 'money_left')
      .where({ kind: 'sale' })
      .whereNotIn('state', notProcessed)
  );
  const sales = byGroup(
    heads.filter(({ id }) => !own.has(Number(id))).map((row) => ({ row })),
    connections
  );
  const groups = [...byGroup(works, connections)].map(([key, batch]) => {
    const before = (sales.get(key) ?? []).map(({ row }) => row);
    return new RefundGroup(key, batch, before, times);
  });
  const toPrice = withMoney ? groups.flatMap(({ saleToPrice }) => saleToPrice) : [];
  const priced = await openRelatives(tx, toPrice, connections);
  const reached = new Map(
    REACHES.map((reach): [Reach, Map<string, RefundGroup>] => [reach, new Map()])
  );
  for (const group of groups) {
    const sale = priced.find(({ id }) => group.saleToPrice.includes(id));
    reached.get(group.plan(sale, withMoney))?.set(group.key, group);
  }
  for (const which of ['allocated', 'all'] as const) {
    await loadRelatives(tx, reached.get(which) ?? new Map(), which, connections);
  }
  return groups;
};

/** A difference that the ledger has to append, beside the refund it belongs to. */
export interface RefundDifference extends PostingDifference {
  work: ContextOf<RefundRecord>;
}

/**
 * Settles every group that has a refund: sets state, flags and waits of its refunds, writes down
 * what its sales have left, and returns what the ledger has to append.
 * @param preview  nothing is written down
 */
export const settleGoods = async (
  tx: Tx,
  groups: readonly RefundGroup[],
  { preview }: { preview: boolean }
): Promise<RefundDifference[]> => {
  const settled = new SettledGroups();
  for (const group of groups) group.settleGoods(settled);
  const { refunds, postings, refunded } = settled;
  for (const [id, text] of preview ? [] : refunded) {
    await tx.table(POS_EVENTS_TABLE).where({ id }).update({ refunded: text });
  }
  // In test mode nothing was ever posted, so everything is appended.
  const live = [...refunds.values()].filter(({ row }) => row.mode === 'live');
  const posted = await postedOf(tx, idsOf(live));
  const todo = differences(postings, posted, (id) => refunds.get(id)?.record.restock ?? true);
  return todo.flatMap((difference) => {
    const work = refunds.get(difference.refund);
    return work ? [{ ...difference, work }] : [];
  });
};

/**
 * Works out what the groups come to in money, in the transaction that processes them; sets `counted` of
 * those of the batch, and brings the sales figures and the rows of relatives up to date.
 * @returns what closings are to be compared anew for, and the ids of sales whose refunds cost
 * otherwise than before
 */
export const countMoney = async (
  tx: Tx,
  groups: readonly RefundGroup[]
): Promise<{ touched: Touched[]; repriced: number[] }> => {
  const counting = new Counting(tx);
  for (const group of groups) await group.countMoney(counting);
  await counting.save();
  return {
    touched: groups.flatMap(({ touched }) => touched),
    repriced: [...counting.repriced],
  };
};
