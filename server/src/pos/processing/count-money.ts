import type { Knex } from 'knex';
import { nextTurn } from '../../runtime/event-loop';
import { isRefund, isSale, type ProcessingContext } from '../processing/processing-context';
import { addTo, refundGroupKey } from '../processing/refunds';
import type { RefundRecord, SaleRecord } from '../rules/records';
import {
  type MoneyLeft,
  type PricedGroup,
  type PricedRefund,
  priceOnTop,
  priceRefunds,
  type RefundToPrice,
  type SoldMoney,
} from '../rules/refund-money';
import type { ConnectionMode } from '../rules/states';
import { readRecord } from '../rules/validate';
import { type ConnectionRow, POS_EVENTS_TABLE, type PosEventRow } from '../tables';
import {
  type Counted,
  type ItemSum,
  readCounted,
  SumChanges,
  writeCounted,
} from '../money/rollups';
import type { App } from '../../app';
import type { Db, Tx } from '../../database/db';

/** Columns of a sale or refund that its money is worked out from, beside its body. */
const COLUMNS = [
  'id',
  'kind',
  'connection_id',
  'external_id',
  'family_digest',
  'mode',
  'effective_at',
  'received_at',
  'occurred_ms',
  'items',
  'counted',
  'money_left',
] as const satisfies readonly (keyof PosEventRow)[];

export type MoneyRow = Pick<PosEventRow, (typeof COLUMNS)[number]>;

/** A sale or refund whose body was read; without what else a till sends. */
interface MoneyMember {
  row: MoneyRow;
  record: Pick<SaleRecord, 'kind' | 'currency' | 'total' | 'lines'> | RefundMoneyRecord;
  /** For each line the item it was found to be. */
  items: (number | null)[];
}

type RefundMoneyRecord = Pick<RefundRecord, 'kind' | 'currency' | 'total' | 'lines'>;

export type Connections = ReadonlyMap<number, ConnectionRow>;

const CHUNK = 200;
/** Bodies are read this many at a time, and kept no longer than it takes. */
const BODIES = 20;

const memberOf = (
  row: MoneyRow,
  record: SaleRecord | RefundRecord,
  items: (number | null)[]
): MoneyMember =>
  record.kind === 'sale'
    ? {
        row,
        record: {
          kind: 'sale',
          currency: record.currency,
          total: record.total,
          lines: record.lines,
        },
        items,
      }
    : {
        row,
        record: {
          kind: 'refund',
          currency: record.currency,
          total: record.total,
          lines: record.lines,
        },
        items,
      };

const read = ({ body, ...row }: MoneyRow & Pick<PosEventRow, 'body'>): MoneyMember[] => {
  if (row.kind !== 'sale' && row.kind !== 'refund') return [];
  const context = { receivedAtMs: Number(row.received_at) };
  const reading = readRecord(row.kind, Buffer.from(body, 'utf8'), context);
  if (!reading.ok) return [];
  const items = JSON.parse(row.items ?? '[]') as (number | null)[];
  return [memberOf(row, reading.record, items)];
};

/** The sales and refunds of these ids, with what their bodies say of money. */
export const loadMembers = async (tx: Tx, ids: readonly number[]): Promise<MoneyMember[]> => {
  const members: MoneyMember[] = [];
  for (let start = 0; start < ids.length; start += BODIES) {
    const rows = (await tx
      .table(POS_EVENTS_TABLE)
      .select(...COLUMNS, 'body')
      .whereIn('id', ids.slice(start, start + BODIES))
      .orderBy('id')) as (MoneyRow & Pick<PosEventRow, 'body'>)[];
    for (const row of rows) members.push(...read(row));
    await nextTurn();
  }
  return members;
};

/** The sales and refunds of refund groups, without their bodies. */
export const rowsOfGroups = async (
  tx: Tx,
  digests: readonly string[],
  connections: Connections,
  narrow: (query: Knex.QueryBuilder) => Knex.QueryBuilder
): Promise<MoneyRow[]> => {
  const found: MoneyRow[] = [];
  for (let start = 0; start < digests.length; start += CHUNK) {
    const query = tx
      .table(POS_EVENTS_TABLE)
      .select(...COLUMNS)
      .whereIn('family_digest', digests.slice(start, start + CHUNK))
      .whereIn('connection_id', [...connections.keys()]);
    for (const row of (await narrow(query)) as MoneyRow[]) found.push(row);
  }
  return found;
};

const keyOfMember = (row: MoneyRow, connections: Connections): string | null => {
  const connection = connections.get(Number(row.connection_id));
  return connection && row.family_digest !== null ? refundGroupKey(row, connection) : null;
};

const soldOf = ({ row, record }: MoneyMember): SoldMoney[] =>
  record.kind === 'sale'
    ? [{ ...record, id: Number(row.id), connection: Number(row.connection_id) }]
    : [];

const refundOf = ({ row, record }: MoneyMember): RefundToPrice[] =>
  record.kind === 'refund'
    ? [
        {
          ...record,
          id: Number(row.id),
          connection: Number(row.connection_id),
          effectiveMs: Number(row.effective_at),
          externalId: row.external_id,
        },
      ]
    : [];

/** What the refunds among these members cost; all members of their groups are given. */
export const priceMembers = (
  members: readonly MoneyMember[],
  connections: Connections
): PricedGroup => {
  const groups = new Map<string, MoneyMember[]>();
  for (const member of members) {
    const key = keyOfMember(member.row, connections);
    if (key !== null) addTo(groups, key, member);
  }
  const priced: PricedGroup = { refunds: new Map(), left: new Map() };
  for (const group of groups.values()) {
    const { refunds, left } = priceRefunds(group.flatMap(soldOf), group.flatMap(refundOf));
    for (const [id, one] of refunds) priced.refunds.set(id, one);
    for (const [id, one] of left) priced.left.set(id, one);
  }
  return priced;
};

/** A sale or refund that closings may count otherwise now. */
export interface Touched {
  connection: number;
  mode: ConnectionMode;
  /** `occurred_at`, epoch milliseconds. */
  at: number;
}

/** What changed in money. */
interface Money {
  /** What closings have to be compared anew for. */
  touched: Touched[];
  /** Sales whose refunds cost otherwise than before, by their ids. */
  repriced: number[];
}

type Base = Pick<Counted, 'kind' | 'connection' | 'at'>;

const baseOf = ({ row, record }: MoneyMember): Base => ({
  kind: record.kind,
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

const byItem = (lines: readonly PricedPieces[]): Map<number, ItemSum> => {
  const sums = new Map<number, ItemSum>();
  for (const { item, quantity, unitPrice } of lines) {
    if (item === null) continue;
    const { total, pieces } = sums.get(item) ?? { total: 0n, pieces: 0 };
    const price = BigInt(quantity) * BigInt(unitPrice ?? 0);
    sums.set(item, { total: total + price, pieces: pieces + quantity });
  }
  return new Map([...sums].filter(([, { total }]) => isFigure(total)));
};

const figuresOf = (lines: readonly PricedPieces[]): Pick<Counted, 'pieces' | 'items'> => ({
  pieces: lines.reduce((sum, { quantity }) => sum + quantity, 0),
  items: byItem(lines),
});

const countedSale = (member: MoneyMember): Counted | null => {
  const { record, items } = member;
  if (record.kind !== 'sale') return null;
  const lines = record.lines.map(({ quantity, unitPrice }, line) => ({
    item: items[line] ?? null,
    quantity,
    unitPrice,
  }));
  return {
    ...baseOf(member),
    currency: record.currency,
    amount: BigInt(record.total),
    sale: null,
    ...figuresOf(lines),
  };
};

const countedRefund = (
  member: MoneyMember,
  { currency, amount, sale, pieces }: PricedRefund,
  members: ReadonlyMap<number, MoneyMember>
): Counted | null => {
  if (currency === null) return null;
  const sold = sale === null ? undefined : members.get(sale);
  const lines = pieces.map(({ saleLine, refundLine, quantity, unitPrice }) => {
    const own = refundLine === null ? null : (member.items[refundLine] ?? null);
    const ofSale = saleLine === null ? null : (sold?.items[saleLine] ?? null);
    return { item: own ?? ofSale, quantity, unitPrice };
  });
  return { ...baseOf(member), currency, amount, sale, ...figuresOf(lines) };
};

/** The members of the batch, by the ids of their records. */
const batchMembers = (batch: readonly ProcessingContext[]): Map<number, MoneyMember> =>
  new Map(
    batch.flatMap((work): [number, MoneyMember][] =>
      isSale(work) || isRefund(work) ? [[work.id, memberOf(work.row, work.record, work.items)]] : []
    )
  );

const touchedBy = (row: MoneyRow): Touched => ({
  connection: Number(row.connection_id),
  mode: row.mode,
  at: Number(row.occurred_ms ?? row.effective_at),
});

const digestsOf = (members: readonly MoneyMember[]): string[] => [
  ...new Set(members.flatMap(({ row }) => row.family_digest ?? [])),
];

const PROCESSED = { not: ['pending', 'failed'] } as const;

/** The relatives that were processed before and share a group of these members that has refunds. */
const relativesOf = async (
  tx: Tx,
  own: readonly MoneyMember[],
  connections: Connections
): Promise<{ members: MoneyMember[]; rows: MoneyRow[] }> => {
  const ids = new Set(own.map(({ row }) => Number(row.id)));
  const ownRows = own.map(({ row }) => row);
  const found = await rowsOfGroups(tx, digestsOf(own), connections, (query) =>
    query.whereNotIn('state', PROCESSED.not).orderBy('id')
  );
  const others = found.filter(({ id }) => !ids.has(Number(id)));
  const keys = new Set(ownRows.flatMap((row) => keyOfMember(row, connections) ?? []));
  const withRefunds = new Set(
    [...ownRows, ...others]
      .filter(({ kind }) => kind === 'refund')
      .flatMap((row) => keyOfMember(row, connections) ?? [])
  );
  const rows = others.filter((row) => {
    const key = keyOfMember(row, connections);
    return key !== null && keys.has(key) && withRefunds.has(key);
  });
  const live = rows.filter(({ mode }) => mode === 'live').map(({ id }) => Number(id));
  return { members: await loadMembers(tx, live), rows };
};

const leftText = (left: MoneyLeft | null): string | null =>
  left && JSON.stringify({ left: left.left, rest: String(left.rest) });

const readLeft = (text: string): MoneyLeft => {
  const { left, rest } = JSON.parse(text) as { left: number[]; rest: string };
  return { left, rest: BigInt(rest) };
};

/** What members come to, and what their sales have left. */
class Counting {
  private readonly changes = new SumChanges();
  readonly texts = new Map<number, string | null>();
  /** Sales whose refunds cost otherwise now. */
  readonly repriced = new Set<number>();

  constructor(
    private readonly app: App,
    private readonly tx: Db,
    private readonly own: ReadonlyMap<number, MoneyMember>
  ) {}

  private async update(id: number, columns: Partial<PosEventRow>): Promise<void> {
    await this.tx.table(POS_EVENTS_TABLE).where({ id }).update(columns);
  }

  /** @param after  what the figures are to have of the member */
  async count(member: MoneyMember, after: Counted | null): Promise<void> {
    const id = Number(member.row.id);
    const text = after && writeCounted(after);
    const known = member.row.counted ?? null;
    if (text !== known) {
      const before = known === null ? null : readCounted(known, baseOf(member));
      this.changes.replace(before, after);
      for (const one of [before, after]) if (one && one.sale !== null) this.repriced.add(one.sale);
    }
    if (this.own.has(id)) this.texts.set(id, text);
    else if (text !== known) await this.update(id, { counted: text });
  }

  async setLeft(member: MoneyMember, left: MoneyLeft | null): Promise<void> {
    const text = leftText(left);
    if (text !== (member.row.money_left ?? null)) {
      await this.update(Number(member.row.id), { money_left: text });
    }
  }

  save(): Promise<void> {
    return this.changes.save(this.app, this.tx);
  }
}

type Groups = Map<string, MoneyMember[]>;

/**
 * Refunds that change nobody else's money: most come alone, after their sale, and take of what it has
 * left. Then no other refund is read, and the thousandth costs what the tenth did.
 * @returns the members of all other groups
 */
const countOnTop = async (
  tx: Tx,
  groups: Groups,
  connections: Connections,
  counting: Counting
): Promise<MoneyMember[]> => {
  const isFresh = ({ row, record }: MoneyMember): boolean =>
    record.kind === 'refund' && row.mode === 'live' && row.counted === null;
  const fresh = [...groups].filter(([, members]) => members.every(isFresh));
  const others = [...groups].filter(([, members]) => !members.every(isFresh));
  const rest = others.flatMap(([, members]) => members);
  if (fresh.length === 0) return rest;
  const digests = digestsOf(fresh.flatMap(([, members]) => members));
  const heads = await rowsOfGroups(tx, digests, connections, (query) =>
    query.where({ kind: 'sale', mode: 'live' }).whereNotIn('state', PROCESSED.not)
  );
  const salesOf = new Map<string, MoneyRow[]>();
  for (const row of heads) {
    const key = keyOfMember(row, connections);
    if (key !== null) addTo(salesOf, key, row);
  }
  for (const [key, members] of fresh) {
    const [head, second] = salesOf.get(key) ?? [];
    if (head && (second || (head.money_left ?? null) === null)) {
      rest.push(...members);
      continue;
    }
    const [sale] = head ? await loadMembers(tx, [Number(head.id)]) : [];
    const [sold] = sale ? soldOf(sale) : [];
    const refunds = members.flatMap(refundOf);
    const left = head?.money_left ?? null;
    const result =
      sold && left !== null
        ? priceOnTop(sold, readLeft(left), refunds)
        : { priced: [...priceRefunds([], refunds).refunds.values()], left: null };
    if (!result || (head && !sold)) {
      rest.push(...members);
      continue;
    }
    const byId = new Map(
      [...members, ...(sale ? [sale] : [])].map((one) => [Number(one.row.id), one])
    );
    for (const priced of result.priced) {
      const member = byId.get(priced.id);
      if (member) await counting.count(member, countedRefund(member, priced, byId));
    }
    if (sale) await counting.setLeft(sale, result.left);
  }
  return rest;
};

/**
 * Works out what these sales and refunds, and the relatives of their groups, come to in money; brings
 * the sales figures and the rows of relatives up to date. Test mode counts for nothing. The connections,
 * and those of their groups, are locked.
 * @returns what is to be written as `counted` of each of its own, and what closings are to be compared
 * anew for
 */
export const countMembers = async (
  tx: Tx,
  app: App,
  own: ReadonlyMap<number, MoneyMember>,
  connections: Connections
): Promise<Money & { texts: Map<number, string | null> }> => {
  const counting = new Counting(app, tx, own);
  const { texts } = counting;
  if (own.size === 0) return { texts, touched: [], repriced: [] };
  const groups: Groups = new Map();
  for (const member of own.values()) {
    const key = keyOfMember(member.row, connections);
    if (key !== null) addTo(groups, key, member);
  }
  const rest = await countOnTop(tx, groups, connections, counting);
  const { members: relatives, rows } =
    rest.length === 0 ? { members: [], rows: [] } : await relativesOf(tx, rest, connections);
  const members = [...rest.filter(({ row }) => row.mode === 'live'), ...relatives];
  const byId = new Map(members.map((member) => [Number(member.row.id), member]));
  const priced = priceMembers(members, connections);
  const refunded = new Set([...priced.refunds.values()].map(({ sale }) => sale));
  for (const [id, member] of byId) {
    const price = priced.refunds.get(id);
    await counting.count(member, price ? countedRefund(member, price, byId) : countedSale(member));
    const left = priced.left.get(id);
    if (left !== undefined && (refunded.has(id) || (member.row.money_left ?? null) !== null)) {
      await counting.setLeft(member, left);
    }
  }
  await counting.save();
  const touched = [...[...own.values()].map(({ row }) => row), ...rows].map(touchedBy);
  return { texts, touched, repriced: [...counting.repriced] };
};

/**
 * Counts what records come to in money, in the transaction that processes them, and sets `counted` of
 * the works.
 */
export const countMoney = async (
  tx: Tx,
  app: App,
  batch: readonly ProcessingContext[],
  connections: Connections
): Promise<Money> => {
  const { texts, ...money } = await countMembers(tx, app, batchMembers(batch), connections);
  for (const work of batch) work.counted = texts.get(work.id) ?? null;
  return money;
};
