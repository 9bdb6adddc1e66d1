import type { Executor, SqlColumns } from './sql';

/**
 * Work that waits in order of time, in groups that must not starve each other. Deliveries and POS
 * events are both such work. The one engine is the site's own database (`database-engine.ts`);
 * nothing outside an engine knows how claiming works.
 */
export interface WorkQueue {
  /** Puts rows into the queue within `executor`'s transaction: they exist if and only if it commits. */
  enqueue(executor: Executor, rows: readonly NewWork[]): Promise<void>;

  /** When each group's next row is due, epoch milliseconds; groups without waiting rows are absent. */
  dueTimes(): Promise<Map<number, number>>;

  /** Takes up to `limit` due rows of one group, under a lease that ends by itself. */
  claim(group: number, limit: number): Promise<Claimed[]>;

  /**
   * Takes one row whether it is due or not.
   * @returns `held` where somebody else's lease on it is still running.
   */
  claimOne(id: number): Promise<Claimed | 'held' | 'absent'>;

  /** Gives leased rows back unworked: due now, held by nobody. */
  release(claimed: readonly Claimed[]): Promise<void>;

  /**
   * Ends leases and writes what came of the work, each row only while its owner still holds it.
   * @returns the ids whose owner still held them; the others changed nothing.
   */
  settle(executor: Executor, settlements: readonly Settlement[]): Promise<Set<number>>;
}

export interface NewWork {
  group: number;
  /** Epoch milliseconds. */
  dueAt: number;
  columns: SqlColumns;
}

/** A leased row. `owner` is the token of this lease; only with it can the row be settled. */
export interface Claimed {
  id: number;
  group: number;
  owner: string;
  /** Epoch milliseconds. */
  leaseUntil: number;
  row: Record<string, unknown>;
}

export interface Settlement {
  id: number;
  owner: string;
  /** When the row is due again, epoch milliseconds; null: never, it is finished. */
  dueAt: number | null;
  columns: SqlColumns;
}
