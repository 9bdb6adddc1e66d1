import type { Knex } from 'knex';
import { type Executor, rawStatement, rowsOf, type Statement } from '../connection';
import { type InsertedRow, type InsertTarget, qualified, type SqlValue } from './types';

const repeated = (mark: string, count: number): string => Array(count).fill(mark).join(', ');

const into = ({ columns }: InsertTarget): string =>
  `INSERT INTO ?? (${repeated('??', columns.length)})`;

export const valuesOf = ({ columns }: InsertTarget, row: InsertedRow): SqlValue[] =>
  columns.map((column) => row[column] ?? null);

/** One statement with a parameter for each value of each row. */
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
export type ColumnTypes = Readonly<Record<string, string>>;

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

/** The types of a table's columns, asked once. */
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
