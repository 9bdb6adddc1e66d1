import type { Knex } from 'knex';
import { type Executor, type Leave, padded, type Statement } from '../connection';

export type SqlValue = string | number | boolean | null;

/** A table whose rows are written in batches: each part is quoted as an identifier by the statement. */
export interface WrittenTable {
  name: string;
  schema: string | undefined;
}

/** A row that is changed; where `owner` is given, only while that one still holds the row. */
export interface RowUpdate {
  id: number;
  owner?: string;
  set: Readonly<Record<string, SqlValue>>;
}

export interface InsertTarget extends WrittenTable {
  columns: readonly string[];
  conflict?: Conflict;
}

/** For a row that exists already, by its `unique` columns, which have an index. */
export interface Conflict {
  unique: readonly string[];
  /** On conflict: `ignore` skips the new row, `add` adds its other columns to the existing one, `replace` sets them. */
  then: 'ignore' | 'add' | 'replace';
}

export type InsertedRow = Readonly<Record<string, SqlValue>>;

/** A row of another table for each inserted one, `made`. All but the name is SQL, lists with commas. */
export interface FollowUp {
  name: string;
  /** The columns of the inserted one that it is made of, the id and the document id first. */
  of: string;
  into: string;
  /** The values, over these columns. */
  from: string;
}

export interface MadeRow {
  id: number | string;
  document_id: string;
}

export interface Dialect {
  /** Inserts rows, at most one statement's worth. Use a transaction: rows before a refused one may remain. */
  insert(executor: Executor, target: InsertTarget, rows: readonly InsertedRow[]): Promise<void>;

  /** As `insert`, of rows with document ids, and with the rows that follow them; none are returned if left. */
  insertForIds(
    executor: Executor,
    target: InsertTarget,
    rows: readonly InsertedRow[],
    also?: { followUp?: FollowUp; leave?: Leave<readonly MadeRow[]> }
  ): Promise<MadeRow[]>;

  /** Writes rows of like columns, those with an owner while it holds them. @returns their ids */
  updateRows(
    trx: Knex.Transaction,
    table: WrittenTable,
    rows: readonly RowUpdate[]
  ): Promise<Set<number>>;

  /** The condition that a column has one of these numbers, in few different texts. */
  anyOf(column: string, numbers: readonly number[]): Statement;

  joined(texts: readonly string[]): string;

  /** The condition that column `??` contains a text: without wildcards, case-insensitive as far as the database can. */
  contains(text: string): { sql: string; binding: string };
}

/** `schema.table` as knex's `??` binding takes it. */
export const qualified = (table: WrittenTable): string =>
  table.schema ? `${table.schema}.${table.name}` : table.name;

export const repeated = (mark: string, count: number): string =>
  `${mark}, `.repeat(count).slice(0, -2);

export const valuesOf = ({ columns }: InsertTarget, row: InsertedRow): SqlValue[] =>
  columns.map((column) => row[column] ?? null);

export const insertOfValues = (target: InsertTarget, rows: readonly InsertedRow[]): Statement => {
  const { columns } = target;
  const tuple = `(${repeated('?', columns.length)})`;
  return {
    sql: `INSERT INTO ?? (${repeated('??', columns.length)}) VALUES ${repeated(tuple, rows.length)}`,
    bindings: [qualified(target), ...columns, ...rows.flatMap((row) => valuesOf(target, row))],
  };
};

/** The assignments to an existing row. @param given names what was to be inserted into a column */
export const changesOf = (
  { name, columns }: InsertTarget,
  { then, unique }: Conflict,
  given: (column: string) => string
): string =>
  columns
    .filter((column) => !unique.includes(column))
    .map((column) => `${column} = ${then === 'add' ? `${name}.${column} + ` : ''}${given(column)}`)
    .join(', ');

/** @param made the source of the inserted rows, as `made`: SQL that follows `FROM` */
export const followUpOf = (
  { name, into, from }: FollowUp,
  schema: string | undefined,
  made: string
) => `INSERT INTO ${schema ? `"${schema}".` : ''}${name} (${into}) SELECT ${from} FROM ${made}`;

/** The end of an `INSERT` for databases with `ON CONFLICT` (PostgreSQL, SQLite). */
export const onConflict = (target: InsertTarget): string => {
  const { conflict } = target;
  if (!conflict) return '';
  const changes = changesOf(target, conflict, (column) => `excluded.${column}`);
  const action = conflict.then === 'ignore' ? 'NOTHING' : `UPDATE SET ${changes}`;
  return ` ON CONFLICT (${conflict.unique.join(', ')}) DO ${action}`;
};

/** Columns of a batch: those in which all rows get the same, and those in which each has its own. */
export const splitColumns = (rows: readonly RowUpdate[]) => {
  const alike: Record<string, SqlValue> = {};
  const own: string[] = [];
  for (const [column, value] of Object.entries(rows[0]?.set ?? {})) {
    if (rows.every(({ set }) => set[column] === value)) alike[column] = value ?? null;
    else own.push(column);
  }
  return { alike, own };
};

export const anyOfList = (column: string, numbers: readonly number[]): Statement => {
  const bindings = padded(numbers, numbers.at(-1) ?? 0);
  return { sql: `${column} IN (${repeated('?', bindings.length)})`, bindings };
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

/** For SQLite's `GLOB`: its `LOWER` and `LIKE` know the cases of ASCII only. */
export const globPattern = (text: string): string => `*${[...text].map(inEitherCase).join('')}*`;
