import fc from 'fast-check';
import { quantile, SPAN_ENDS, spanOf } from '../../../server/src/webhooks/figures/rollups';

const counted = (times: readonly number[]): number[] => {
  const counts = Array.from({ length: SPAN_ENDS.length + 1 }, () => 0);
  for (const time of times) counts[spanOf(time)]! += 1;
  return counts;
};

test.each([
  [0, 0],
  [5, 0],
  [6, 1],
  [10_000, SPAN_ENDS.length - 1],
  [10_001, SPAN_ENDS.length],
])('%i ms are counted in span %i', (time, span) => {
  expect(spanOf(time)).toBe(span);
});

test('nothing was answered: there is no response time', () => {
  expect(quantile([], 0.5)).toBeNull();
  expect(quantile(counted([]), 0.95)).toBeNull();
});

test('the median lies between the ends of its span', () => {
  expect(quantile(counted([60, 60, 60, 60]), 0.5)).toBe(75);
  expect(quantile(counted([3, 60, 4000]), 0.5)).toBe(75);
});

test('beyond the last span only its beginning is known', () => {
  expect(quantile(counted([60_000]), 0.95)).toBe(10_000);
});

test('a quantile is within the span of the true one', () => {
  const times = fc.array(fc.integer({ min: 0, max: 9999 }), { minLength: 1 });
  const share = fc.constantFrom(0.5, 0.95);
  fc.assert(
    fc.property(times, share, (taken, part) => {
      const sorted = [...taken].sort((a, b) => a - b);
      const span = spanOf(sorted[Math.ceil(sorted.length * part) - 1]!);
      const estimate = quantile(counted(taken), part)!;
      expect(estimate).toBeGreaterThanOrEqual(SPAN_ENDS[span - 1] ?? 0);
      expect(estimate).toBeLessThanOrEqual(SPAN_ENDS[span]!);
    })
  );
});
