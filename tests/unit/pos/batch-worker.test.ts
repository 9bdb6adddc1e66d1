import { BatchWorker } from '../../../server/src/pos/processing/batch-worker';
import type { Lease } from '../../../server/src/queue/queue';
import { createMemoryStore } from '../scheduling/support/memory-store';

describe('a turn of a group', () => {
  it('does not end before its batch has, so that no other node takes the group meanwhile', async () => {
    const queue = createMemoryStore();
    queue.put(1, 2);
    let isConsumed = false;
    const worker = new BatchWorker<Lease>({
      name: 'work',
      store: queue,
      log: { error: () => {} },
      claimAtOnce: 1,
      reserveMs: 0,
      pollMs: 10_000,
      keepMs: 1000,
      announce: () => {},
      async consume(leases) {
        await new Promise((resolve) => setTimeout(resolve, 50));
        queue.finish(leases);
        isConsumed = true;
      },
    });
    const turn = { isOver: () => queue.calls.claim > 0, share: () => {} };
    expect(await worker.takeTurn(1, turn)).not.toBeNull();
    expect(isConsumed).toBe(true);
    await worker.stop();
  });
});
