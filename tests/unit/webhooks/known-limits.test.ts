import type { App } from '../../../server/src/app';
import type { Webhook } from '../../../shared/contracts/webhooks';
import { KnownLimits, type WebhookLimits } from '../../../server/src/webhooks/deliveries/limits';

// The database is not asked by what is tested here.
const create = () => new KnownLimits({} as App);
const ORDERED: WebhookLimits = {
  ratePerSecond: 5,
  concurrency: null,
  isOrdered: true,
  pausedUntil: 0,
};
const plain = { id: 1, rate_per_second: null, concurrency: null, ordering: 'none' } as Webhook;

describe('what a process knows of the limits of webhooks', () => {
  it('is what was read last, and not what a long write had read before', () => {
    const known = create();
    const readAt = performance.now();
    known.note(1, ORDERED);
    known.mention(plain, readAt);
    expect(known.get(1)).toEqual(ORDERED);
    // Nor what a transaction has read later that does not see it.
    known.mention(plain, performance.now());
    expect(known.get(1)).toEqual(ORDERED);
  });

  it('is what a write has read where nothing else is known', () => {
    const known = create();
    known.mention({ ...plain, ordering: 'by_record' }, performance.now());
    expect(known.get(1)).toMatchObject({ isOrdered: true, pausedUntil: 0 });
  });

  it('is what it was changed to', () => {
    const known = create();
    known.note(1, { ...ORDERED, pausedUntil: 99 });
    known.noteWebhook(plain);
    expect(known.get(1)).toEqual({ ...ORDERED, ratePerSecond: null, isOrdered: false });
  });

  it('has a pause with it, which is only ever prolonged', () => {
    const known = create();
    known.notePause(1, 50);
    expect(known.get(1).pausedUntil).toBe(0);
    known.note(1, ORDERED);
    known.notePause(1, 70);
    known.notePause(1, 60);
    expect(known.get(1)).toEqual({ ...ORDERED, pausedUntil: 70 });
  });
});
