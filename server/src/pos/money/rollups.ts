import type { PlainTable } from '../../database/tables/plain-tables';
import type { App } from '../../app';
import type { Db } from '../../database/db';

/** What lines of one item come to: their `unit_price` times their quantity, and their quantity. */
export interface ItemSum {
  total: bigint;
  pieces: number;
}

/** What the sales figures have of one live sale or refund. Money is in minor units. */
export interface Counted {
  kind: 'sale' | 'refund';
  connection: number;
  /** Effective time, epoch milliseconds. */
  at: number;
  currency: string;
  amount: bigint;
  /** Of a refund: the sale that it was found to be of. */
  sale: number | null;
  /** Of all its lines, whether their items are known or not. */
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

const high = (amount: bigint): number => {
  const low = ((amount % PARTS) + PARTS) % PARTS;
  return Number((amount - low) / PARTS);
};
const low = (amount: bigint): number => Number(((amount % PARTS) + PARTS) % PARTS);

export const joined = (highs: unknown, lows: unknown): bigint =>
  BigInt(String(highs ?? 0)) * PARTS + BigInt(String(lows ?? 0));

const SUMS = [
  'sales',
  'sales_high',
  'sales_low',
  'sales_pieces',
  'refunds',
  'refunds_high',
  'refunds_low',
  'refunds_pieces',
];

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

/** The same by item. */
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

interface Sum {
  keys: (number | string)[];
  kind: Counted['kind'];
  count: number;
  amount: bigint;
  pieces: number;
}

/** Changes of sums, added up by row before they are written. */
export class SumChanges {
  private readonly totals = new Map<string, Sum>();
  private readonly items = new Map<string, Sum>();

  private static add(to: Map<string, Sum>, sum: Sum): void {
    const key = [...sum.keys, sum.kind].join('/');
    const known = to.get(key);
    if (!known) {
      to.set(key, sum);
      return;
    }
    known.count += sum.count;
    known.amount += sum.amount;
    known.pieces += sum.pieces;
  }

  private count(counted: Counted, sign: 1 | -1): void {
    const { kind, connection, at, currency, amount, items } = counted;
    const quarter = quarterOf(at);
    const signed = (value: bigint): bigint => (sign === 1 ? value : -value);
    const keys = [quarter, connection, currency];
    const pieces = counted.pieces * sign;
    SumChanges.add(this.totals, { keys, kind, count: sign, amount: signed(amount), pieces });
    for (const [item, sum] of items) {
      SumChanges.add(this.items, {
        keys: [quarter, connection, item, currency],
        kind,
        count: sign,
        amount: signed(sum.total),
        pieces: sum.pieces * sign,
      });
    }
  }

  /** A record is counted otherwise than before. */
  replace(before: Counted | null, after: Counted | null): void {
    if (before) this.count(before, -1);
    if (after) this.count(after, 1);
  }

  private static async write(
    app: App,
    db: Db,
    tableName: string,
    names: readonly string[],
    changes: ReadonlyMap<string, Sum>
  ): Promise<void> {
    const rows = [...changes.values()]
      .filter(({ count, amount, pieces }) => count !== 0 || amount !== 0n || pieces !== 0)
      .map(({ keys, kind, count, amount, pieces }) => {
        const of = kind === 'sale' ? 'sales' : 'refunds';
        return {
          ...Object.fromEntries(names.map((name, index) => [name, keys[index] ?? 0])),
          ...Object.fromEntries(SUMS.map((name) => [name, 0])),
          [of]: count,
          [`${of}_high`]: high(amount),
          [`${of}_low`]: low(amount),
          [`${of}_pieces`]: pieces,
        };
      });
    if (rows.length === 0) return;
    const table = { name: tableName, schema: app.db.schema };
    await app.db.dialect.addRows(db.knex, table, names, merged(rows, names));
  }

  /** Adds the changes to the figures, always in the same order. */
  async save(app: App, db: Db): Promise<void> {
    const { write } = SumChanges;
    const ofSales = ['quarter', 'connection_id', 'currency'];
    await write(app, db, SALES_TABLE, ofSales, this.totals);
    const ofItems = ['quarter', 'connection_id', 'item_id', 'currency'];
    await write(app, db, ITEM_SALES_TABLE, ofItems, this.items);
  }
}

type Row = Record<string, number | string>;

/** Sales and refunds of one key in one row: no statement may meet a row twice (PostgreSQL). */
const merged = (rows: readonly Row[], keys: readonly string[]): Row[] => {
  const byKey = new Map<string, Row>();
  for (const row of rows) {
    const key = keys.map((name) => row[name]).join('/');
    const known = byKey.get(key);
    if (!known) byKey.set(key, { ...row });
    else for (const name of SUMS) known[name] = Number(known[name]) + Number(row[name]);
  }
  return [...byKey.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
};
