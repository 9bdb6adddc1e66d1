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
import type { PlainTable } from '../database/tables/plain-tables';
import { csvLine, noFormula } from '../runtime/text';
import { namedItems } from '../stock/items';
import { beginningOf, dayAfter, dayInZone, QUARTER_MS } from './rules/shop-time';
import type { PosEventRow } from './tables';
import { connectionNames } from './connections';
import type { SalesQuery } from './admin/inputs';

interface Sum {
  count: number;
  total: bigint;
  pieces: number;
}

const nothing = (): Sum => ({ count: 0, total: 0n, pieces: 0 });

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

const readSums = async (
  db: Db,
  { from, to, connection, item, group }: SalesQuery,
  zone: string
): Promise<Sums[]> => {
  const byItem = item !== undefined || group === 'item';
  const key = { day: 'quarter', connection: 'connection_id', item: 'item_id' }[group];
  const query: Knex.QueryBuilder = db
    .table(byItem ? ITEM_SALES_TABLE : SALES_TABLE)
    .select(key, 'currency')
    .sum(Object.fromEntries(SUMS.map((name) => [name, name])))
    .where('quarter', '>=', beginningOf(from, zone))
    .where('quarter', '<', beginningOf(dayAfter(to), zone))
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

/** Sums of days, from the first on, of those of quarter hours, which come in order. */
const byDay = (sums: readonly Sums[], first: string, zone: string): Sums[] => {
  let day = first;
  let end = beginningOf(dayAfter(day), zone);
  return sums.map((one) => {
    for (; Number(one.key) >= end; end = beginningOf(dayAfter(day), zone)) day = dayAfter(day);
    return { ...one, key: day };
  });
};

const figuresOf = ({ currency, sales, refunds }: Sums, withPieces = false): SalesFigures => ({
  currency,
  sales: { count: sales.count, total: minorSum(sales.total) },
  refunds: { count: refunds.count, total: minorSum(refunds.total) },
  ...(withPieces && { pieces: { sold: sales.pieces, returned: refunds.pieces } }),
});

/** Today in the shop, and the time zone by which its days begin. */
export const shopDay = (app: App): ShopDay => {
  const zone = timeZoneOf(app);
  return { today: dayInZone(Date.now(), zone), time_zone: zone };
};

/** Sales and refunds by day, connection or item (docs/shop.md#sales), with names of connections or items. */
export const readSales = async (
  app: App,
  query: SalesQuery
): Promise<{ data: SalesRow[]; meta: SalesMeta }> => {
  const { group, from, pieces } = query;
  const db = await app.db.current();
  const zone = timeZoneOf(app);
  const sums = await readSums(db, query, zone);
  const rows = gathered(group === 'day' ? byDay(sums, from, zone) : sums).sort((a, b) =>
    a.key === b.key ? (a.currency < b.currency ? -1 : 1) : a.key < b.key ? -1 : 1
  );
  if (group === 'day') {
    const data = rows.map((one) => ({ day: String(one.key), ...figuresOf(one, pieces) }));
    return { data, meta: { ...shopDay(app), names: {} } };
  }
  const ids = [...new Set(rows.map(({ key }) => Number(key)))];
  const items = await namedItems(db, group === 'item' ? ids : []);
  const connections = await connectionNames(db, group === 'connection' ? ids : []);
  const nameOf = (id: number) => items.get(id)?.name ?? connections.get(id) ?? null;
  const names = Object.fromEntries(ids.map((id) => [id, nameOf(id)]));
  const data = rows.map((one) => {
    const id = Number(one.key);
    return group === 'item'
      ? { item: { id, sku: items.get(id)?.sku ?? '' }, ...figuresOf(one, pieces) }
      : { connection: { id }, ...figuresOf(one, pieces) };
  });
  return { data, meta: { ...shopDay(app), names } };
};

/** The totals of one connection: a row a currency. */
export const readTotals = async (
  app: App,
  range: Pick<SalesQuery, 'from' | 'to' | 'connection'>
): Promise<SalesFigures[]> => {
  const db = await app.db.current();
  const sums = await readSums(db, { ...range, group: 'connection' }, timeZoneOf(app));
  return gathered(sums).map((one) => figuresOf(one));
};

type Column = [name: string, cell: (row: SalesRow) => number | string];

/** Sales as CSV (RFC 4180) with a header; money in minor units. `pieces`: rows have the pieces sold and returned. */
export const salesCsv = (
  group: SalesGroup,
  rows: readonly SalesRow[],
  { names }: SalesMeta,
  pieces = false
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
  currency: string;
  amount: bigint;
  /** Refunds only: the sale that was found for it. */
  sale: number | null;
  /** Pieces of all its lines, including unknown items. */
  pieces: number;
  items: ReadonlyMap<number, ItemSum>;
}

const SALES_TABLE = 'switchboard_sales_rollups';
const ITEM_SALES_TABLE = 'switchboard_item_rollups';

/** Sums use two columns, so they neither overflow nor lose a cent: `total = high × 1,000,000,000 + low`. */
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

const SUMS = (['sales', 'refunds'] as const).flatMap((what) =>
  Object.keys(columnsOf(what, nothing()))
);

const sums = Object.fromEntries(
  SUMS.map((name) => [name, { type: 'biginteger', column: { defaultTo: 0 } }])
) as PlainTable['attributes'];

/** @param item  the column of the item, of sales by item */
const rollupTable = (
  tableName: string,
  index: string,
  item: PlainTable['attributes'] = {}
): PlainTable => ({
  tableName,
  withoutId: true,
  attributes: {
    quarter: { type: 'biginteger' },
    connection_id: { type: 'integer' },
    ...item,
    currency: { type: 'string', column: { args: [3] } },
    ...sums,
  },
  indexes: [
    {
      name: index,
      columns: ['quarter', 'connection_id', ...Object.keys(item), 'currency'],
      type: 'unique',
    },
  ],
});

/** Live sales by connection, currency and UTC quarter hour (epoch ms), as the days of every time zone start on one. */
export const salesTable = rollupTable(SALES_TABLE, 'sb_sales_quarter');

export const itemSalesTable = rollupTable(ITEM_SALES_TABLE, 'sb_item_sales_quarter', {
  item_id: { type: 'integer' },
});

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

export const readCounted = (text: string): Counted => {
  const { c: currency, a: amount, s: sale = null, p = 0, i: items } = JSON.parse(text) as Stored;
  return {
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

type RowChange = { keys: Keys } & Record<'sales' | 'refunds', Sum>;

/** Changes of sums, added up by row before they are written. */
export class SumChanges {
  private readonly rows = {
    [SALES_TABLE]: new Map<string, RowChange>(),
    [ITEM_SALES_TABLE]: new Map<string, RowChange>(),
  };

  /** A live sale or refund is counted otherwise than before. */
  replace(
    { kind, connection_id: connection, effective_at: at }: PosEventRow,
    before: Counted | null,
    after: Counted | null
  ): void {
    const quarter = Math.floor(Number(at) / QUARTER_MS) * QUARTER_MS;
    const keys = { quarter, connection_id: Number(connection) };
    for (const [counted, sign] of [[before, -1] as const, [after, 1] as const]) {
      if (!counted) continue;
      const { currency, amount: total, pieces } = counted;
      const sums: [keyof SumChanges['rows'], Keys, ItemSum][] = [
        [SALES_TABLE, { ...keys, currency }, { total, pieces }],
      ];
      for (const [item, sum] of counted.items) {
        sums.push([ITEM_SALES_TABLE, { ...keys, item_id: item, currency }, sum]);
      }
      for (const [name, own, sum] of sums) {
        const key = Object.values(own).join('/');
        const row = this.rows[name].get(key) ?? { keys: own, sales: nothing(), refunds: nothing() };
        const known = kind === 'sale' ? row.sales : row.refunds;
        known.count += sign;
        known.total += BigInt(sign) * sum.total;
        known.pieces += sign * sum.pieces;
        this.rows[name].set(key, row);
      }
    }
  }

  /** Adds the changes to the figures, always in the same order. */
  async save(db: Db): Promise<void> {
    for (const name of [SALES_TABLE, ITEM_SALES_TABLE] as const) {
      const rows = [...this.rows[name]]
        .filter(([, { sales, refunds }]) =>
          [sales, refunds].some(({ count, total, pieces }) => count || total || pieces)
        )
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([, { keys, sales, refunds }]) => ({
          ...keys,
          ...columnsOf('sales', sales),
          ...columnsOf('refunds', refunds),
        }));
      const [first] = this.rows[name].values();
      if (rows.length === 0 || !first) continue;
      await db.insert(name, rows, { unique: Object.keys(first.keys), then: 'add' });
    }
  }
}
