import type { CappedWorkStore } from '../../../../server/src/scheduling/types';
import type { Lease } from '../../../../server/src/queue/queue';

export interface MemoryRow {
  id: number;
  group: number;
  dueAt: number | null;
  owner: string | null;
}

export interface MemoryStore extends CappedWorkStore<Lease> {
  rows: MemoryRow[];
  /** How often each operation was asked for. */
  calls: { dueTimes: number; claim: number; release: number; renew: number };
  /** Thrown by the next `dueTimes`. */
  failNext: Error | null;
  /** Claims handed out so far. */
  claimed: Lease[];
  put(group: number, count?: number, dueAt?: number): void;
  finish(settlements: readonly Pick<Lease, 'id' | 'owner'>[]): void;
}

/** A store without a database. `leaseMs` counts on `now`. */
export const createMemoryStore = ({
  leaseMs = 30_000,
  now = Date.now,
}: { leaseMs?: number; now?: () => number } = {}): MemoryStore => {
  let leases = 0;
  const queue: MemoryStore = {
    now,
    rows: [],
    calls: { dueTimes: 0, claim: 0, release: 0, renew: 0 },
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
    async claim(rooms) {
      queue.calls.claim += 1;
      const owner = `lease ${(leases += 1)}`;
      const leaseUntil = now() + leaseMs;
      const claimed = rooms.flatMap(({ group, limit }) =>
        queue.rows
          .filter((row) => row.group === group && row.dueAt !== null && row.dueAt <= now())
          .sort((a, b) => Number(a.dueAt) - Number(b.dueAt) || a.id - b.id)
          .slice(0, limit)
          .map((row) => {
            const dueAt = Number(row.dueAt);
            Object.assign(row, { owner, dueAt: leaseUntil });
            return { id: row.id, group, owner, dueAt, leaseUntil };
          })
      );
      queue.claimed.push(...claimed);
      return claimed.sort((a, b) => a.dueAt - b.dueAt || a.id - b.id);
    },
    async claimWithin(group, limit, { atOnce, except, ahead = { own: [], limit: 0 } }) {
      const uncounted = [...except, ...ahead.own];
      const leased = queue.rows.filter(
        ({ id, owner, dueAt, ...row }) =>
          row.group === group && owner !== null && Number(dueAt) > now() && !uncounted.includes(id)
      );
      const isSole = leased.length === 0;
      const room = Math.max(0, atOnce - ahead.own.length - leased.length);
      const most = Math.max(Math.min(limit, room), isSole ? ahead.limit : 0);
      const leases = await queue.claim([{ group, limit: most }]);
      return { leases, isFull: leases.length >= room, isSole };
    },
    async renew(claimed) {
      queue.calls.renew += 1;
      for (const { id, owner } of claimed) {
        const row = queue.rows.find((one) => one.id === id);
        if (row?.owner === owner) row.dueAt = now() + leaseMs;
      }
    },
    async release(claimed) {
      queue.calls.release += 1;
      for (const { id, owner, dueAt } of claimed) {
        const row = queue.rows.find((one) => one.id === id);
        if (row?.owner === owner) Object.assign(row, { dueAt, owner: null });
      }
    },
  };
  return queue;
};
