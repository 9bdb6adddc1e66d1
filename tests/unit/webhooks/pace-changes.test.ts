import { allowance, freeAfter, freeAtMost } from '../../../server/src/webhooks/deliveries/limits';

const SECOND = 1_000_000;
const NOW = 1_000 * SECOND;

describe('what a rate allows', () => {
  it('is one attempt where they are far apart, and a tenth of a second together', () => {
    expect(allowance(2, 0, NOW)).toEqual({ attempts: 1, from: NOW, interval: SECOND / 2 });
    expect(allowance(100, 0, NOW).attempts).toBe(10);
    expect(freeAfter(allowance(100, 0, NOW), 10)).toBe(NOW + SECOND / 10);
    expect(allowance(2, NOW + 5, NOW)).toMatchObject({ attempts: 0, from: NOW + 5 });
  });
});

describe('when the next attempt may start', () => {
  it('is what the last claim left, also by another node’s clock', () => {
    for (const rate of [0.01, 1, 100, 10_000]) {
      const left = freeAfter(allowance(rate, 0, NOW), allowance(rate, 0, NOW).attempts);
      expect(freeAtMost(rate, left, NOW)).toBe(left);
      expect(freeAtMost(rate, left, NOW - SECOND / 2)).toBe(left);
    }
    expect(freeAtMost(5, 0, NOW)).toBe(0);
  });

  it('is an interval from now where a lower rate left it, or a clock that was ahead', () => {
    const byHundredSeconds = NOW + 100 * SECOND;
    expect(freeAtMost(0.01, byHundredSeconds, NOW)).toBe(byHundredSeconds);
    expect(freeAtMost(10, byHundredSeconds, NOW)).toBe(NOW + SECOND / 10);
    expect(freeAtMost(0.01, NOW + 3600 * SECOND, NOW)).toBe(byHundredSeconds);
  });
});
