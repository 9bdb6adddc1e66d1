import fc from 'fast-check';
import { optionsSchema } from '../../../server/src/config/schema';
import {
  afterAttempt,
  afterPause,
  type DeliveryProgress,
} from '../../../server/src/webhooks/rules/delivery-state';

const schedule = optionsSchema.parse({}).webhooks.retryScheduleSeconds;
const NEW: DeliveryProgress = { status: 'pending', tries: 0 };

describe('a pending delivery', () => {
  it('is tried seven times with the pauses of the contract, and then failed', () => {
    const pauses: number[] = [];
    let state: DeliveryProgress = NEW;
    let at = 1_700_000_000_000;
    for (;;) {
      const next = afterAttempt(state, false, schedule, at);
      state = next;
      if (next.nextAttemptAt === null) {
        expect(next).toEqual({ status: 'failed', tries: 7, nextAttemptAt: null, counts: 'failed' });
        break;
      }
      expect(next).toMatchObject({ status: 'pending', counts: null });
      pauses.push((next.nextAttemptAt - at) / 1000);
      at = next.nextAttemptAt;
    }
    expect(pauses).toEqual([60, 300, 1800, 7200, 21_600, 43_200]);
  });

  it('is sent by a success at any try, and never tried again', () => {
    for (let tries = 0; tries < 7; tries += 1) {
      expect(afterAttempt({ status: 'pending', tries }, true, schedule, 5)).toEqual({
        status: 'sent',
        tries: tries + 1,
        nextAttemptAt: null,
        counts: 'sent',
      });
    }
  });

  it('is failed by its first failure where there is no schedule, as a test is', () => {
    expect(afterAttempt(NEW, false, [], 5)).toMatchObject({ status: 'failed', tries: 1 });
  });
});

describe('a pending delivery that is sent again by hand', () => {
  it('keeps its schedule where that fails, however often', () => {
    let state: DeliveryProgress = afterAttempt(NEW, false, schedule, 1000);
    for (let time = 2; time <= 9; time += 1) {
      const next = afterAttempt(state, false, schedule, 2000, 61_000);
      expect(next).toMatchObject({ status: 'pending', tries: time, nextAttemptAt: 61_000 });
      state = next;
    }
    expect(afterAttempt(state, false, schedule, 61_000)).toMatchObject({
      ...{ status: 'pending', tries: 10, nextAttemptAt: 61_000 + 300_000 },
    });
  });

  it('has seven tries by the schedule all the same', () => {
    let state: DeliveryProgress = NEW;
    for (let at = 0; at < 6; at += 1) {
      state = afterAttempt(state, false, schedule, 1000);
      state = afterAttempt(state, false, schedule, 1000, 2000);
    }
    expect(state).toMatchObject({ status: 'pending', tries: 12 });
    expect(afterAttempt(state, false, schedule, 2000)).toMatchObject({
      ...{ status: 'failed', tries: 13, counts: 'failed' },
    });
  });

  it('has had the try that was due by then, which does not come on top', () => {
    const next = afterAttempt({ status: 'pending', tries: 1 }, false, schedule, 5000, 4000);
    expect(next).toMatchObject({ status: 'pending', tries: 2, nextAttemptAt: 305_000 });
  });

  it('is sent by a success', () => {
    const next = afterAttempt({ status: 'pending', tries: 1 }, true, schedule, 5000, 9000);
    expect(next).toMatchObject({ status: 'sent', tries: 2, nextAttemptAt: null, counts: 'sent' });
  });
});

describe('a delivery whose receiver asked for a pause', () => {
  const HOUR_MS = 3_600_000;
  const waiting = { ...NEW, pausedMs: 0, nextAttemptAt: 1000 };

  it('is what it was, due when the pause ends', () => {
    expect(afterPause(waiting, 61_000, 1000)).toEqual({
      ...{ status: 'pending', tries: 0, nextAttemptAt: 61_000, pausedMs: 60_000, counts: null },
    });
  });

  it('is due no earlier than it was', () => {
    const next = afterPause({ ...waiting, nextAttemptAt: 900_000 }, 61_000, 1000);
    expect(next?.nextAttemptAt).toBe(900_000);
  });

  it('stays finished where it was', () => {
    const failed = { status: 'failed', tries: 7, pausedMs: 0, nextAttemptAt: null } as const;
    expect(afterPause(failed, 61_000, 1000)).toMatchObject({
      ...{ status: 'failed', tries: 7, nextAttemptAt: null, counts: null },
    });
  });

  it('is put off by three days in all', () => {
    const before = { ...waiting, pausedMs: 71 * HOUR_MS };
    expect(afterPause(before, HOUR_MS, 0)).toMatchObject({ pausedMs: HOUR_MS });
    expect(afterPause(before, HOUR_MS + 1, 0)).toBeNull();
  });
});

describe('a finished delivery that is sent again by hand', () => {
  it.each(['failed', 'sent'] as const)(
    'stays %s after a failure and counts for nothing',
    (status) => {
      expect(afterAttempt({ status, tries: 7 }, false, schedule, 5)).toEqual({
        status,
        tries: 8,
        nextAttemptAt: null,
        counts: null,
      });
    }
  );

  it('becomes sent by a success', () => {
    expect(afterAttempt({ status: 'failed', tries: 7 }, true, schedule, 5)).toMatchObject({
      status: 'sent',
      nextAttemptAt: null,
    });
  });
});

describe('whatever the schedule and the answers', () => {
  it('a delivery ends as failed at most once, and only a pending one is due again', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 100_000 }), { maxLength: 10 }),
        fc.array(fc.boolean(), { minLength: 1, maxLength: 30 }),
        (pauses, answers) => {
          let state: DeliveryProgress = NEW;
          let endedFailed = 0;
          for (const ok of answers) {
            const next = afterAttempt(state, ok, pauses, 1000);
            if (next.counts === 'failed') endedFailed += 1;
            expect(next.tries).toBe(state.tries + 1);
            expect(next.nextAttemptAt !== null).toBe(next.status === 'pending');
            if (state.status === 'sent') expect(next.status).toBe('sent');
            state = next;
          }
          expect(endedFailed).toBeLessThanOrEqual(1);
        }
      )
    );
  });
});
