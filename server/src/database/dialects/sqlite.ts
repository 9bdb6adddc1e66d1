import type { Knex } from 'knex';
import {
  type Executor,
  padded,
  rawStatement,
  rowsOf,
  runForEach,
  runPrepared,
} from '../connection';
import {
  addOnConflict,
  addRowsOnConflict,
  countOf,
  globPattern,
  insertOfValues,
  leasedWithin,
  sumsOf,
  updateFromValues,
  valuesOf,
} from './sql';
import {
  type ClaimTable,
  type Dialect,
  type InsertTarget,
  type RowUpdate,
  qualified,
} from './types';

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

/** A group that a claim takes nothing of. */
const NO_ROOM = { group: 0, limit: 0 };

/** There is no way to the server and back to be saved, and one statement that is prepared serves all. */
const updateEach = async (
  trx: Knex.Transaction,
  { name }: ClaimTable,
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

  waitingGroups(table, after, limit) {
    const name = qualified(table);
    const { groupColumn } = table;
    // Subqueries that the index answers alone: without a look at the rows themselves.
    const next = (than: string): string =>
      `(SELECT ?? FROM ?? WHERE ?? > ${than} AND due_at > 0 ORDER BY ?? LIMIT 1)`;
    const names = [groupColumn, name, groupColumn];
    return {
      sql: `WITH RECURSIVE found(id, nth) AS (
         SELECT ${next('?')}, 1
         UNION ALL
         SELECT ${next('found.id')}, nth + 1 FROM found WHERE id IS NOT NULL AND nth < ${limit}
       ) SELECT id, 1 AS looked_at,
           (SELECT due_at FROM ?? WHERE ?? = found.id AND due_at > 0 ORDER BY due_at LIMIT 1) AS due_at
         FROM found WHERE id IS NOT NULL`,
      bindings: [...names, after, groupColumn, ...names, groupColumn, name, groupColumn],
    };
  },

  async claimGroup(executor, table, { group, now, leaseUntil, owner, limit }) {
    const { name, groupColumn } = table;
    const sql = `UPDATE "${name}" SET owner = ? || '/' || due_at, due_at = ? WHERE id IN (
         SELECT id FROM "${name}" WHERE "${groupColumn}" = ? AND due_at <= ? ORDER BY due_at, id LIMIT ?
       ) RETURNING *`;
    const bindings = [owner, leaseUntil, group, now, limit];
    return rowsOf(await runPrepared(executor, { sql, bindings }));
  },

  async claimGroups(executor, table, { groups, now, leaseUntil, owner }) {
    const { name, groupColumn } = table;
    const rooms = padded(groups, NO_ROOM);
    const due = `SELECT id FROM (SELECT id FROM "${name}" WHERE "${groupColumn}" = ? AND due_at <= ? ORDER BY due_at, id LIMIT ?)`;
    const sql = `UPDATE "${name}" SET owner = ? || '/' || due_at, due_at = ? WHERE id IN (${rooms.map(() => due).join(' UNION ALL ')}) RETURNING *`;
    const bindings = [
      owner,
      leaseUntil,
      ...rooms.flatMap(({ group, limit }) => [group, now, limit]),
    ];
    return rowsOf(await runPrepared(executor, { sql, bindings }));
  },

  async claimWithin(executor, table, { group, now, leaseUntil, owner, limit }, cap) {
    const { atOnce, own, ahead, counted } = cap;
    const name = qualified(table);
    const count = () => leasedWithin(executor, table, group, counted);
    // One statement, as above. A transaction would be held over several turns of the event loop, in
    // which another connection may wait for it without giving the loop back.
    const rows = (await rawStatement(
      executor,
      `UPDATE ?? SET owner = ? || '/' || due_at, due_at = ? WHERE id IN (
         SELECT id FROM ?? WHERE ?? = ? AND due_at <= ? ORDER BY due_at, id
         LIMIT (SELECT max(0, min(?, ? - leased), CASE leased WHEN 0 THEN ? ELSE 0 END) FROM (?))
       ) RETURNING *`,
      [
        name,
        owner,
        leaseUntil,
        name,
        table.groupColumn,
        group,
        now,
        limit,
        atOnce - own,
        ahead,
        count(),
      ]
    )) as Record<string, unknown>[];
    // What was leased just now is among what is counted.
    const others = (await countOf(count())) - rows.length;
    return { rows, isFull: others + own + rows.length >= atOnce, isAlone: others <= 0 };
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
