import type { Knex } from 'knex';
import { rawStatement } from '../connection';
import type { Dialect } from './types';
import { countOf, qualified } from './types';
import { updateFromValues } from './update-from-values';

/**
 * SQLite has one writer at a time, so a conditional update is a claim: no second one can see the
 * rows between the inner select and the update.
 */
export const sqlite: Dialect = {
  async claimGroup(executor, table, { group, now, leaseUntil, owner, limit }) {
    const name = qualified(table);
    return (executor as Knex).raw<Record<string, unknown>[]>(
      `UPDATE ?? SET owner = ? || '/' || due_at, due_at = ? WHERE id IN (
         SELECT id FROM ?? WHERE ?? = ? AND due_at <= ? ORDER BY due_at, id LIMIT ?
       ) RETURNING *`,
      [name, owner, leaseUntil, name, table.groupColumn, group, now, limit]
    );
  },

  async claimGroups(executor, table, { groups, now, leaseUntil, owner }) {
    const name = qualified(table);
    const due = groups.map(
      () =>
        'SELECT id FROM (SELECT id FROM ?? WHERE ?? = ? AND due_at <= ? ORDER BY due_at, id LIMIT ?)'
    );
    const bindings = groups.flatMap(({ group, limit }) => [
      name,
      table.groupColumn,
      group,
      now,
      limit,
    ]);
    return (executor as Knex).raw<Record<string, unknown>[]>(
      `UPDATE ?? SET owner = ? || '/' || due_at, due_at = ? WHERE id IN (${due.join(' UNION ALL ')}) RETURNING *`,
      [name, owner, leaseUntil, ...bindings]
    );
  },

  async claimWithin(executor, table, { group, now, leaseUntil, owner, limit }, { atOnce, count }) {
    const name = qualified(table);
    // One statement, as above. A transaction would be held over several turns of the event loop, in
    // which another connection may wait for it without giving the loop back.
    const rows = (await rawStatement(
      executor,
      `UPDATE ?? SET owner = ? || '/' || due_at, due_at = ? WHERE id IN (
         SELECT id FROM ?? WHERE ?? = ? AND due_at <= ? ORDER BY due_at, id
         LIMIT max(0, min(?, ? - (?)))
       ) RETURNING *`,
      [name, owner, leaseUntil, name, table.groupColumn, group, now, limit, atOnce, count(executor)]
    )) as Record<string, unknown>[];
    const isFull = rows.length < limit && (await countOf(count(executor))) >= atOnce;
    return { rows, isFull };
  },

  async updateOwned(executor, table, rows) {
    if (rows.length === 0) return new Set();
    const { sql, bindings } = updateFromValues(table, rows, false);
    const updated = (await rawStatement(executor, sql, bindings as Knex.RawBinding[])) as {
      id: number;
    }[];
    return new Set(updated.map((row) => Number(row.id)));
  },
};
