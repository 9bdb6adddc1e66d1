import type { ClaimTable, OwnedUpdate, SqlValue } from './types';
import { qualified } from './types';

export interface Statement {
  sql: string;
  bindings: (string | SqlValue)[];
}

/** Columns of a batch: those in which all rows get the same, and those in which each has its own. */
export const splitColumns = (
  rows: readonly OwnedUpdate[]
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
 * One statement that writes a batch of owned rows and returns the ids it found still owned.
 * For databases with `UPDATE … FROM` and `RETURNING` (PostgreSQL, SQLite from 3.35).
 * @param cast whether parameters carry their type (`?::text`), which PostgreSQL needs.
 */
export const updateFromValues = (
  table: ClaimTable,
  rows: readonly OwnedUpdate[],
  cast: boolean
): Statement => {
  // One row is written as it comes, so that its statement is the same whatever it says.
  const { alike, own: columns } =
    rows.length > 1 ? splitColumns(rows) : { alike: {}, own: Object.keys(rows[0]?.set ?? {}) };
  const typed = (column: string): string => (cast ? `?::${table.columns[column] ?? 'text'}` : '?');
  const key = cast ? '?::integer, ?::text' : '?, ?';
  const tuple = `(${[key, ...columns.map(typed)].join(', ')})`;
  // Names of their own, so that `id` and `owner` mean the table's everywhere below, and the owner
  // that a row is expected to have is not taken for the owner that it is to get.
  const names = ['k_id', 'k_owner', ...columns.map((column) => `v_${column}`)];
  const values = rows.flatMap((row) => [
    row.id,
    row.owner,
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
      'WHERE id = v.k_id AND owner = v.k_owner RETURNING id',
    bindings: [
      ...names,
      ...values,
      qualified(table),
      ...Object.entries(alike).flat(),
      ...columns.flatMap((column) => [column, `v_${column}`]),
    ],
  };
};
