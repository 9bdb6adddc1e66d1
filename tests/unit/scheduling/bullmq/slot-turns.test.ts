import { SlotTurns } from '../../../../server/src/scheduling/bullmq/slot-turns';
import { SlotWorker } from '../../../../server/src/scheduling/slot-worker';
import type { Turn } from '../../../../server/src/scheduling/types';
import type { Lease } from '../../../../server/src/queue/queue';
import { createMemoryStore, type MemoryStore } from '../support/memory-store';

const sleep = (milliseconds: number) =>
  new Promise<void>((resolve) => setTimeout(resolve, milliseconds));

interface Changes {
  concurrency?: number;
  perform?(lease: Lease): Promise<Lease | null>;
}

const open = (queue: MemoryStore, attemptMs: number, changes: Changes = {}) => {
  const announced: (number | null)[] = [];
  let now = 0;
  let most = 0;
  const worker = new SlotWorker<Lease, Lease>({
    name: 'work',
    store: queue,
    log: { error: () => {} },
    detached: (work) => work(),
    concurrency: 64,
    concurrencyPerGroup: 4,
    pace: () => ({ together: 8, restMs: 0 }),
    reserveMs: 1000,
    renewMs: 2500,
    longestMs: 15_000,
    pollMs: 10_000,
    announce: (group) => announced.push(group),
    judge: () => ({ healthy: true }),
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
  return { worker, turns: new SlotTurns(worker), announced, most: () => most };
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
    const { turns, worker, most, announced } = open(queue, 5);
    expect(await turns.takeTurn(1, forMs(5000))).toBeNull();
    // The last outcomes are recorded after the turn.
    for (let tries = 0; tries < 100 && unsettled(queue) > 0; tries += 1) await sleep(20);
    expect(unsettled(queue)).toBe(0);
    expect(most()).toBe(4);
    expect(announced).toEqual([]);
    await worker.stop();
  });

  it('ends when it is over, and says that more is due', async () => {
    const queue = createMemoryStore();
    queue.put(1, 400);
    const { turns, worker } = open(queue, 5);
    const again = await turns.takeTurn(1, forMs(100));
    expect(again).toBeLessThanOrEqual(Date.now());
    expect(unsettled(queue)).toBeGreaterThan(0);
    await worker.stop();
  });

  it('of a slow receiver does not wait for it; the slot that empties is announced', async () => {
    const queue = createMemoryStore();
    queue.put(1, 8);
    const { turns, worker, announced } = open(queue, 300);
    const again = await turns.takeTurn(1, forMs(5000));
    expect(again).toBeGreaterThan(Date.now());
    expect(announced).toEqual([]);
    await sleep(300);
    expect(announced).toContain(1);
    await worker.stop();
  });

  it('of a group that is not to be worked on ends, and leaves it to whoever looks for what is due', async () => {
    const queue = createMemoryStore();
    queue.put(1, 8);
    const { turns, worker } = open(queue, 0, {
      async perform(lease) {
        await queue.release([lease]);
        return null;
      },
    });
    expect(await turns.takeTurn(1, forMs(300))).toBeNull();
    expect(queue.claimed.length).toBeLessThanOrEqual(8);
    await worker.stop();
  });

  it('counts what other nodes hold', async () => {
    const queue = createMemoryStore();
    queue.put(1, 8);
    await queue.claim([{ group: 1, limit: 3 }]);
    const { turns, worker } = open(queue, 300);
    await turns.takeTurn(1, forMs(5000));
    expect(queue.claimed).toHaveLength(4);
    await worker.stop();
  });

  it('shares what this node has no slots for', async () => {
    const queue = createMemoryStore();
    queue.put(1, 8);
    const { turns, worker, most } = open(queue, 50, { concurrency: 2 });
    await turns.takeTurn(1, forMs(100));
    expect(shares).toBeGreaterThan(0);
    expect(most()).toBe(2);
    await worker.stop();
  });

  it('of one of many groups on a full node fills several slots at once', async () => {
    const queue = createMemoryStore();
    const groups = Array.from({ length: 40 }, (_none, index) => index + 1);
    for (const group of groups) queue.put(group, 50);
    const { turns, worker } = open(queue, 3, { concurrency: 16 });
    await Promise.all(groups.map((group) => turns.takeTurn(group, forMs(20_000))));
    expect(queue.claimed).toHaveLength(2000);
    expect(queue.calls.claim).toBeLessThan(1000);
    await worker.stop();
  });

  it('that begins on a full node has the next slot that empties', async () => {
    const queue = createMemoryStore();
    const groups = Array.from({ length: 40 }, (_none, index) => index + 1);
    for (const group of groups) queue.put(group, 200);
    const { turns, worker } = open(queue, 20, { concurrency: 16 });
    const begun = groups.map((group) => turns.takeTurn(group, forMs(1000)));
    await sleep(200);
    queue.put(99, 1);
    const before = queue.claimed.length;
    expect(await turns.takeTurn(99, forMs(5000))).toBeNull();
    const at = queue.claimed.findIndex(({ group }) => group === 99);
    expect(at - before).toBeLessThan(200);
    await Promise.all(begun);
    await worker.stop();
  });

  it('takes nothing once the worker is to stop', async () => {
    const queue = createMemoryStore();
    queue.put(1, 8);
    const { turns, worker } = open(queue, 5);
    await worker.stop();
    await turns.takeTurn(1, forMs(5000));
    expect(queue.claimed).toEqual([]);
  });
});
