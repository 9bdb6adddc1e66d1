/** How many rows of a group to claim. */
export interface GroupRoom {
  group: number;
  limit: number;
}

/** Work under a lease. `owner` is the token of this lease; only with it can the work be settled. */
export interface Lease {
  id: number;
  group: number;
  owner: string;
  /** When it was due, epoch milliseconds; a lease does not change that. */
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

/** How many rows may be leased beside those that others hold. */
export const allowedBeside = (
  others: number,
  limit: number,
  { atOnce, ahead }: Pick<LeaseCap, 'atOnce' | 'ahead'>
): number =>
  Math.max(
    0,
    Math.min(limit, atOnce - (ahead?.own.length ?? 0) - others),
    others === 0 ? (ahead?.limit ?? 0) : 0
  );

/** Whether the group has reached its cap, once so many of the rows that were allowed are leased. */
export const isFullWith = (
  others: number,
  leased: number,
  allowed: number,
  { atOnce, ahead }: Pick<LeaseCap, 'atOnce' | 'ahead'>
): boolean =>
  allowed === 0 || (leased === allowed && others + (ahead?.own.length ?? 0) + leased >= atOnce);
