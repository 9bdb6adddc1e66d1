import type { Knex } from 'knex';
import { type Executor, rawStatement, runForEach } from '../connection';
import {
  anyOfList,
  type Dialect,
  followUpOf,
  globPattern,
  type InsertedRow,
  type InsertTarget,
  onConflict,
  repeated,
  type SqlValue,
  valuesOf,
} from './shared';

const isOpenTransaction = (executor: Executor): executor is Knex.Transaction => {
  const { isTransaction, isCompleted } = executor as Knex.Transaction;
  return isTransaction === true && !isCompleted();
};

/** So many rows have a statement of their own; a table's are prepared once, so they are only two. */
const CHUNK = 100;

const insertRows = (executor: Executor, target: InsertTarget, rows: readonly InsertedRow[]) => {
  const values = rows.map((row) => valuesOf(target, row));
  const isChunk = rows.length === CHUNK;
  const sql = insertOf(target, isChunk ? CHUNK : 1);
  // Not by `flat`, which takes longer than the statement.
  return runForEach(executor, sql, isChunk ? [Array<SqlValue>().concat(...values)] : values);
};

const insertOf = (target: InsertTarget, rows: number): string => {
  const { name, columns } = target;
  const tuple = `(${repeated('?', columns.length)})`;
  return `INSERT INTO "${name}" ("${columns.join('", "')}") VALUES ${repeated(tuple, rows)}${onConflict(target)}`;
};

export const sqlite: Dialect = {
  async insert(executor, target, rows) {
    // Splitting is safe only if an error undoes all parts.
    if (isOpenTransaction(executor)) await insertRows(executor, target, rows);
    else {
      const values = rows.flatMap((row) => valuesOf(target, row));
      await rawStatement(executor, insertOf(target, rows.length), values);
    }
  },

  async insertForIds(executor, target, rows, { followUp } = {}) {
    const runs = await insertRows(executor, target, rows);
    // The first row makes its transaction the only writer, so that all of a call get consecutive ids.
    const ids: number[] = [];
    for (const { changes, lastInsertRowid: last } of runs)
      for (let before = changes - 1; before >= 0; before -= 1) ids.push(Number(last) - before);
    if (followUp) {
      const where = `${target.name} made WHERE id BETWEEN ? AND ?`;
      const ends = [ids[0] ?? 0, ids.at(-1) ?? 0];
      await runForEach(executor, followUpOf(followUp, target.schema, where), [ends]);
    }
    return rows.map((row, at) => ({ id: ids[at] as number, document_id: String(row.document_id) }));
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
    return new Set(rows.flatMap(({ id }, at) => (changed[at]?.changes === 1 ? id : [])));
  },

  anyOf: anyOfList,

  joined: (texts) => texts.join(' || '),

  contains: (text) => ({ sql: '?? GLOB ?', binding: globPattern(text) }),
};
