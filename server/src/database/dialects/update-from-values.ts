import type { ClaimTable, OwnedUpdate, SqlValue } from './types';
import { qualified } from './types';

export interface Statement {
  sql: string;
  bindings: (string | SqlValue)[];
}

/**
 * One statement that writes a batch of owned rows and returns the ids it found still owned.
 * For databases with `UPDATE … FROM` and `RETURNING` (PostgreSQL, SQLite from 3.35).
 * @param cast whether parameters carry their type (`?::text`), which PostgreSQL needs.
 */
export const updateFromValues = (
  table: ClaimTable,
  rows: readonly OwnedUpdate[],
  cast: boolean
): Statement => {
  const columns = Object.keys(rows[0]?.set ?? {});
  const typed = (column: string): string => (cast ? `?::${table.columns[column] ?? 'text'}` : '?');
  const tuple = `(${cast ? '?::integer, ?::text' : '?, ?'}${columns.map((column) => `, ${typed(column)}`).join('')})`;
  const names = ['id', 'owner', ...columns];
  const bindings: (string | SqlValue)[] = [...names];
  for (const row of rows) {
    bindings.push(row.id, row.owner, ...columns.map((column) => row.set[column] ?? null));
  }
  const assignments = columns.map(() => '?? = v.??').join(', ');
  bindings.push(qualified(table));
  for (const column of columns) bindings.push(column, column);
  return {
    sql:
      `WITH v(${names.map(() => '??').join(', ')}) AS (VALUES ${rows.map(() => tuple).join(', ')}) ` +
      `UPDATE ?? AS t SET ${assignments} FROM v WHERE t.id = v.id AND t.owner = v.owner RETURNING t.id`,
    bindings,
  };
};
