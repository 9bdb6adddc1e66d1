import fc from 'fast-check';
import { RATE_LIMITS } from '../../../shared/contracts/webhooks';
import { allowance, freeAfter } from '../../../server/src/webhooks/deliveries/limits';

const SECOND = 1_000_000;
const GRAIN = 100_000;
const NOW = 1_772_000_000 * SECOND;

/** What a claim was allowed and took, at a time of its own. */
interface Claim {
  at: number;
  allowed: number;
  taken: number;
}

/** Claims one after the other, each of which takes as much as it wants of what it is allowed. */
const claimAll = (
  ratePerSecond: number,
  claims: readonly { gap: number; wanted: number }[]
): Claim[] => {
  let at = NOW;
  let freeAt = 0;
  return claims.map(({ gap, wanted }) => {
    at += gap;
    const allowed = allowance(ratePerSecond, freeAt, at);
    const taken = Math.min(wanted, allowed.attempts);
    if (taken > 0) freeAt = freeAfter(allowed, taken);
    return { at, allowed: allowed.attempts, taken };
  });
};

const rates = fc.oneof(
  fc.double({ min: RATE_LIMITS.least, max: RATE_LIMITS.most, noNaN: true }),
  fc.double({ min: RATE_LIMITS.least, max: 20, noNaN: true }),
  fc.constantFrom(RATE_LIMITS.least, 1, 10, RATE_LIMITS.most)
);

describe('the pace of a webhook', () => {
  it.each([
    // A rate, when it was free (microseconds from now), and the attempts that may start.
    [1, 0, 1],
    [1, -10 * SECOND, 1],
    [1, 1, 0],
    [0.01, -SECOND, 1],
    [10, 0, 1],
    [10, -GRAIN, 2],
    [10, -GRAIN - 1, 1],
    [50, 0, 5],
    [50, -GRAIN, 10],
    [50, -3600 * SECOND, 5],
    [10_000, 0, 1000],
    [10_000, 1, 0],
  ])('of %d a second, free %d µs from now, lets %d start', (rate, free, attempts) => {
    expect(allowance(rate, NOW + free, NOW).attempts).toBe(attempts);
  });

  it('lets one start that was never sent to, and the next after its interval', () => {
    const first = allowance(4, 0, NOW);
    expect(first).toEqual({ attempts: 1, from: NOW, interval: SECOND / 4 });
    const freeAt = freeAfter(first, 1);
    expect(freeAt).toBe(NOW + SECOND / 4);
    expect(allowance(4, freeAt, freeAt - 1)).toMatchObject({ attempts: 0, from: freeAt });
    expect(allowance(4, freeAt, freeAt)).toMatchObject({ attempts: 1, from: freeAt });
  });

  it('is free when it was said to be, not before, by whole microseconds', () => {
    fc.assert(
      fc.property(
        rates,
        fc.integer({ min: -10 * SECOND, max: 0 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (rate, free, part) => {
          const allowed = allowance(rate, NOW + free, NOW);
          const taken = Math.max(1, Math.floor(part * allowed.attempts));
          const freeAt = freeAfter(allowed, taken);
          expect(Number.isInteger(freeAt)).toBe(true);
          expect(allowance(rate, freeAt, freeAt).attempts).toBeGreaterThan(0);
          expect(allowance(rate, freeAt, freeAt - 1).attempts).toBe(0);
        }
      )
    );
  });

  it('never lets more start in any stretch of time than the rate and two grains', () => {
    const claims = fc.array(
      fc.record({
        gap: fc.oneof(
          fc.integer({ min: 0, max: 2 * GRAIN }),
          fc.integer({ min: 0, max: 5 * SECOND })
        ),
        wanted: fc.integer({ min: 0, max: 2000 }),
      }),
      { minLength: 1, maxLength: 60 }
    );
    fc.assert(
      fc.property(rates, claims, (rate, wishes) => {
        const made = claimAll(rate, wishes);
        for (const [first, { at: from }] of made.entries()) {
          let started = 0;
          for (const { at, taken } of made.slice(first)) {
            started += taken;
            // Whole microseconds: half of one may be lost with each claim.
            const lasted = at - from + 2 * GRAIN + made.length;
            expect(started).toBeLessThanOrEqual((lasted * rate) / SECOND + 1);
          }
        }
      })
    );
  });

  it('gives whoever comes often, and takes all, the whole rate', () => {
    const gaps = fc.array(fc.integer({ min: 1, max: GRAIN }), { minLength: 1, maxLength: 200 });
    fc.assert(
      fc.property(rates, gaps, (rate, often) => {
        const made = claimAll(
          rate,
          often.map((gap) => ({ gap, wanted: Number.POSITIVE_INFINITY }))
        );
        const started = made.reduce((sum, { taken }) => sum + taken, 0);
        const lasted = (made.at(-1)?.at ?? 0) - (made[0]?.at ?? 0) - made.length;
        expect(started).toBeGreaterThanOrEqual(Math.floor((lasted * rate) / SECOND));
      })
    );
  });

  it('gives no credit for a time in which nothing was sent', () => {
    fc.assert(
      fc.property(rates, fc.integer({ min: GRAIN + 1, max: 1000 * SECOND }), (rate, idle) => {
        expect(allowance(rate, NOW - idle, NOW)).toEqual(allowance(rate, 0, NOW));
      })
    );
  });
});
