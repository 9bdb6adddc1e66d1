import { randomUUID } from 'node:crypto';
import type { Knex } from 'knex';
import { TimeSlice } from '../runtime/event-loop';
import { rowsOf, type Statement } from './connection';
import type { Database, Db } from './db';
import {
  type CappedGroupClaim,
  type ClaimedWithin,
  type ClaimTable,
  type ColumnType,
  type GroupClaim,
  type LeasedSpan,
  type RowUpdate,
} from './dialects';
import { countOf, leasedWithin } from './dialects/sql';
import { qualified } from './dialects/types';
import type { LeasedRow, LeasedRows, Settlement } from './lease-types';
import { withTransientRetry } from './retry';

interface CombiningOptions {
  /** How many works may be under way at once. */
  underWay: number;
  /** How many pieces one work takes. */
  together: number;
}

/**
 * Works at once on what comes one by one; what comes while as much is under way as may be waits, and is
 * then worked on together.
 * @param work answers each piece, in their order; it runs in the asynchronous context of whoever began it
 * @returns a function that resolves with the answer to its piece, or rejects with what was thrown
 */
export const createCombining = <T, R>(
  work: (batch: readonly T[]) => Promise<readonly R[]>,
  { underWay, together }: CombiningOptions
): ((one: T) => Promise<R>) => {
  const waiting: { one: T; done: (answer: R) => void; failed: (error: unknown) => void }[] = [];
  let working = 0;

  const workOnSome = async (): Promise<void> => {
    working += 1;
    const batch = waiting.splice(0, together);
    try {
      const answers = await work(batch.map(({ one }) => one));
      batch.forEach(({ done }, at) => done(answers[at] as R));
    } catch (error) {
      for (const { failed } of batch) failed(error);
    }
    working -= 1;
    if (waiting.length > 0) void workOnSome();
  };

  return (one) =>
    new Promise((done, failed) => {
      waiting.push({ one, done, failed });
      if (working < underWay) void workOnSome();
    });
};

/**
 * A table that holds work has the columns `id`, `due_at` (bigint, epoch milliseconds; null when
 * finished; the end of the lease while somebody holds the row) and `owner` (the lease's token),
 * indexes on `(groupColumn, due_at)`, one of them sparse (`present: 'due_at'`), and columns of its own.
 *
 * Keeping the lease's end in `due_at` makes a crashed node's rows due again without any sweeping.
 */
export interface LeasedRowsOptions {
  tableName: string;
  groupColumn: string;
  /** Types of the table's own columns that settling writes. */
  columns: Readonly<Record<string, ColumnType>>;
  /**
   * The groups that are served now: a table and its condition, such as webhooks that are active.
   */
  groups: {
    tableName: string;
    where?: Record<string, string | number | boolean>;
    /** What a look reads of a group besides. */
    seen?: {
      /** Columns with their names, of the group's row as `g`. */
      columns: Statement;
      /** Hears of them. @returns when the group is due whose first row is due at that time */
      dueAt(group: number, columns: Record<string, unknown>, firstDueAt: number): number;
    };
  };
  /** How long a lease lasts that nobody prolongs, in milliseconds. */
  leaseMs: number;
  /** The longest that one may last, also where an earlier version made it; `leaseMs` if left out. */
  longestLeaseMs?: number;
}

/**
 * How much later than ours a lease of another node may end that is still looked for among the rows
 * of a group, in milliseconds: what two nodes take for the database's time differs a little.
 */
const CLOCKS_DIFFER_MS = 5000;
const SETTLE_CHUNK = 200;
/** Claims under a cap: how many ways to the database at once, and how many claims each takes. */
const TOGETHER = { underWay: 2, together: 16 };
const ONE_BY_ONE = { underWay: 4, together: 1 };
/** Entries of an index that one statement looks at for due times. */
const LOOKED_AT_ONCE = 500;

/** When a row was due before it was leased, as its owner says; null: it does not. */
const dueBefore = (owner: string): number | null => {
  const [, time] = /\/(\d+)$/.exec(owner) ?? [];
  return time === undefined ? null : Number(time);
};

interface WaitingGroup {
  id: number | string;
  due_at: number | string;
  looked_at: number | string;
  /** null: its rows wait, and are not to be worked on now. */
  served: number | null;
  [column: string]: unknown;
}

export const createLeasedRows = (
  database: Database,
  { tableName, groupColumn, columns, groups, leaseMs, longestLeaseMs = leaseMs }: LeasedRowsOptions
): LeasedRows => {
  const dialect = database.dialect;
  const clock = database.clock;
  const now = () => clock.now();
  const claimTable: ClaimTable = {
    name: tableName,
    schema: database.schema,
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

  const updateOwned = async (db: Db, updates: readonly RowUpdate[]): Promise<Set<number>> => {
    const held = new Set<number>();
    await db.inParts(updates, { count: SETTLE_CHUNK, valuesOf: ({ set }) => set }, async (part) => {
      for (const id of await dialect.updateRows(db.knex, claimTable, part)) held.add(id);
    });
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

  /** Rows that anybody holds now. */
  const leasedNow = (except: readonly number[]): LeasedSpan => {
    const at = now();
    return { from: at + 1, until: at + longestLeaseMs + CLOCKS_DIFFER_MS, except };
  };

  /**
   * Claims under a cap follow one another, group by group, and each would have a connection of the
   * site's pool, which recording and the site's requests need, too.
   */
  const claimCapped = createCombining<CappedGroupClaim, ClaimedWithin>(
    (claims) =>
      withTransientRetry(async () => {
        const db = await database.current();
        if (dialect.claimAllWithin) return dialect.claimAllWithin(db.knex, claimTable, claims);
        return Promise.all(
          claims.map(({ claim, cap }) => dialect.claimWithin(db.knex, claimTable, claim, cap))
        );
      }),
    dialect.claimAllWithin ? TOGETHER : ONE_BY_ONE
  );

  /** Groups in which something waits, whether they are served now or not. */
  const groupsAfter = async (db: Db, after: number): Promise<WaitingGroup[]> => {
    const waiting = dialect.waitingGroups(claimTable, after, LOOKED_AT_ONCE);
    const conditions = Object.entries(groups.where ?? {});
    const { sql: seen, bindings: seenBindings } = groups.seen?.columns ?? { sql: '', bindings: [] };
    const { sql, bindings } = (db.knex as Knex)
      .raw(
        `SELECT w.id, w.due_at, w.looked_at, g.id AS served${seen && `, ${seen}`} FROM (${waiting.sql}) w
         LEFT JOIN ?? g ON g.id = w.id ${conditions.map(() => 'AND g.?? = ?').join(' ')} ORDER BY w.id`,
        [
          ...seenBindings,
          ...waiting.bindings,
          qualified(groupTable),
          ...conditions.flat(),
        ] as Knex.RawBinding[]
      )
      .toSQL();
    const statement = { sql, bindings: bindings as readonly Knex.RawBinding[] };
    return rowsOf(await db.prepared(statement));
  };

  return {
    now,

    async insert(db, rows) {
      await db.insert(
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
      const db = await database.current();
      const due = new Map<number, number>();
      const slice = new TimeSlice();
      for (let after = 0; ;) {
        const rows = await groupsAfter(db, after);
        let looked = 0;
        for (const { id, due_at: dueAt, looked_at: steps, served, ...columns } of rows) {
          const first = Number(dueAt);
          if (served !== null) {
            due.set(Number(id), groups.seen?.dueAt(Number(id), columns, first) ?? first);
          }
          looked += Number(steps);
        }
        if (looked < LOOKED_AT_ONCE) return due;
        after = Number(rows.at(-1)?.id);
        if (slice.isOver()) await slice.next();
      }
    },

    async lostGroups() {
      const db = await database.current();
      const lost: number[] = [];
      for (let after = 0; ;) {
        const { sql, bindings } = dialect.waitingGroups(claimTable, after, LOOKED_AT_ONCE);
        const waiting = rowsOf<WaitingGroup>(await db.raw(sql, bindings));
        const ids = waiting.map(({ id }) => Number(id)).sort((a, b) => a - b);
        // Read after the rows, so that a group that was made with them is there.
        const there = (await db.table(groups.tableName).whereIn('id', ids).pluck('id')) as number[];
        const known = new Set(there.map(Number));
        lost.push(...ids.filter((id) => !known.has(id)));
        const looked = waiting.reduce((sum, { looked_at: steps }) => sum + Number(steps), 0);
        if (looked < LOOKED_AT_ONCE) return lost;
        after = ids.at(-1) ?? after;
      }
    },

    claim: (group, limit) =>
      withTransientRetry(async () => {
        const claim = { group, limit, ...newLease() };
        const db = await database.current();
        return asClaimed(claim, await dialect.claimGroup(db.knex, claimTable, claim));
      }),

    claimGroups: (rooms) =>
      withTransientRetry(async () => {
        const claim = { groups: rooms, ...newLease() };
        const db = await database.current();
        return asClaimed(claim, await dialect.claimGroups(db.knex, claimTable, claim));
      }),

    async claimWithin(group, limit, { atOnce, except, ahead }) {
      const claim = { group, limit, ...newLease() };
      const { own, limit: most } = ahead ?? { own: [], limit: 0 };
      const counted = leasedNow([...except, ...own]);
      const cap = { atOnce, own: own.length, ahead: most, groups: groupTable, counted };
      const { rows, isFull, isAlone } = await claimCapped({ claim, cap });
      return { leases: asClaimed(claim, rows), isFull, isAlone };
    },

    async lease(db, free) {
      const { owner, leaseUntil } = newLease();
      const ids = free.map(({ id }) => id);
      const isMysql = database.client === 'mysql';
      const ofRow = isMysql ? "CONCAT(?, '/', due_at)" : "CAST(? AS text) || '/' || due_at";
      await db
        .table(tableName)
        .whereIn('id', ids)
        // MySQL assigns from left to right.
        .update({ owner: db.knex.raw(ofRow, [owner]), due_at: leaseUntil });
      const rows = (await db.table(tableName).whereIn('id', ids)) as Record<string, unknown>[];
      const found = new Map(rows.map((row) => [Number(row.id), row]));
      return free.flatMap(({ id, dueAt }) => {
        const row = found.get(id);
        return row ? [asLeased(row, String(row.owner), dueAt, leaseUntil)] : [];
      });
    },

    async countLeased(db, group, except) {
      return countOf(leasedWithin(db.knex, claimTable, group, leasedNow(except)));
    },

    async claimOne(id, forMs) {
      const owner = randomUUID();
      const at = now();
      const leaseUntil = at + forMs;
      const db = await database.current();
      const updated = await db
        .table(tableName)
        .where({ id })
        .andWhere((free) => {
          free.whereNull('owner').orWhere('due_at', '<=', at);
        })
        .update({ owner, due_at: leaseUntil });
      const row = (await db.table(tableName).where({ id }).first()) as
        Record<string, unknown> | undefined;
      if (!row) return 'absent';
      return updated === 1 ? asLeased(row, owner, at, leaseUntil) : 'held';
    },

    async renew(leases) {
      const due_at = now() + leaseMs;
      const updates = leases.map(({ id, owner }) => ({ id, owner, set: { due_at } }));
      await updateOwned(await database.current(), updates);
    },

    async release(leases) {
      const updates = leases.map(({ id, owner, dueAt }) => ({
        id,
        owner,
        set: { due_at: dueAt, owner: null },
      }));
      await updateOwned(await database.current(), updates);
    },

    async releaseLapsed(group, { from, until }, limit) {
      const db = await database.current();
      const lapsed = (await db
        .table(tableName)
        .select('id', 'owner')
        .where(groupColumn, group)
        .whereBetween('due_at', [from, until])
        .whereNotNull('owner')
        .limit(limit)) as { id: number; owner: string }[];
      const updates = lapsed.flatMap(({ id, owner }): RowUpdate[] => {
        const dueAt = dueBefore(owner);
        return dueAt === null
          ? []
          : [{ id: Number(id), owner, set: { due_at: dueAt, owner: null } }];
      });
      await updateOwned(db, updates);
      return updates.length;
    },

    async settle(db, settlements) {
      const updates: RowUpdate[] = settlements.map(
        ({ id, owner, dueAt, columns: own }: Settlement) => ({
          id,
          owner,
          set: { ...own, due_at: dueAt, owner: null },
        })
      );
      return updateOwned(db, updates);
    },
  };
};
