import { createSlotWorker } from '../../../server/src/scheduling/slot-worker';
import type { Lease, Turn } from '../../../server/src/scheduling/types';
import { createMemoryStore, type MemoryStore } from './support/memory-store';

const sleep = (milliseconds: number) =>
  new Promise<void>((resolve) => setTimeout(resolve, milliseconds));

const open = (queue: MemoryStore, attemptMs: number, changes: { concurrency?: number } = {}) => {
  const announced: (number | null)[] = [];
  let now = 0;
  let most = 0;
  const worker = createSlotWorker<Lease, Lease>({
    name: 'work',
    store: queue,
    log: { error: () => {} },
    detached: (work) => work(),
    concurrency: 64,
    concurrencyPerGroup: 4,
    reserveMs: 1000,
    pollMs: 10_000,
    announce: (group) => announced.push(group),
    healthy: () => true,
    record: async (leases) => queue.finish(leases),
    async perform(lease) {
      now += 1;
      most = Math.max(most, now);
      await sleep(attemptMs);
      now -= 1;
      return lease;
    },
    ...changes,
  });
  return { worker, announced, most: () => most };
};

let shares = 0;
const forMs = (milliseconds: number): Turn => {
  const until = Date.now() + milliseconds;
  return { isOver: () => Date.now() > until, share: () => void (shares += 1) };
};
beforeEach(() => {
  shares = 0;
});

const unsettled = (queue: MemoryStore) => queue.rows.filter(({ dueAt }) => dueAt !== null).length;

describe('a turn', () => {
  it('of a quick receiver lasts until nothing is due, within the cap', async () => {
    const queue = createMemoryStore();
    queue.put(1, 40);
    const { worker, most, announced } = open(queue, 5);
    expect(await worker.takeTurn(1, forMs(5000))).toBeNull();
    await sleep(60);
    expect(unsettled(queue)).toBe(0);
    expect(most()).toBe(4);
    expect(announced).toEqual([]);
    await worker.stop();
  });

  it('ends when it is over, and says that more is due', async () => {
    const queue = createMemoryStore();
    queue.put(1, 400);
    const { worker } = open(queue, 5);
    const again = await worker.takeTurn(1, forMs(100));
    expect(again).toBeLessThanOrEqual(Date.now());
    expect(unsettled(queue)).toBeGreaterThan(0);
    await worker.stop();
  });

  it('of a slow receiver does not wait for it; the slot that empties is announced', async () => {
    const queue = createMemoryStore();
    queue.put(1, 8);
    const { worker, announced } = open(queue, 300);
    const again = await worker.takeTurn(1, forMs(5000));
    expect(again).toBeGreaterThan(Date.now());
    expect(announced).toEqual([]);
    await sleep(300);
    expect(announced).toContain(1);
    await worker.stop();
  });

  it('counts what other nodes hold', async () => {
    const queue = createMemoryStore();
    queue.put(1, 8);
    await queue.claim(1, 3);
    const { worker } = open(queue, 300);
    await worker.takeTurn(1, forMs(5000));
    expect(queue.claimed).toHaveLength(4);
    await worker.stop();
  });

  it('shares what this node has no slots for', async () => {
    const queue = createMemoryStore();
    queue.put(1, 8);
    const { worker, most } = open(queue, 50, { concurrency: 2 });
    await worker.takeTurn(1, forMs(100));
    expect(shares).toBeGreaterThan(0);
    expect(most()).toBe(2);
    await worker.stop();
  });

  it('takes nothing once the worker is to stop', async () => {
    const queue = createMemoryStore();
    queue.put(1, 8);
    const { worker } = open(queue, 5);
    await worker.stop();
    await worker.takeTurn(1, forMs(5000));
    expect(queue.claimed).toEqual([]);
  });
});
