import type { Knex } from 'knex';
import { type Executor, rawStatement } from '../connection';
import { type ClaimTable, type Dialect, qualified } from './types';

/** Keeps a statement, and the time for which it holds its rows, short. */
const ROWS_AT_ONCE = 100;

interface Clauses {
  /** How the statement calls the table's own rows, behind its name. */
  alias: string;
  /** What a row that is there already becomes. */
  conflict(keys: readonly string[], sums: readonly string[]): string;
}

/** The columns in which rows are added up. */
export const sumsOf = (columns: readonly string[], keys: readonly string[]): string[] =>
  columns.filter((column) => !keys.includes(column));

/** `addRows` of a dialect, which differs in what happens to rows that are there already. */
export const addRowsWith =
  ({ alias, conflict }: Clauses): Dialect['addRows'] =>
  async (executor: Executor, table: Pick<ClaimTable, 'name' | 'schema'>, keys, rows) => {
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
