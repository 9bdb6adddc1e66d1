import type { Knex } from 'knex';
import type { Dialect } from './types';
import { qualified } from './types';
import { type Executor, rawStatement } from '../connection';
import { addRowsOnConflict } from './add-rows';
import { claimLocked } from './claim-locked';
import { columnTypesOf, insertOfArrays, insertOfValues } from './insert';
import { updateFromValues } from './update-from-values';

type Result = { rows: Record<string, unknown>[] };

export const postgres: Dialect = {
  async insert(executor, target, rows) {
    const { sql, bindings } =
      rows.length === 1
        ? insertOfValues(target, rows)
        : insertOfArrays(target, await columnTypesOf(executor, target), rows);
    await rawStatement(executor, sql, bindings);
  },

  waitingGroups(table, after, limit) {
    const name = qualified(table);
    const { groupColumn } = table;
    const next = (than: string): string =>
      `SELECT ?? AS id, due_at FROM ?? WHERE ?? > ${than} AND due_at > 0 ORDER BY ??, due_at LIMIT 1`;
    const names = [groupColumn, name, groupColumn];
    return {
      sql: `WITH RECURSIVE found(id, due_at, nth) AS (
         (SELECT first.id, first.due_at, 1 FROM (${next('?')}) first)
         UNION ALL
         SELECT following.id, following.due_at, found.nth + 1
         FROM found CROSS JOIN LATERAL (${next('found.id')}) following WHERE found.nth < ${limit}
       ) SELECT id, due_at, 1 AS looked_at FROM found`,
      bindings: [...names, after, groupColumn, ...names, groupColumn],
    };
  },

  async claimGroup(executor, table, { group, now, leaseUntil, owner, limit }) {
    const name = qualified(table);
    const result = await (executor as Knex).raw<Result>(
      `UPDATE ?? SET owner = ?::text || '/' || due_at, due_at = ? WHERE id IN (
         SELECT id FROM ?? WHERE ?? = ? AND due_at <= ? ORDER BY due_at, id LIMIT ?
         FOR UPDATE SKIP LOCKED
       ) RETURNING *`,
      [name, owner, leaseUntil, name, table.groupColumn, group, now, limit]
    );
    return result.rows;
  },

  claimWithin(executor, table, claim, cap) {
    const within = async (trx: Executor) => {
      // The statements that follow see what the claim before this one committed. A lock of claims
      // alone: recording locks the rows of groups that fail, and whoever records many groups together
      // would wait for each claim of those.
      await rawStatement(trx, 'SELECT pg_advisory_xact_lock(hashtext(?), ?::int)', [
        `switchboard ${cap.groups.schema ?? ''} ${cap.groups.name}`,
        claim.group,
      ]);
      const claimOf = (limit: number) => postgres.claimGroup(trx, table, { ...claim, limit });
      return claimLocked(trx, claimOf, claim, cap);
    };
    return (executor as Knex.Transaction).isTransaction
      ? within(executor)
      : (executor as Knex).transaction(within, { isolationLevel: 'read committed' });
  },

  async claimGroups(executor, table, { groups, now, leaseUntil, owner }) {
    const name = qualified(table);
    const result = await (executor as Knex).raw<Result>(
      `UPDATE ?? SET owner = ?::text || '/' || due_at, due_at = ? WHERE id IN (
         SELECT due.id FROM unnest(?::int[], ?::int[]) AS room(id, rows) CROSS JOIN LATERAL (
           SELECT id FROM ?? WHERE ?? = room.id AND due_at <= ? ORDER BY due_at, id LIMIT room.rows
           FOR UPDATE SKIP LOCKED
         ) due
       ) RETURNING *`,
      [
        name,
        owner,
        leaseUntil,
        groups.map(({ group }) => group),
        groups.map(({ limit }) => limit),
        name,
        table.groupColumn,
        now,
      ] as unknown as Knex.RawBinding[]
    );
    return result.rows;
  },

  async updateOwned(executor, table, rows) {
    if (rows.length === 0) return new Set();
    const { sql, bindings } = updateFromValues(table, rows, true);
    const result = (await rawStatement(executor, sql, bindings as Knex.RawBinding[])) as Result;
    return new Set(result.rows.map((row) => Number(row.id)));
  },

  addRows: addRowsOnConflict,
};
