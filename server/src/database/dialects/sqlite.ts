import type { Knex } from 'knex';
import { type Executor, rawStatement, runForEach } from '../connection';
import {
  addOnConflict,
  addRowsOnConflict,
  globPattern,
  insertOfValues,
  sumsOf,
  updateFromValues,
  valuesOf,
  type Dialect,
  type InsertTarget,
  type RowUpdate,
  type UpdatedTable,
} from './shared';

const isOpenTransaction = (executor: Executor): executor is Knex.Transaction => {
  const { isTransaction, isCompleted } = executor as Knex.Transaction;
  return isTransaction === true && !isCompleted();
};

/** So many rows have a statement of their own; a table's are prepared once, so they are only two. */
const CHUNK = 100;

const insertOf = ({ name, columns }: Omit<InsertTarget, 'schema'>, rows: number): string => {
  const tuple = `(${columns.map(() => '?').join(', ')})`;
  return `INSERT INTO "${name}" AS held ("${columns.join('", "')}") VALUES ${Array<string>(rows).fill(tuple).join(', ')}`;
};

/** There is no way to the server and back to be saved, and one statement that is prepared serves all. */
const updateEach = async (
  trx: Knex.Transaction,
  { name }: UpdatedTable,
  rows: readonly RowUpdate[]
): Promise<Set<number>> => {
  const columns = Object.keys(rows[0]?.set ?? {});
  const isOwned = rows[0]?.owner !== undefined;
  const changed = await runForEach(
    trx,
    `UPDATE "${name}" SET ${columns.map((column) => `"${column}" = ?`).join(', ')} WHERE id = ?${isOwned ? ' AND owner = ?' : ''}`,
    rows.map(({ id, owner, set }) => [
      ...columns.map((column) => set[column] ?? null),
      id,
      ...(owner === undefined ? [] : [owner]),
    ])
  );
  return new Set(rows.flatMap(({ id }, at) => (changed[at] === 1 ? id : [])));
};

/**
 * SQLite has one writer at a time, so a conditional update is a claim: no second one can see the
 * rows between the inner select and the update.
 */
export const sqlite: Dialect = {
  async insert(executor, target, rows) {
    // In parts is as good as at once only where a failure undoes all of them.
    if (isOpenTransaction(executor)) {
      const values = rows.map((row) => valuesOf(target, row));
      const isChunk = rows.length === CHUNK;
      const sql = insertOf(target, isChunk ? CHUNK : 1);
      await runForEach(executor, sql, isChunk ? [values.flat()] : values);
      return;
    }
    const { sql, bindings } = insertOfValues(target, rows);
    await rawStatement(executor, sql, bindings);
  },

  async updateRows(executor, table, rows) {
    if (rows.length === 0) return new Set();
    if (isOpenTransaction(executor)) return updateEach(executor, table, rows);
    const { sql, bindings } = updateFromValues(table, rows, false);
    const updated = (await rawStatement(executor, sql, bindings as Knex.RawBinding[])) as {
      id: number;
    }[];
    return new Set(updated.map((row) => Number(row.id)));
  },

  joined: (texts) => texts.join(' || '),

  contains: (text) => ({ sql: '?? GLOB ?', binding: globPattern(text) }),

  async addRows(executor, table, keys, rows) {
    const [first] = rows;
    if (!first || !isOpenTransaction(executor)) {
      await addRowsOnConflict(executor, table, keys, rows);
      return;
    }
    const columns = Object.keys(first);
    const sql = `${insertOf({ name: table.name, columns }, 1)} ${addOnConflict(keys, sumsOf(columns, keys))}`;
    await runForEach(
      executor,
      sql,
      rows.map((row) => columns.map((column) => row[column] ?? 0))
    );
  },
};
