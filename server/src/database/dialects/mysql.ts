import type { Knex } from 'knex';
import { type Executor, rawStatement } from '../connection';
import {
  addRowsWith,
  containsByLike,
  countOf,
  insertOfValues,
  leasedWithin,
  splitColumns,
} from './sql';
import { sparseColumn } from '../tables/plain-tables';
import {
  allowedBeside,
  type ClaimTable,
  type Dialect,
  type GroupsClaim,
  isFullWith,
  type RowUpdate,
  qualified,
  type SqlValue,
} from './types';

type Rows = [Record<string, unknown>[], unknown];

/** Runs `work` in the given transaction, or in a short one of its own. */
const transacted = async <T>(
  executor: Executor,
  work: (trx: Knex.Transaction) => Promise<T>
): Promise<T> =>
  (executor as Knex.Transaction).isTransaction
    ? work(executor as Knex.Transaction)
    : // READ COMMITTED: no gap locks, so claiming and enqueuing do not wait for each other.
      (executor as Knex).transaction(work, { isolationLevel: 'read committed' });

const assignments = (
  rows: readonly RowUpdate[]
): { sql: string; bindings: (string | SqlValue)[] } => {
  const { alike, own } = splitColumns(rows);
  const bindings: (string | SqlValue)[] = Object.entries(alike).flat();
  const parts = Object.keys(alike).map(() => '?? = ?');
  // Of each row all cases are looked at until its own: only for what differs.
  for (const column of own) {
    bindings.push(column);
    for (const row of rows) bindings.push(row.id, row.set[column] ?? null);
    parts.push(`?? = CASE id ${rows.map(() => 'WHEN ? THEN ?').join(' ')} END`);
  }
  return { sql: parts.join(', '), bindings };
};

const heldIds = async (
  trx: Knex.Transaction,
  table: ClaimTable,
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

/** Gives rows that are locked to an owner, and returns them as they are then. */
const leaseLocked = async (
  trx: Knex.Transaction,
  table: ClaimTable,
  rows: readonly Record<string, unknown>[],
  { owner, leaseUntil }: Pick<GroupsClaim, 'owner' | 'leaseUntil'>
): Promise<Record<string, unknown>[]> => {
  if (rows.length === 0) return [];
  await trx.raw(
    // Assignments are made from left to right: the owner is given what was due before.
    `UPDATE ?? SET owner = CONCAT(?, '/', due_at), due_at = ? WHERE id IN (${rows.map(() => '?').join(', ')})`,
    [qualified(table), owner, leaseUntil, ...rows.map((row) => Number(row.id))]
  );
  return rows.map((row) => ({
    ...row,
    owner: `${owner}/${Number(row.due_at)}`,
    due_at: leaseUntil,
  }));
};

/** MySQL and MariaDB have no `UPDATE … RETURNING`: lock, read, then write in one short transaction. */
export const mysql: Dialect = {
  async insert(executor, target, rows) {
    const { sql, bindings } = insertOfValues(target, rows);
    await rawStatement(executor, sql, bindings);
  },

  waitingGroups(table, after, limit) {
    const column = sparseColumn(table.groupColumn, 'due_at');
    // Neither server steps from group to group by a value that it has just found, and whether a
    // grouping skips over rows hangs on statistics that a queue outruns: so what is read is bounded.
    return {
      sql: `SELECT id, MIN(due_at) AS due_at, COUNT(*) AS looked_at FROM (
         SELECT ?? AS id, due_at FROM ?? WHERE ?? > ? ORDER BY ??, due_at LIMIT ${limit}
       ) found GROUP BY id`,
      bindings: [column, qualified(table), column, after, column],
    };
  },

  async claimGroup(executor, table, { group, now, limit, ...lease }) {
    return transacted(executor, async (trx) => {
      const [rows] = (await trx.raw(
        'SELECT * FROM ?? WHERE ?? = ? AND due_at <= ? ORDER BY due_at, id LIMIT ? FOR UPDATE SKIP LOCKED',
        [qualified(table), table.groupColumn, group, now, limit]
      )) as Rows;
      return leaseLocked(trx, table, rows, lease);
    });
  },

  async claimGroups(executor, table, { groups, now, ...lease }) {
    const name = qualified(table);
    const due = groups.map(
      () =>
        '(SELECT * FROM ?? WHERE ?? = ? AND due_at <= ? ORDER BY due_at, id LIMIT ? FOR UPDATE SKIP LOCKED)'
    );
    const bindings = groups.flatMap(({ group, limit }) => [
      name,
      table.groupColumn,
      group,
      now,
      limit,
    ]);
    return transacted(executor, async (trx) => {
      const [rows] = (await trx.raw(due.join(' UNION ALL '), bindings)) as Rows;
      return leaseLocked(trx, table, rows, lease);
    });
  },

  claimWithin: (executor, table, claim, cap) =>
    transacted(executor, async (trx) => {
      await rawStatement(trx, 'SELECT id FROM ?? WHERE id = ? FOR UPDATE', [
        qualified(cap.groups),
        claim.group,
      ]);
      const others = await countOf(leasedWithin(trx, table, claim.group, cap.counted));
      const isAlone = others === 0;
      const limit = allowedBeside(others, claim.limit, cap);
      if (limit === 0) return { rows: [], isFull: true, isAlone };
      const rows = await mysql.claimGroup(trx, table, { ...claim, limit });
      return { rows, isFull: isFullWith(others, rows.length, limit, cap), isAlone };
    }),

  async updateRows(executor, table, rows) {
    if (rows.length === 0) return new Set();
    return transacted(executor, async (trx) => {
      const held = await heldIds(trx, table, rows);
      const mine = rows.filter((row) => held.has(row.id));
      if (mine.length === 0) return held;
      const { sql, bindings } = assignments(mine);
      await rawStatement(
        trx,
        `UPDATE ?? SET ${sql} WHERE id IN (${mine.map(() => '?').join(', ')})`,
        [qualified(table), ...(bindings as Knex.RawBinding[]), ...mine.map((row) => row.id)]
      );
      return held;
    });
  },

  contains: containsByLike,

  addRows: addRowsWith({
    alias: '',
    // MariaDB knows no other way to name what was to be inserted.
    conflict: (_keys, sums) =>
      `ON DUPLICATE KEY UPDATE ${sums.map((sum) => `${sum} = ${sum} + VALUES(${sum})`).join(', ')}`,
  }),
};
