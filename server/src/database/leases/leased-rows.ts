import { randomUUID } from 'node:crypto';
import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { currentExecutor, table } from '../connection';
import {
  type ClaimTable,
  type ColumnType,
  getDialect,
  type GroupClaim,
  type OwnedUpdate,
} from '../dialects';
import { withTransientRetry } from '../errors/retry';
import { inStatements, insertRows } from '../insert-rows';
import { createTimeSlice } from '../../runtime/event-loop';
import type { Executor } from './sql';
import type { LeasedRow, LeasedRows, Settlement } from './types';
import { getClock } from '../clock';

/**
 * A table that holds work has the columns `id`, `due_at` (bigint, epoch milliseconds; null when
 * finished; the end of the lease while somebody holds the row) and `owner` (the lease's token), an
 * index on `(groupColumn, due_at)`, and columns of its own.
 *
 * Keeping the lease's end in `due_at` makes a crashed node's rows due again without any sweeping.
 */
export interface LeasedRowsOptions {
  tableName: string;
  groupColumn: string;
  /** Types of the table's own columns that settling writes. */
  columns: Readonly<Record<string, ColumnType>>;
  /** The groups that are served now: a table and its condition, such as webhooks that are active. */
  groups: { tableName: string; where?: Record<string, string | number | boolean> };
  leaseMs: number;
}

/**
 * How much later than ours a lease of another node may end that is still looked for among the rows
 * of a group, in milliseconds: what two nodes take for the database's time differs a little.
 */
const CLOCKS_DIFFER_MS = 5000;
const SETTLE_CHUNK = 200;
/** Groups whose next due row is looked up with one statement. */
const GROUPS_AT_ONCE = 500;

export const createLeasedRows = (
  strapi: Core.Strapi,
  { tableName, groupColumn, columns, groups, leaseMs }: LeasedRowsOptions
): LeasedRows => {
  const dialect = getDialect(strapi);
  const clock = getClock(strapi);
  const now = () => clock.now();
  const claimTable: ClaimTable = {
    name: tableName,
    schema: strapi.db.getSchemaName(),
    groupColumn,
    columns: { ...columns, due_at: 'bigint', owner: 'text' },
  };
  const groupTable = { name: groups.tableName, schema: claimTable.schema };

  const asLeased = (
    row: Record<string, unknown>,
    owner: string,
    dueAt: number,
    leaseUntil: number
  ): LeasedRow => ({
    id: Number(row.id),
    group: Number(row[groupColumn]),
    owner,
    dueAt,
    leaseUntil,
    row,
  });

  const updateOwned = async (
    executor: Executor,
    updates: readonly OwnedUpdate[]
  ): Promise<Set<number>> => {
    const held = new Set<number>();
    await inStatements(
      strapi,
      executor,
      updates,
      SETTLE_CHUNK,
      ({ set }) => set,
      async (part) => {
        for (const id of await dialect.updateOwned(executor, claimTable, part)) held.add(id);
      }
    );
    return held;
  };

  const newLease = (): Pick<GroupClaim, 'now' | 'leaseUntil' | 'owner'> => {
    const at = now();
    return { now: at, leaseUntil: at + leaseMs, owner: randomUUID() };
  };

  /** The rows of a claim, in the order they were due. */
  const asClaimed = (
    { owner, leaseUntil }: Pick<GroupClaim, 'owner' | 'leaseUntil'>,
    rows: readonly Record<string, unknown>[]
  ): LeasedRow[] =>
    rows
      .map((row) => {
        const lease = String(row.owner);
        return asLeased(row, lease, Number(lease.slice(owner.length + 1)), leaseUntil);
      })
      .sort((a, b) => a.dueAt - b.dueAt || a.id - b.id);

  /** Rows of a group that anybody holds now. Only where leases end is looked at: one range of the index. */
  const countLeased = (
    executor: Executor,
    group: number,
    except: readonly number[]
  ): Knex.QueryBuilder => {
    const at = now();
    return table(strapi, executor, tableName)
      .count({ leased: '*' })
      .where(groupColumn, group)
      .whereBetween('due_at', [at + 1, at + leaseMs + CLOCKS_DIFFER_MS])
      .whereNotNull('owner')
      .whereNotIn('id', [...except]);
  };

  return {
    now,

    async insert(executor, rows) {
      await insertRows(
        strapi,
        executor,
        tableName,
        rows.map(({ group, dueAt, columns: own }) => ({
          [groupColumn]: group,
          due_at: dueAt,
          ...own,
        }))
      );
    },

    async dueTimes() {
      await clock.sync();
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
      const due = new Map<number, number>();
      const slice = createTimeSlice();
      for (let after = 0; ;) {
        const rows = (await table(strapi, executor, `${groups.tableName} as g`)
          .select('g.id', next.clone())
          .where(groups.where ?? {})
          .where('g.id', '>', after)
          .orderBy('g.id')
          .limit(GROUPS_AT_ONCE)) as { id: number; due_at: string | number | null }[];
        for (const row of rows) {
          if (row.due_at !== null) due.set(Number(row.id), Number(row.due_at));
        }
        if (rows.length < GROUPS_AT_ONCE) return due;
        after = Number(rows.at(-1)?.id);
        if (slice.isOver()) await slice.next();
      }
    },

    claim: (group, limit) =>
      withTransientRetry(async () => {
        const claim = { group, limit, ...newLease() };
        const executor = await currentExecutor(strapi);
        return asClaimed(claim, await dialect.claimGroup(executor, claimTable, claim));
      }),

    claimGroups: (rooms) =>
      withTransientRetry(async () => {
        const claim = { groups: rooms, ...newLease() };
        const executor = await currentExecutor(strapi);
        return asClaimed(claim, await dialect.claimGroups(executor, claimTable, claim));
      }),

    claimWithin: (group, limit, { atOnce, except }) =>
      withTransientRetry(async () => {
        const claim = { group, limit, ...newLease() };
        const { rows, isFull } = await dialect.claimWithin(
          await currentExecutor(strapi),
          claimTable,
          claim,
          {
            atOnce,
            groups: groupTable,
            count: (executor) => countLeased(executor, group, except),
          }
        );
        return { leases: asClaimed(claim, rows), isFull };
      }),

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
      return updated === 1 ? asLeased(row, owner, at, leaseUntil) : 'held';
    },

    async release(leases) {
      const updates = leases.map(({ id, owner, dueAt }) => ({
        id,
        owner,
        set: { due_at: dueAt, owner: null },
      }));
      await updateOwned(await currentExecutor(strapi), updates);
    },

    async settle(executor, settlements) {
      const updates: OwnedUpdate[] = settlements.map(
        ({ id, owner, dueAt, columns: own }: Settlement) => ({
          id,
          owner,
          set: { ...own, due_at: dueAt, owner: null },
        })
      );
      return updateOwned(executor, updates);
    },
  };
};
