import type { Knex } from 'knex';
import { type Executor, rawStatement, runForEach } from '../connection';
import {
  type Dialect,
  globPattern,
  type InsertTarget,
  onConflict,
  repeated,
  valuesOf,
} from './shared';

const isOpenTransaction = (executor: Executor): executor is Knex.Transaction => {
  const { isTransaction, isCompleted } = executor as Knex.Transaction;
  return isTransaction === true && !isCompleted();
};

/** So many rows have a statement of their own; a table's are prepared once, so they are only two. */
const CHUNK = 100;

const insertOf = (target: InsertTarget, rows: number): string => {
  const { name, columns } = target;
  const tuple = `(${repeated('?', columns.length)})`;
  return `INSERT INTO "${name}" ("${columns.join('", "')}") VALUES ${repeated(tuple, rows)}${onConflict(target)}`;
};

export const sqlite: Dialect = {
  async insert(executor, target, rows) {
    const values = rows.map((row) => valuesOf(target, row));
    // In parts is as good as at once only where a failure undoes all of them.
    if (!isOpenTransaction(executor)) {
      await rawStatement(executor, insertOf(target, rows.length), values.flat());
      return;
    }
    const isChunk = rows.length === CHUNK;
    const sql = insertOf(target, isChunk ? CHUNK : 1);
    await runForEach(executor, sql, isChunk ? [values.flat()] : values);
  },

  /** There is no way to the server and back to be saved, and one statement that is prepared serves all. */
  async updateRows(trx, { name }, rows) {
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
  },

  joined: (texts) => texts.join(' || '),

  contains: (text) => ({ sql: '?? GLOB ?', binding: globPattern(text) }),
};
