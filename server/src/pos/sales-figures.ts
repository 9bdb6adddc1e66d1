import type { Knex } from 'knex';
import type {
  SalesFigures,
  SalesGroup,
  SalesMeta,
  SalesRow,
  ShopDay,
} from '../../../shared/contracts/pos';
import { minorSum } from '../../../shared/minor-sums';
import type { App } from '../app';
import type { Db } from '../database/db';
import { findInChunks } from '../database/written-rows';
import type { PlainTable } from '../database/tables/plain-tables';
import { csvLine, noFormula } from '../runtime/text';
import { ITEMS_TABLE } from '../stock/tables';
import { dayInZone, daysOfZone, type ZonedDay } from './rules/days';
import { CONNECTIONS_TABLE } from './tables';

/** Days of the shop's time zone, both included; `YYYY-MM-DD`. */
interface Range {
  from: string;
  to: string;
  connection?: number | undefined;
}

interface SalesQuery extends Range {
  item?: number | undefined;
  group: SalesGroup;
  /** True if rows have the pieces sold and returned. */
  pieces?: boolean | undefined;
}

interface Sum {
  count: number;
  total: bigint;
  pieces: number;
}

const nothing = (): Sum => ({ count: 0, total: 0n, pieces: 0 });

/** Sums of one key and currency. */
interface Sums {
  key: number | string;
  currency: string;
  sales: Sum;
  refunds: Sum;
}

type Row = Record<string, number | string | null>;

/** The time zone by which days begin: the option's, else the server's. */
export const timeZoneOf = (app: App): string =>
  app.options.pos.timeZone ?? Intl.DateTimeFormat().resolvedOptions().timeZone;

const sumOf = (row: Row, what: 'sales' | 'refunds'): Sum => ({
  count: Number(row[what]),
  total: joined(row[`${what}_high`], row[`${what}_low`]),
  pieces: Number(row[`${what}_pieces`] ?? 0),
});

/** Sums by the column of the key, within some days. */
const readSums = async (
  db: Db,
  { connection, item, group }: Omit<SalesQuery, 'from' | 'to'>,
  days: readonly ZonedDay[]
): Promise<Sums[]> => {
  const byItem = item !== undefined || group === 'item';
  const key = { day: 'quarter', connection: 'connection_id', item: 'item_id' }[group];
  const query: Knex.QueryBuilder = db
    .table(byItem ? ITEM_SALES_TABLE : SALES_TABLE)
    .select(key, 'currency')
    .sum(Object.fromEntries(SUMS.map((name) => [name, name])))
    .where('quarter', '>=', days[0]?.from ?? 0)
    .where('quarter', '<', days.at(-1)?.to ?? 0)
    .groupBy(key, 'currency')
    .orderBy([key, 'currency']);
  if (connection !== undefined) query.where({ connection_id: connection });
  if (item !== undefined) query.where({ item_id: item });
  return ((await query) as Row[]).map((row) => ({
    key: Number(row[key]),
    currency: String(row.currency),
    sales: sumOf(row, 'sales'),
    refunds: sumOf(row, 'refunds'),
  }));
};

/** Adds up what has one key and currency, in the order in which they come. */
const gathered = (sums: readonly Sums[]): Sums[] => {
  const byKey = new Map<string, Sums>();
  for (const { key, currency, ...one } of sums) {
    const none = { key, currency, sales: nothing(), refunds: nothing() };
    const known = byKey.get(`${key}/${currency}`) ?? none;
    byKey.set(`${key}/${currency}`, known);
    for (const what of ['sales', 'refunds'] as const) {
      known[what].count += one[what].count;
      known[what].total += one[what].total;
      known[what].pieces += one[what].pieces;
    }
  }
  // Amounts that are now counted elsewhere leave a row of zeros.
  return [...byKey.values()].filter(({ sales, refunds }) => sales.count > 0 || refunds.count > 0);
};

/** Days of quarters, which come in order. */
const byDay = (sums: readonly Sums[], days: readonly ZonedDay[]): Sums[] => {
  let at = 0;
  return sums.map((one) => {
    while (at < days.length - 1 && Number(one.key) >= (days[at]?.to ?? 0)) at += 1;
    return { ...one, key: days[at]?.day ?? '' };
  });
};

const figuresOf = ({ currency, sales, refunds }: Sums, withPieces = false): SalesFigures => ({
  currency,
  sales: { count: sales.count, total: minorSum(sales.total) },
  refunds: { count: refunds.count, total: minorSum(refunds.total) },
  ...(withPieces && { pieces: { sold: sales.pieces, returned: refunds.pieces } }),
});

type NamedRow = { id: number; name: string | null; sku?: string };

/** The names of connections (deleted ones too) or items, by their ids. */
const namesOf = async (
  db: Db,
  group: 'connection' | 'item',
  ids: readonly number[]
): Promise<Map<number, NamedRow>> => {
  const isItem = group === 'item';
  const rows = await findInChunks<NamedRow>(ids, (some) =>
    db
      .table(isItem ? ITEMS_TABLE : CONNECTIONS_TABLE)
      .select('id', 'name', ...(isItem ? ['sku'] : []))
      .whereIn('id', some)
  );
  return new Map(rows.map((row) => [Number(row.id), row]));
};

/** Today in the shop, and the time zone by which its days begin. */
export const shopDay = (app: App): ShopDay => {
  const zone = timeZoneOf(app);
  return { today: dayInZone(Date.now(), zone), time_zone: zone };
};

/**
 * Sales and refunds by day, connection or item (docs/tills.md#what-was-sold), and the names of the rows'
 * connections or items.
 */
export const readSales = async (
  app: App,
  { from, to, pieces, ...query }: SalesQuery
): Promise<{ data: SalesRow[]; meta: SalesMeta }> => {
  const db = await app.db.current();
  const days = daysOfZone(from, to, timeZoneOf(app));
  const sums = await readSums(db, query, days);
  const rows = gathered(query.group === 'day' ? byDay(sums, days) : sums).sort((a, b) =>
    a.key === b.key ? (a.currency < b.currency ? -1 : 1) : a.key < b.key ? -1 : 1
  );
  const figures = (one: Sums): SalesFigures => figuresOf(one, pieces);
  const { group } = query;
  if (group === 'day') {
    const data = rows.map((one) => ({ day: String(one.key), ...figures(one) }));
    return { data, meta: { ...shopDay(app), names: {} } };
  }
  const ids = [...new Set(rows.map(({ key }) => Number(key)))];
  const known = await namesOf(db, group, ids);
  const names = Object.fromEntries(ids.map((id) => [id, known.get(id)?.name ?? null]));
  const data = rows.map((one) => {
    const id = Number(one.key);
    return group === 'item'
      ? { item: { id, sku: known.get(id)?.sku ?? '' }, ...figures(one) }
      : { connection: { id }, ...figures(one) };
  });
  return { data, meta: { ...shopDay(app), names } };
};

/** The totals of one connection: a row a currency. */
export const readTotals = async (app: App, range: Range): Promise<SalesFigures[]> => {
  const db = await app.db.current();
  const days = daysOfZone(range.from, range.to, timeZoneOf(app));
  const sums = await readSums(db, { ...range, group: 'connection' }, days);
  return gathered(sums).map((one) => figuresOf(one));
};

interface SalesCsvOptions {
  /** True if the rows have the pieces sold and returned. */
  pieces?: boolean | undefined;
  /** Names of connections or items, by their ids. */
  names?: Readonly<Record<string, string | null>>;
}

type Column = [name: string, cell: (row: SalesRow) => number | string];

/** Rows of sales as CSV (RFC 4180), with a header; money in minor units. */
export const salesCsv = (
  group: SalesGroup,
  rows: readonly SalesRow[],
  { pieces = false, names = {} }: SalesCsvOptions = {}
): string => {
  const ofPieces: Column[] = [
    ['pieces_sold', (row) => row.pieces?.sold ?? 0],
    ['pieces_returned', (row) => row.pieces?.returned ?? 0],
  ];
  const ofName: Column = [
    'connection_name',
    (row) => ('connection' in row ? (names[row.connection.id] ?? '') : ''),
  ];
  const columns: Column[] = [
    [group, (row) => ('day' in row ? row.day : 'item' in row ? row.item.sku : row.connection.id)],
    ['currency', (row) => row.currency],
    ['sales_count', (row) => row.sales.count],
    ['sales_total', (row) => row.sales.total],
    ['refunds_count', (row) => row.refunds.count],
    ['refunds_total', (row) => row.refunds.total],
    ...(pieces ? ofPieces : []),
    ...(group === 'connection' ? [ofName] : []),
  ];
  // Digits of a sum below nothing are no formula.
  const safe = (value: number | string): number | string =>
    typeof value === 'number' || /^-?\d+$/.test(value) ? value : noFormula(value);
  return [columns.map(([name]) => name), ...rows.map((row) => columns.map(([, of]) => of(row)))]
    .map((cells) => csvLine(cells.map(safe)))
    .join('');
};

/** The sum of one item's lines: their `unit_price` times their quantity, and their quantity. */
export type ItemSum = Omit<Sum, 'count'>;

/** The amounts of one live sale or refund in the sales figures. Money is in minor units. */
export interface Counted {
  kind: 'sale' | 'refund';
  connection: number;
  /** Effective time, epoch milliseconds. */
  at: number;
  currency: string;
  amount: bigint;
  /** Refunds only: the sale that was found for it. */
  sale: number | null;
  /** Pieces of all its lines, including unknown items. */
  pieces: number;
  items: ReadonlyMap<number, ItemSum>;
}

export const SALES_TABLE = 'switchboard_sales_rollups';
export const ITEM_SALES_TABLE = 'switchboard_item_rollups';

const QUARTER_MS = 900_000;

/** The beginning of a quarter hour of UTC. */
export const quarterOf = (at: number): number => Math.floor(at / QUARTER_MS) * QUARTER_MS;

/**
 * Sums are kept in two columns, so that neither overflows nor loses a cent, whatever tills send:
 * `total = high × 1,000,000,000 + low`.
 */
const PARTS = 1_000_000_000n;

const columnsOf = (what: 'sales' | 'refunds', { count, total, pieces }: Sum) => {
  const low = ((total % PARTS) + PARTS) % PARTS;
  return {
    [what]: count,
    [`${what}_high`]: Number((total - low) / PARTS),
    [`${what}_low`]: Number(low),
    [`${what}_pieces`]: pieces,
  };
};

export const joined = (highs: unknown, lows: unknown): bigint =>
  BigInt(String(highs ?? 0)) * PARTS + BigInt(String(lows ?? 0));

/** The columns of sums. */
const SUMS = ['sales', 'refunds'].flatMap((what) => [
  what,
  `${what}_high`,
  `${what}_low`,
  `${what}_pieces`,
]);

const sums = Object.fromEntries(
  SUMS.map((name) => [name, { type: 'biginteger', column: { defaultTo: 0 } }])
) as PlainTable['attributes'];

/**
 * One row a connection, currency and quarter hour of UTC with live sales or refunds; `quarter` is its
 * beginning, in epoch milliseconds. Quarter hours, because every time zone begins its days at one.
 */
export const salesTable: PlainTable = {
  tableName: SALES_TABLE,
  attributes: {
    quarter: { type: 'biginteger' },
    connection_id: { type: 'integer' },
    currency: { type: 'string', column: { args: [3] } },
    ...sums,
  },
  indexes: [
    { name: 'sb_sales_quarter', columns: ['quarter', 'connection_id', 'currency'], type: 'unique' },
  ],
};

/** Sales by item. */
export const itemSalesTable: PlainTable = {
  tableName: ITEM_SALES_TABLE,
  attributes: {
    quarter: { type: 'biginteger' },
    connection_id: { type: 'integer' },
    item_id: { type: 'integer' },
    currency: { type: 'string', column: { args: [3] } },
    ...sums,
  },
  indexes: [
    {
      name: 'sb_item_sales_quarter',
      columns: ['quarter', 'connection_id', 'item_id', 'currency'],
      type: 'unique',
    },
  ],
};

interface Stored {
  c: string;
  a: string;
  s?: number;
  p?: number;
  i: [item: number, total: string, pieces?: number][];
}

/** As it is kept in the record's row. */
export const writeCounted = ({ currency, amount, sale, pieces, items }: Counted): string =>
  JSON.stringify({
    c: currency,
    a: String(amount),
    ...(sale !== null && { s: sale }),
    p: pieces,
    i: [...items]
      .sort(([a], [b]) => a - b)
      .map(([item, sum]) => [item, String(sum.total), sum.pieces]),
  } satisfies Stored);

export const readCounted = (
  text: string,
  base: Pick<Counted, 'kind' | 'connection' | 'at'>
): Counted => {
  const { c: currency, a: amount, s: sale = null, p = 0, i: items } = JSON.parse(text) as Stored;
  return {
    ...base,
    currency,
    amount: BigInt(amount),
    sale,
    pieces: p,
    items: new Map(
      items.map(([item, total, pieces = 0]) => [item, { total: BigInt(total), pieces }])
    ),
  };
};

type Keys = Record<string, number | string>;

/** A row of the figures, as it changes. */
type RowChange = { keys: Keys } & Record<'sales' | 'refunds', Sum>;

const isChanged = ({ count, total, pieces }: Sum): boolean =>
  count !== 0 || total !== 0n || pieces !== 0;

/** Changes of sums, added up by row before they are written. */
export class SumChanges {
  private readonly rows = {
    [SALES_TABLE]: new Map<string, RowChange>(),
    [ITEM_SALES_TABLE]: new Map<string, RowChange>(),
  };

  /** A record is counted otherwise than before. */
  replace(before: Counted | null, after: Counted | null): void {
    if (before) this.count(before, -1);
    if (after) this.count(after, 1);
  }

  private count(counted: Counted, sign: 1 | -1): void {
    const { kind, connection, currency, amount, pieces, items } = counted;
    const keys = { quarter: quarterOf(counted.at), connection_id: connection };
    const add = (name: keyof SumChanges['rows'], own: Keys, sum: Omit<Sum, 'count'>): void => {
      const key = Object.values(own).join('/');
      const row = this.rows[name].get(key) ?? { keys: own, sales: nothing(), refunds: nothing() };
      const known = kind === 'sale' ? row.sales : row.refunds;
      known.count += sign;
      known.total += BigInt(sign) * sum.total;
      known.pieces += sign * sum.pieces;
      this.rows[name].set(key, row);
    };
    add(SALES_TABLE, { ...keys, currency }, { total: amount, pieces });
    for (const [item, sum] of items) {
      add(ITEM_SALES_TABLE, { ...keys, item_id: item, currency }, sum);
    }
  }

  /** Adds the changes to the figures, always in the same order. */
  async save(db: Db): Promise<void> {
    for (const name of [SALES_TABLE, ITEM_SALES_TABLE] as const) {
      const rows = [...this.rows[name]]
        .filter(([, { sales, refunds }]) => isChanged(sales) || isChanged(refunds))
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([, { keys, sales, refunds }]) => ({
          ...keys,
          ...columnsOf('sales', sales),
          ...columnsOf('refunds', refunds),
        }));
      const [first] = this.rows[name].values();
      if (rows.length === 0 || !first) continue;
      const table = { name, schema: db.schema };
      await db.dialect.addRows(db.knex, table, Object.keys(first.keys), rows);
    }
  }
}
