import type { Knex } from 'knex';
import { type Executor, rawStatement, rowsOf, type Statement } from '../connection';

/** SQL types that a batch update has to name, because PostgreSQL does not guess them from parameters. */
export type ColumnType = 'integer' | 'bigint' | 'text' | 'boolean';

export type SqlValue = string | number | boolean | null;

/** A table whose rows are written in batches. */
export interface UpdatedTable {
  /** With the schema where the site has one, each part quoted as an identifier by the statement. */
  name: string;
  schema: string | undefined;
  columns: Readonly<Record<string, ColumnType>>;
}

/** A row that is changed; where `owner` is given, only while that one still holds the row. */
export interface RowUpdate {
  id: number;
  owner?: string;
  set: Readonly<Record<string, SqlValue>>;
}

export interface InsertTarget extends Pick<UpdatedTable, 'name' | 'schema'> {
  columns: readonly string[];
}

export type InsertedRow = Readonly<Record<string, SqlValue>>;

export interface Dialect {
  /**
   * Inserts rows that have these columns, no more than one statement takes. Within a transaction:
   * where a row is refused, those before it may have been inserted.
   */
  insert(executor: Executor, target: InsertTarget, rows: readonly InsertedRow[]): Promise<void>;

  /** As `insert`, where the statement can say the ids of the rows, by their document ids. */
  insertForIds?(
    executor: Executor,
    target: InsertTarget,
    rows: readonly InsertedRow[]
  ): Promise<[documentId: string, id: number][]>;

  /**
   * Writes a batch, rows with an owner only `WHERE id = ? AND owner = ?`. Every row has the same columns.
   * @returns the ids that were still held by their owner.
   */
  updateRows(
    executor: Executor,
    table: UpdatedTable,
    rows: readonly RowUpdate[]
  ): Promise<Set<number>>;

  joined(texts: readonly string[]): string;

  /**
   * The condition that a column, bound as `??`, has a text in it: in any case, where the database's
   * language settings know it, and without wildcards.
   */
  contains(text: string): { sql: string; binding: string };

  /**
   * Inserts rows of numbers, and of words among their keys, all of the same columns and in the order
   * given. If a row with the same `keys`, which have a unique index, exists already, the other columns
   * are added to its own. Uses up no ids: MySQL and PostgreSQL would, with each row, in a table that
   * counts them.
   */
  addRows(
    executor: Executor,
    table: Pick<UpdatedTable, 'name' | 'schema'>,
    keys: readonly string[],
    rows: readonly Readonly<Record<string, number | string>>[]
  ): Promise<void>;
}

/** `schema.table` as knex's `??` binding takes it. */
export const qualified = (table: Pick<UpdatedTable, 'name' | 'schema'>): string =>
  table.schema ? `${table.schema}.${table.name}` : table.name;

const repeated = (mark: string, count: number): string => Array(count).fill(mark).join(', ');

const into = ({ columns }: InsertTarget): string =>
  `INSERT INTO ?? (${repeated('??', columns.length)})`;

export const valuesOf = ({ columns }: InsertTarget, row: InsertedRow): SqlValue[] =>
  columns.map((column) => row[column] ?? null);

export const insertOfValues = (target: InsertTarget, rows: readonly InsertedRow[]): Statement => {
  const tuple = `(${repeated('?', target.columns.length)})`;
  return {
    sql: `${into(target)} VALUES ${repeated(tuple, rows.length)}`,
    bindings: [
      qualified(target),
      ...target.columns,
      ...rows.flatMap((row) => valuesOf(target, row)),
    ],
  };
};

/** Types of columns, as PostgreSQL names them. */
type ColumnTypes = Readonly<Record<string, string>>;

/**
 * One statement with an array a column, and one value for a column in which all rows are alike:
 * PostgreSQL takes half as many rows again in the same time.
 */
export const insertOfArrays = (
  target: InsertTarget,
  types: ColumnTypes,
  rows: readonly InsertedRow[]
): Statement => {
  const alike: SqlValue[] = [];
  const arrays: SqlValue[][] = [];
  const casts: string[] = [];
  const selected = target.columns.map((column, at) => {
    const values = rows.map((row) => row[column] ?? null);
    const [first = null] = values;
    // The first column is an array in any case: it says how many rows there are.
    if (at > 0 && values.every((value) => value === first)) {
      alike.push(first);
      return `?::${types[column]}`;
    }
    arrays.push(values);
    casts.push(`?::${types[column]}[]`);
    return `v.c${arrays.length}`;
  });
  const names = arrays.map((_values, at) => `c${at + 1}`).join(', ');
  return {
    sql: `${into(target)} SELECT ${selected.join(', ')} FROM unnest(${casts.join(', ')}) AS v(${names})`,
    bindings: [
      qualified(target),
      ...target.columns,
      ...alike,
      // The driver makes an array of PostgreSQL's of each.
      ...(arrays as unknown as Knex.RawBinding[]),
    ],
  };
};

/** By what a pool and its transactions share; the columns that statements name never change their type. */
const knownTypes = new WeakMap<object, Map<string, ColumnTypes>>();

const readTypes = async (executor: Executor, target: InsertTarget): Promise<ColumnTypes> => {
  const names = [target.schema, target.name].filter((name) => name !== undefined);
  const found = rowsOf<{ name: string; type: string }>(
    await rawStatement(
      executor,
      `SELECT attname AS name, format_type(atttypid, NULL) AS type FROM pg_attribute
       WHERE attrelid = ?::regclass AND attnum > 0 AND NOT attisdropped`,
      [names.map((name) => `"${name}"`).join('.')]
    )
  );
  return Object.fromEntries(found.map(({ name, type }) => [name, type]));
};

export const columnTypesOf = async (
  executor: Executor,
  target: InsertTarget
): Promise<ColumnTypes> => {
  const { config } = executor.client as { config: object };
  const tables = knownTypes.get(config) ?? new Map<string, ColumnTypes>();
  knownTypes.set(config, tables);
  const key = qualified(target);
  const known = tables.get(key) ?? (await readTypes(executor, target));
  tables.set(key, known);
  return known;
};

/** Keeps a statement, and the time for which it holds its rows, short. */
const ROWS_AT_ONCE = 100;

interface Clauses {
  /** How the statement calls the table's own rows, behind its name. */
  alias: string;
  /** The values of a row that exists already. */
  conflict(keys: readonly string[], sums: readonly string[]): string;
}

export const sumsOf = (columns: readonly string[], keys: readonly string[]): string[] =>
  columns.filter((column) => !keys.includes(column));

/** `addRows` of a dialect, which differs in what happens to rows that are there already. */
export const addRowsWith =
  ({ alias, conflict }: Clauses): Dialect['addRows'] =>
  async (executor: Executor, table: Pick<UpdatedTable, 'name' | 'schema'>, keys, rows) => {
    const columns = Object.keys(rows[0] ?? {});
    const sums = sumsOf(columns, keys);
    const tuple = `(${columns.map(() => '?').join(', ')})`;
    for (let at = 0; at < rows.length; at += ROWS_AT_ONCE) {
      const part = rows.slice(at, at + ROWS_AT_ONCE);
      await rawStatement(
        executor,
        `INSERT INTO ??${alias} (${columns.join(', ')}) VALUES ${part.map(() => tuple).join(', ')} ${conflict(keys, sums)}`,
        [
          qualified(table),
          ...part.flatMap((row) => columns.map((column) => row[column] ?? 0)),
        ] as Knex.RawBinding[]
      );
    }
  };

/** The end of the statement where rows that are there already are called `held`. */
export const addOnConflict = (keys: readonly string[], sums: readonly string[]): string =>
  `ON CONFLICT (${keys.join(', ')}) DO UPDATE SET ${sums.map((sum) => `${sum} = held.${sum} + excluded.${sum}`).join(', ')}`;

/** For databases with `ON CONFLICT` (PostgreSQL, SQLite). */
export const addRowsOnConflict = addRowsWith({ alias: ' AS held', conflict: addOnConflict });

interface UpdateStatement {
  sql: string;
  bindings: (string | SqlValue)[];
}

/** Columns of a batch: those in which all rows get the same, and those in which each has its own. */
export const splitColumns = (
  rows: readonly RowUpdate[]
): { alike: Record<string, SqlValue>; own: string[] } => {
  const alike: Record<string, SqlValue> = {};
  const own: string[] = [];
  for (const [column, value] of Object.entries(rows[0]?.set ?? {})) {
    if (rows.every(({ set }) => set[column] === value)) alike[column] = value ?? null;
    else own.push(column);
  }
  return { alike, own };
};

/**
 * One statement that writes a batch of rows, those with an owner while that one holds them, and returns
 * the ids of what it wrote.
 * For databases with `UPDATE … FROM` and `RETURNING` (PostgreSQL, SQLite from 3.35).
 * @param cast whether parameters carry their type (`?::text`), which PostgreSQL needs.
 */
export const updateFromValues = (
  table: UpdatedTable,
  rows: readonly RowUpdate[],
  cast: boolean
): UpdateStatement => {
  // One row is written as it comes, so that its statement is the same whatever it says.
  const { alike, own: columns } =
    rows.length > 1 ? splitColumns(rows) : { alike: {}, own: Object.keys(rows[0]?.set ?? {}) };
  const typed = (column: string): string => (cast ? `?::${table.columns[column] ?? 'text'}` : '?');
  const isOwned = rows[0]?.owner !== undefined;
  const id = cast ? '?::integer' : '?';
  const owner = cast ? '?::text' : '?';
  const tuple = `(${[id, ...(isOwned ? [owner] : []), ...columns.map(typed)].join(', ')})`;
  // Names of their own, so that `id` and `owner` mean the table's everywhere below, and the owner
  // that a row is expected to have is not taken for the owner that it is to get.
  const names = [
    'k_id',
    ...(isOwned ? ['k_owner'] : []),
    ...columns.map((column) => `v_${column}`),
  ];
  const values = rows.flatMap((row) => [
    row.id,
    ...(row.owner === undefined ? [] : [row.owner]),
    ...columns.map((column) => row.set[column] ?? null),
  ]);
  const assignments = [
    ...Object.keys(alike).map((column) => `?? = ${typed(column)}`),
    ...columns.map(() => '?? = v.??'),
  ];
  return {
    sql:
      `WITH v(${names.map(() => '??').join(', ')}) AS (VALUES ${rows.map(() => tuple).join(', ')}) ` +
      `UPDATE ?? SET ${assignments.join(', ')} FROM v ` +
      `WHERE id = v.k_id ${isOwned ? 'AND owner = v.k_owner ' : ''}RETURNING id`,
    bindings: [
      ...names,
      ...values,
      qualified(table),
      ...Object.entries(alike).flat(),
      ...columns.flatMap((column) => [column, `v_${column}`]),
    ],
  };
};

/** For `LIKE … ESCAPE '!'`: `%` and `_` of a text mean themselves. */
export const likePattern = (text: string): string => `%${text.replace(/[!%_]/g, '!$&')}%`;

/** `contains` of a dialect whose `LOWER` knows the cases of every language. */
export const containsByLike = (text: string): { sql: string; binding: string } => ({
  sql: "LOWER(??) LIKE LOWER(?) ESCAPE '!'",
  binding: likePattern(text),
});

/** One character in either case, or one that means something to GLOB, as itself. */
const inEitherCase = (character: string): string => {
  const cases = [character, character.toLowerCase(), character.toUpperCase()];
  const variants = [...new Set(cases.filter((text) => [...text].length === 1))];
  return variants.length > 1 || '*?['.includes(character) ? `[${variants.join('')}]` : character;
};

/** For SQLite's `GLOB`: its `LOWER` and `LIKE` know the cases of ASCII alone. */
export const globPattern = (text: string): string => `*${[...text].map(inEitherCase).join('')}*`;
