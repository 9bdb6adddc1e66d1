import type { Knex } from 'knex';
import { type Executor, rawStatement } from '../connection';
import type { Dialect } from './types';
import { qualified } from './types';
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

  groupAlone(executor, groups, _group, work) {
    const alone = async (trx: Executor) => {
      // Takes the one writer's lock before anything is read, and changes nothing: two that had both
      // read would wait for each other.
      await rawStatement(trx, 'UPDATE ?? SET id = id WHERE 1 = 0', [qualified(groups)]);
      return work(trx);
    };
    return (executor as Knex.Transaction).isTransaction
      ? alone(executor)
      : (executor as Knex).transaction(alone);
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
