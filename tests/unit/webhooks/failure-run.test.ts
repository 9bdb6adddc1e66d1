import fc from 'fast-check';
import { continueFailing } from '../../../server/src/webhooks/rules/failing';

const continueRun = (
  count: number,
  outcomes: readonly ('sent' | 'failed')[],
  threshold: number
) => {
  const { after, reason } = continueFailing(
    { consecutiveFailures: count, failedAttempts: 0, failingSince: null },
    outcomes.map((ended) => ({ ok: ended === 'sent', ended, at: 0 })),
    { failures: threshold, failingHours: Infinity }
  );
  return { count: after.consecutiveFailures, tripped: reason !== null };
};

const failed = (times: number) => Array<'failed'>(times).fill('failed');

describe('deliveries that failed in a row', () => {
  it('trip at the threshold, not one before', () => {
    expect(continueRun(0, failed(19), 20)).toEqual({ count: 19, tripped: false });
    expect(continueRun(19, failed(1), 20)).toEqual({ count: 20, tripped: true });
  });

  it('start over after one that was sent', () => {
    expect(continueRun(19, ['sent', 'failed'], 20)).toEqual({ count: 1, tripped: false });
  });

  it('trip although the same batch ends with a success', () => {
    expect(continueRun(19, ['failed', 'sent'], 20)).toEqual({ count: 0, tripped: true });
  });

  it('are counted the same however they are cut into batches', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('sent' as const, 'failed' as const), { maxLength: 60 }),
        fc.array(fc.integer({ min: 0, max: 59 }), { maxLength: 6 }),
        fc.integer({ min: 1, max: 20 }),
        (outcomes, cuts, threshold) => {
          const whole = continueRun(0, outcomes, threshold);
          let count = 0;
          let tripped = false;
          const edges = [0, ...cuts.sort((a, b) => a - b), outcomes.length];
          for (let at = 1; at < edges.length; at += 1) {
            const part = continueRun(count, outcomes.slice(edges[at - 1], edges[at]), threshold);
            count = part.count;
            tripped ||= part.tripped;
          }
          expect({ count, tripped }).toEqual(whole);
        }
      )
    );
  });
});
