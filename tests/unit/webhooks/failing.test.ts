import fc from 'fast-check';
import {
  continueFailing,
  type CountedAttempt,
  type Failing,
} from '../../../server/src/webhooks/rules/failing';

const FRESH: Failing = { consecutiveFailures: 0, failedAttempts: 0, failingSince: null };
const HOUR = 3_600_000;
const LIMITS = { failures: 1000, failingHours: 24 };
const failed = (at: number): CountedAttempt => ({ ok: false, ended: null, at });
const sent = (at: number): CountedAttempt => ({ ok: true, ended: 'sent', at });

describe('a webhook whose receiver says that it is gone', () => {
  it('is switched off by the first attempt that hears it, whatever came beside it', () => {
    const gone: CountedAttempt = { ok: false, ended: 'failed', isGone: true, at: 2 };
    const { after, reason } = continueFailing(FRESH, [sent(1), gone, sent(3)], LIMITS);
    expect(reason).toContain('410');
    expect(after).toEqual(FRESH);
  });
});

describe('a webhook none of whose attempts succeed', () => {
  it('is switched off after the hours, not a moment before', () => {
    const many = Array.from({ length: 30 }, (_one, index) => failed(1000 + index));
    const { after, reason } = continueFailing(FRESH, many, LIMITS);
    expect(after).toEqual({ consecutiveFailures: 0, failedAttempts: 30, failingSince: 1000 });
    expect(reason).toBeNull();
    expect(continueFailing(after, [failed(1000 + 24 * HOUR - 1)], LIMITS).reason).toBeNull();
    expect(continueFailing(after, [failed(1000 + 24 * HOUR)], LIMITS).reason).toBe(
      'Switched off because no attempt succeeded for 24 hours.'
    );
  });

  it('is not switched off for fewer than 20 of them, however long they take', () => {
    const few = Array.from({ length: 19 }, (_one, index) => failed(index * 100 * HOUR));
    const { after, reason } = continueFailing(FRESH, few, LIMITS);
    expect(reason).toBeNull();
    expect(continueFailing(after, [failed(5000 * HOUR)], LIMITS).reason).not.toBeNull();
  });

  it('takes a fraction of an hour', () => {
    const attempts = Array.from({ length: 21 }, (_one, index) => failed(index * 200));
    const limits = { failures: 1000, failingHours: 0.001 };
    expect(continueFailing(FRESH, attempts.slice(0, 18), limits).reason).toBeNull();
    expect(continueFailing(FRESH, attempts, limits).reason).toContain('0.001 hours');
  });

  it('starts over with one that succeeds', () => {
    const { after } = continueFailing(
      { consecutiveFailures: 3, failedAttempts: 500, failingSince: 1 },
      [sent(30 * HOUR)],
      LIMITS
    );
    expect(after).toEqual(FRESH);
  });

  it('is told of the failed deliveries first', () => {
    const before = { consecutiveFailures: 19, failedAttempts: 500, failingSince: 0 };
    const last: CountedAttempt = { ok: false, ended: 'failed', at: 30 * HOUR };
    expect(continueFailing(before, [last], { failures: 20, failingHours: 24 }).reason).toBe(
      'Switched off after 20 failed deliveries in a row.'
    );
  });

  it('comes out the same however its attempts are cut into batches', () => {
    const attempt = fc.record({
      ok: fc.boolean(),
      ended: fc.constant(null),
      at: fc.integer({ min: 0, max: 100 * HOUR }),
    });
    fc.assert(
      fc.property(fc.array(attempt, { maxLength: 60 }), fc.nat(60), (attempts, cut) => {
        const whole = continueFailing(FRESH, attempts, LIMITS);
        const first = continueFailing(FRESH, attempts.slice(0, cut), LIMITS);
        const second = continueFailing(first.after, attempts.slice(cut), LIMITS);
        expect(second.after).toEqual(whole.after);
        expect(first.reason ?? second.reason).toEqual(whole.reason);
      })
    );
  });
});
