import type { Claimed, Settlement, WorkQueue } from '../../../../server/src/queue/types';

export interface MemoryRow {
  id: number;
  group: number;
  dueAt: number | null;
  owner: string | null;
}

export interface MemoryQueue extends WorkQueue {
  rows: MemoryRow[];
  /** How often each operation was asked for. */
  calls: { dueTimes: number; claim: number; release: number };
  /** Thrown by the next `dueTimes`. */
  failNext: Error | null;
  /** Claims handed out so far. */
  claimed: Claimed[];
  put(group: number, count?: number, dueAt?: number): void;
  finish(settlements: readonly Pick<Settlement, 'id' | 'owner'>[]): void;
}

/** The queue's interface without a database. `leaseMs` counts on `now`. */
export const createMemoryQueue = ({
  leaseMs = 30_000,
  now = Date.now,
}: { leaseMs?: number; now?: () => number } = {}): MemoryQueue => {
  let leases = 0;
  const queue: MemoryQueue = {
    rows: [],
    calls: { dueTimes: 0, claim: 0, release: 0 },
    failNext: null,
    claimed: [],
    put(group, count = 1, dueAt = 0) {
      for (let index = 0; index < count; index += 1) {
        queue.rows.push({ id: queue.rows.length + 1, group, dueAt, owner: null });
      }
    },
    finish(settlements) {
      for (const { id, owner } of settlements) {
        const row = queue.rows.find((one) => one.id === id);
        if (row?.owner === owner) Object.assign(row, { dueAt: null, owner: null });
      }
    },
    async enqueue() {},
    async dueTimes() {
      queue.calls.dueTimes += 1;
      if (queue.failNext) {
        const error = queue.failNext;
        queue.failNext = null;
        throw error;
      }
      const times = new Map<number, number>();
      for (const { group, dueAt } of queue.rows) {
        if (dueAt !== null) times.set(group, Math.min(dueAt, times.get(group) ?? Infinity));
      }
      return times;
    },
    async claim(group, limit) {
      queue.calls.claim += 1;
      const owner = `lease ${(leases += 1)}`;
      const leaseUntil = now() + leaseMs;
      const due = queue.rows
        .filter((row) => row.group === group && row.dueAt !== null && row.dueAt <= now())
        .slice(0, limit);
      const claimed = due.map((row) => {
        Object.assign(row, { owner, dueAt: leaseUntil });
        return { id: row.id, group, owner, leaseUntil, row: {} };
      });
      queue.claimed.push(...claimed);
      return claimed;
    },
    async claimOne() {
      return 'absent';
    },
    async release(claimed) {
      queue.calls.release += 1;
      for (const { id, owner } of claimed) {
        const row = queue.rows.find((one) => one.id === id);
        if (row?.owner === owner) Object.assign(row, { dueAt: now(), owner: null });
      }
    },
    async settle(_executor, settlements) {
      queue.finish(settlements);
      return new Set(settlements.map(({ id }) => id));
    },
  };
  return queue;
};
