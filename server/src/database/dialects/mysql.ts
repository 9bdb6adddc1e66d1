import type { Knex } from 'knex';
import { type Executor, rawStatement } from '../connection';
import {
  addRowsWith,
  containsByLike,
  type Dialect,
  insertOfValues,
  qualified,
  type RowUpdate,
  splitColumns,
  type SqlValue,
  type UpdatedTable,
} from './shared';

type Rows = [Record<string, unknown>[], unknown];

/** Runs `work` in the given transaction, or in a short one of its own. */
const transacted = async <T>(
  executor: Executor,
  work: (trx: Knex.Transaction) => Promise<T>
): Promise<T> =>
  (executor as Knex.Transaction).isTransaction
    ? work(executor as Knex.Transaction)
    : // READ COMMITTED: no gap locks, so writing and enqueuing do not wait for each other.
      (executor as Knex).transaction(work, { isolationLevel: 'read committed' });

const assignments = (
  rows: readonly RowUpdate[]
): { sql: string; bindings: (string | SqlValue)[] } => {
  const { alike, own } = splitColumns(rows);
  const bindings: (string | SqlValue)[] = Object.entries(alike).flat();
  const parts = Object.keys(alike).map(() => '?? = ?');
  // MySQL evaluates all cases of a row up to its own: so only changed columns get them.
  for (const column of own) {
    bindings.push(column);
    for (const row of rows) bindings.push(row.id, row.set[column] ?? null);
    parts.push(`?? = CASE id ${rows.map(() => 'WHEN ? THEN ?').join(' ')} END`);
  }
  return { sql: parts.join(', '), bindings };
};

const heldIds = async (
  trx: Knex.Transaction,
  table: UpdatedTable,
  rows: readonly RowUpdate[]
): Promise<Set<number>> => {
  if (rows[0]?.owner === undefined) return new Set(rows.map(({ id }) => id));
  const [found] = (await trx.raw(
    `SELECT id, owner FROM ?? WHERE id IN (${rows.map(() => '?').join(', ')}) ORDER BY id FOR UPDATE`,
    [qualified(table), ...rows.map((row) => row.id)]
  )) as Rows;
  const owners = new Map(found.map((row) => [Number(row.id), row.owner]));
  return new Set(rows.filter((row) => owners.get(row.id) === row.owner).map((row) => row.id));
};

/** MySQL and MariaDB have no `UPDATE … RETURNING`: lock, read, then write in one short transaction. */
export const mysql: Dialect = {
  async insert(executor, target, rows) {
    const { sql, bindings } = insertOfValues(target, rows);
    await rawStatement(executor, sql, bindings);
  },

  async updateRows(executor, table, rows) {
    if (rows.length === 0) return new Set();
    return transacted(executor, async (trx) => {
      const held = await heldIds(trx, table, rows);
      const owned = rows.filter((row) => held.has(row.id));
      if (owned.length === 0) return held;
      const { sql, bindings } = assignments(owned);
      await rawStatement(
        trx,
        `UPDATE ?? SET ${sql} WHERE id IN (${owned.map(() => '?').join(', ')})`,
        [qualified(table), ...(bindings as Knex.RawBinding[]), ...owned.map((row) => row.id)]
      );
      return held;
    });
  },

  joined: (texts) => `CONCAT(${texts.join(', ')})`,

  contains: containsByLike,

  addRows: addRowsWith({
    alias: '',
    // MariaDB knows no other way to name what was to be inserted.
    conflict: (_keys, sums) =>
      `ON DUPLICATE KEY UPDATE ${sums.map((sum) => `${sum} = ${sum} + VALUES(${sum})`).join(', ')}`,
  }),
};
