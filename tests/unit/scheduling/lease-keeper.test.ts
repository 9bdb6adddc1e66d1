import { SlotWorker, type SlotWorkerOptions } from '../../../server/src/scheduling/slot-worker';
import type { Lease } from '../../../server/src/queue/queue';
import { createMemoryStore, type MemoryStore } from './support/memory-store';

const sleep = (milliseconds: number) =>
  new Promise<void>((resolve) => setTimeout(resolve, milliseconds));

const LEASE_MS = 800;
const RENEW_MS = 200;

const open = (queue: MemoryStore, changes: Partial<SlotWorkerOptions<Lease, Lease>>) =>
  new SlotWorker<Lease, Lease>({
    name: 'work',
    store: queue,
    log: { error: () => {} },
    detached: (work) => work(),
    concurrency: 8,
    concurrencyPerGroup: 4,
    pace: () => ({ together: 8, restMs: 0 }),
    reserveMs: LEASE_MS / 2,
    renewMs: RENEW_MS,
    longestMs: 5000,
    pollMs: 10_000,
    announce: () => {},
    judge: () => ({ healthy: true }),
    record: async (leases) => queue.finish(leases),
    perform: async (lease) => lease,
    ...changes,
  });

const away = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });

describe('a lease', () => {
  it('is prolonged while its work goes on, and while it waits for a slot', async () => {
    const queue = createMemoryStore({ leaseMs: LEASE_MS });
    queue.put(1, 8);
    const worker = open(queue, {
      reserveMs: -20 * LEASE_MS,
      async perform(lease) {
        await sleep(3 * LEASE_MS);
        return lease;
      },
    });
    await worker.work([1]);
    expect(queue.claimed).toHaveLength(8);
    await sleep(5 * LEASE_MS);
    expect(await queue.claim([{ group: 1, limit: 8 }])).toEqual([]);
    await worker.stop();
    expect(queue.rows.map(({ dueAt }) => dueAt)).toEqual(Array(8).fill(null));
  });

  it('is prolonged once at a time, however long the database takes for that', async () => {
    const queue = createMemoryStore({ leaseMs: LEASE_MS });
    queue.put(1, 1);
    let letGo = (): void => {};
    let underWay = 0;
    let most = 0;
    const renew = async () => {
      underWay += 1;
      most = Math.max(most, underWay);
      await new Promise<void>((resolve) => {
        letGo = resolve;
      });
      underWay -= 1;
    };
    const worker = open(
      { ...queue, renew },
      {
        async perform(lease) {
          await sleep(6 * RENEW_MS);
          return lease;
        },
      }
    );
    await worker.work([1]);
    await sleep(5 * RENEW_MS);
    letGo();
    await sleep(2 * RENEW_MS);
    letGo();
    expect(most).toBe(1);
    await worker.stop();
  });

  it('of work that is soon done costs nothing more', async () => {
    const queue = createMemoryStore({ leaseMs: LEASE_MS });
    queue.put(1, 4);
    const worker = open(queue, {});
    await worker.work([1]);
    await sleep(2 * RENEW_MS);
    expect(queue.calls.renew).toBe(0);
    await worker.stop();
  });

  it('is prolonged while its outcome waits for a database that is away', async () => {
    const queue = createMemoryStore({ leaseMs: LEASE_MS });
    queue.put(1, 1);
    let isAway = true;
    const worker = open(queue, {
      async record(leases) {
        if (isAway) throw away;
        queue.finish(leases);
      },
    });
    await worker.work([1]);
    await sleep(2 * LEASE_MS);
    expect(await queue.claim([{ group: 1, limit: 1 }])).toEqual([]);
    isAway = false;
    await worker.stop();
    expect(queue.rows[0]?.dueAt).toBeNull();
  });

  it('ends by itself where the work failed, and where its outcome was given up', async () => {
    for (const changes of [
      { perform: () => Promise.reject(new Error('a bug')) },
      { record: () => Promise.reject(new Error('a row that is refused')) },
    ]) {
      const queue = createMemoryStore({ leaseMs: LEASE_MS });
      queue.put(1, 1);
      const worker = open(queue, changes);
      await worker.work([1]);
      await sleep(2 * LEASE_MS);
      expect(await queue.claim([{ group: 1, limit: 1 }])).toHaveLength(1);
      await worker.stop();
    }
  });

  it('that could not be prolonged is tried again', async () => {
    const queue = createMemoryStore({ leaseMs: LEASE_MS });
    queue.put(1, 1);
    const { renew } = queue;
    let failures = 0;
    queue.renew = async (leases) => {
      failures += 1;
      if (failures === 1) throw away;
      await renew(leases);
    };
    const worker = open(queue, {
      async perform(lease) {
        await sleep(3 * LEASE_MS);
        return lease;
      },
    });
    await worker.work([1]);
    await sleep(2 * LEASE_MS);
    expect(failures).toBeGreaterThan(1);
    expect(await queue.claim([{ group: 1, limit: 1 }])).toEqual([]);
    await worker.stop();
  });
});
