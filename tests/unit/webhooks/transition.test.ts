import fc from 'fast-check';
import { optionsSchema } from '../../../server/src/config/schema';
import { afterAttempt, type DeliveryState } from '../../../server/src/webhooks/rules/transition';

const schedule = optionsSchema.parse({}).webhooks.retryScheduleSeconds;
const NEW: DeliveryState = { status: 'pending', tries: 0 };

describe('a pending delivery', () => {
  it('is tried seven times with the pauses of the contract, and then failed', () => {
    const pauses: number[] = [];
    let state: DeliveryState = NEW;
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
          let state: DeliveryState = NEW;
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
