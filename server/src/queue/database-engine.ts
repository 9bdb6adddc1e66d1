import { randomUUID } from 'node:crypto';
import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { currentExecutor, table } from '../database/connection';
import {
  type ClaimTable,
  type ColumnType,
  getDialect,
  type OwnedUpdate,
} from '../database/dialects';
import { qualified } from '../database/dialects/types';
import { withTransientRetry } from '../database/retry';
import type { Executor } from './sql';
import type { Claimed, NewWork, Settlement, WorkQueue } from './types';

/**
 * A table that holds work has the columns `id`, `due_at` (bigint, epoch milliseconds; null when
 * finished; the end of the lease while somebody holds the row) and `owner` (the lease's token), an
 * index on `(groupColumn, due_at)`, and columns of its own.
 *
 * Keeping the lease's end in `due_at` makes a crashed node's rows due again without any sweeping.
 */
export interface DatabaseQueueOptions {
  tableName: string;
  groupColumn: string;
  /** Types of the table's own columns that settling writes. */
  columns: Readonly<Record<string, ColumnType>>;
  /** The groups that are served now: a table and its condition, such as webhooks that are active. */
  groups: { tableName: string; where?: Record<string, string | number | boolean> };
  leaseMs: number;
  now?: () => number;
}

const INSERT_CHUNK = 100;

export const createDatabaseQueue = (
  strapi: Core.Strapi,
  { tableName, groupColumn, columns, groups, leaseMs, now = Date.now }: DatabaseQueueOptions
): WorkQueue => {
  const dialect = getDialect(strapi);
  const claimTable: ClaimTable = {
    name: tableName,
    schema: strapi.db.getSchemaName(),
    groupColumn,
    columns: { ...columns, due_at: 'bigint', owner: 'text' },
  };

  /** Written by hand: for SQLite the query builder makes of many rows a union that is slow to read. */
  const insertRows = async (executor: Executor, rows: readonly NewWork[]): Promise<void> => {
    const names = Object.keys(rows[0]?.columns ?? {});
    const tuple = `(?, ?${', ?'.repeat(names.length)})`;
    const values = rows.flatMap(({ group, dueAt, columns: own }) => [
      group,
      dueAt,
      ...names.map((name) => own[name] ?? null),
    ]);
    await executor.raw(
      `INSERT INTO ?? (??, due_at${', ??'.repeat(names.length)}) VALUES ${rows.map(() => tuple).join(', ')}`,
      [qualified(claimTable), groupColumn, ...names, ...values] as Knex.RawBinding[]
    );
  };

  const asClaimed = (row: Record<string, unknown>, owner: string, leaseUntil: number): Claimed => ({
    id: Number(row.id),
    group: Number(row[groupColumn]),
    owner,
    leaseUntil,
    row,
  });

  return {
    async enqueue(executor, rows) {
      for (let start = 0; start < rows.length; start += INSERT_CHUNK) {
        await insertRows(executor, rows.slice(start, start + INSERT_CHUNK));
      }
    },

    async dueTimes() {
      const executor = (await currentExecutor(strapi)) as Knex;
      // ORDER BY … LIMIT 1 rather than MIN(): one step into the index on every database.
      const next = table(strapi, executor, `${tableName} as w`)
        .select('w.due_at')
        .whereRaw('?? = ??', [`w.${groupColumn}`, 'g.id'])
        // A range, not IS NOT NULL: SQLite uses the second column of the index for the one only.
        .where('w.due_at', '>', 0)
        .orderBy('w.due_at')
        .limit(1)
        .as('due_at');
      const rows = (await table(strapi, executor, `${groups.tableName} as g`)
        .select('g.id', next)
        .where(groups.where ?? {})) as { id: number; due_at: string | number | null }[];
      return new Map(
        rows.filter((row) => row.due_at !== null).map((row) => [Number(row.id), Number(row.due_at)])
      );
    },

    async claim(group, limit) {
      const owner = randomUUID();
      const at = now();
      const leaseUntil = at + leaseMs;
      const rows = await withTransientRetry(async () =>
        dialect.claimGroup(await currentExecutor(strapi), claimTable, {
          group,
          now: at,
          leaseUntil,
          owner,
          limit,
        })
      );
      return rows.map((row) => asClaimed(row, owner, leaseUntil)).sort((a, b) => a.id - b.id);
    },

    async claimOne(id) {
      const owner = randomUUID();
      const at = now();
      const leaseUntil = at + leaseMs;
      const executor = await currentExecutor(strapi);
      const updated = await table(strapi, executor, tableName)
        .where({ id })
        .andWhere((free) => {
          free.whereNull('owner').orWhere('due_at', '<=', at);
        })
        .update({ owner, due_at: leaseUntil });
      const row = (await table(strapi, executor, tableName).where({ id }).first()) as
        Record<string, unknown> | undefined;
      if (!row) return 'absent';
      return updated === 1 ? asClaimed(row, owner, leaseUntil) : 'held';
    },

    async release(claimed) {
      const updates = claimed.map(({ id, owner }) => ({
        id,
        owner,
        set: { due_at: now(), owner: null },
      }));
      await dialect.updateOwned(await currentExecutor(strapi), claimTable, updates);
    },

    async settle(executor, settlements) {
      const updates: OwnedUpdate[] = settlements.map(
        ({ id, owner, dueAt, columns: own }: Settlement) => ({
          id,
          owner,
          set: { ...own, due_at: dueAt, owner: null },
        })
      );
      return dialect.updateOwned(executor, claimTable, updates);
    },
  };
};
