import type { App } from '../../../server/src/app';
import type { LimitedQueue } from '../../../server/src/queue/limited-queue';
import { KnownLimits, LimitedClaims } from '../../../server/src/webhooks/deliveries/limits';

const sleep = (milliseconds: number) =>
  new Promise<void>((resolve) => setTimeout(resolve, milliseconds));

/** Twenty attempts a second: two at once, and the next after a tenth of a second. */
const ROW = { id: 7, rate_per_second: 20, concurrency: null, ordering: 'none', paused_until: null };

const open = () => {
  const announced: number[] = [];
  const rows = { select: () => rows, whereIn: async () => [ROW] };
  const queue = {
    now: Date.now,
    withGroupLock: (_group: number, work: (tx: unknown, freeAt: number) => unknown) =>
      work({ table: () => rows }, 0),
    setFreeAt: async () => {},
    claimLocked: async (_tx: unknown, _group: number, most: number) => ({
      leases: Array.from({ length: most }, () => ({})),
      isMore: true,
      isFull: false,
      isSole: true,
    }),
  } as unknown as LimitedQueue;
  const claims = new LimitedClaims(queue, new KnownLimits({} as App), (webhook) =>
    announced.push(webhook)
  );
  return { claims, announced };
};

describe('claims of a webhook with a rate', () => {
  it('announce it once its rate allows more', async () => {
    const { claims, announced } = open();
    await claims.claimLocked(7, 5, null);
    expect(announced).toEqual([]);
    await sleep(200);
    expect(announced).toEqual([7]);
  });

  it('announce nothing once the process sends no more', async () => {
    const { claims, announced } = open();
    await claims.claimLocked(7, 5, null);
    claims.stop();
    await sleep(200);
    expect(announced).toEqual([]);
  });
});
