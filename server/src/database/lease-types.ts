import type { Db } from './db';
import type { SqlValue } from './dialects';
import type { GroupRoom } from './dialects/types';

/** Work under a lease. `owner` is the token of this lease; only with it can the work be settled. */
export interface Lease {
  id: number;
  group: number;
  owner: string;
  /** When it was due before it was leased, epoch milliseconds. */
  dueAt: number;
  /** Epoch milliseconds. */
  leaseUntil: number;
}

/** How much of a group may be under a lease at once, over all nodes. */
export interface LeaseCap {
  atOnce: number;
  /** Ids of rows that do not count: they are done, and only their outcome is still to be recorded. */
  except: readonly number[];
  /**
   * Rows that the caller holds, and how many more it may lease beyond the cap where nobody else holds
   * any: it keeps to the cap by itself then, and others find it reached.
   */
  ahead?: { own: readonly number[]; limit: number };
}

export interface CappedClaim<L extends Lease> {
  leases: L[];
  /** Whether the group has reached its cap, with these or without any. */
  isFull: boolean;
  /** Whether the caller was told of no other holder, so that what it asked for in advance counted. */
  isAlone?: boolean;
}

export type { Executor } from './connection';
type SqlColumns = Readonly<Record<string, SqlValue>>;

/**
 * Rows of one table that wait in order of time, in groups that must not starve each other. For stores
 * alone: nothing outside of a store knows how rows are leased, nor their columns.
 */
export interface LeasedRows {
  /** Epoch milliseconds, by the database's clock. */
  now(): number;

  /**
   * Inserts rows within `db`'s transaction: they exist if and only if it commits. In statements
   * of bounded size, however many rows there are.
   */
  insert(db: Db, rows: readonly NewRow[]): Promise<void>;

  /** When each group's next row is due, epoch milliseconds; groups without waiting rows are absent. */
  dueTimes(): Promise<Map<number, number>>;

  /** Groups in which rows wait, and that are gone: nobody takes these rows. */
  lostGroups(): Promise<number[]>;

  /**
   * Takes up to `limit` due rows of one group, those that have been due longest and in that order,
   * under a lease that ends by itself.
   */
  claim(group: number, limit: number): Promise<LeasedRow[]>;

  /** The same of several groups at once, so much of each as it says. */
  claimGroups(groups: readonly GroupRoom[]): Promise<LeasedRow[]>;

  /**
   * The same, with so many rows of the group under a lease at once over all nodes. Claims of one
   * group follow one another, whichever nodes make them, so none counts without the one before it.
   * Several that are asked for at once may be made together: never within a caller's transaction.
   */
  claimWithin(group: number, limit: number, cap: LeaseCap): Promise<CappedClaim<LeasedRow>>;

  /**
   * Gives a lease on rows that the caller's transaction has locked, and knows to be free.
   * @param free with the times at which they were due
   */
  lease(db: Db, free: readonly { id: number; dueAt: number }[]): Promise<LeasedRow[]>;

  /** How many rows of a group are under a lease now; without these, which are done. */
  countLeased(db: Db, group: number, except: readonly number[]): Promise<number>;

  /**
   * Takes one row whether it is due or not, for as long as that.
   * @returns `held` where somebody else's lease on it is still running.
   */
  claimOne(id: number, forMs: number): Promise<LeasedRow | 'held' | 'absent'>;

  /** Prolongs leases to the time of a new one, each only while its owner still holds it. */
  renew(leases: readonly Lease[]): Promise<void>;

  /** Gives leased rows back unworked: due as they were before, held by nobody. */
  release(leases: readonly Lease[]): Promise<void>;

  /**
   * Has rows of a group due again when they were before their lease, of those whose lease ended by itself
   * between two times (epoch milliseconds): they come before what has come since.
   * @returns how many, `limit` at most
   */
  releaseLapsed(
    group: number,
    ended: { from: number; until: number },
    limit: number
  ): Promise<number>;

  /**
   * Ends leases and writes what came of the work, each row only while its owner still holds it.
   * @returns the ids whose owner still held them; the others changed nothing.
   */
  settle(db: Db, settlements: readonly Settlement[]): Promise<Set<number>>;
}

export interface NewRow {
  group: number;
  /** Epoch milliseconds. */
  dueAt: number;
  columns: SqlColumns;
}

export interface LeasedRow extends Lease {
  row: Record<string, unknown>;
}

export interface Settlement {
  id: number;
  owner: string;
  /** When the row is due again, epoch milliseconds; null: never, it is finished. */
  dueAt: number | null;
  columns: SqlColumns;
}
