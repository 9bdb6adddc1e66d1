import type { ResponseTimes } from '../../../shared/contracts/overview';
import { quantile, type Rollup } from '../webhooks/figures/rollups';

/** How long receivers took in some hours together; null where nothing was answered. */
export const responseOf = (rollups: readonly Rollup[]): ResponseTimes | null => {
  const counts: number[] = [];
  for (const { responseTimes } of rollups) {
    for (const [span, count] of responseTimes.entries()) counts[span] = (counts[span] ?? 0) + count;
  }
  const [median, p95] = [quantile(counts, 0.5), quantile(counts, 0.95)];
  return median === null || p95 === null ? null : { median_ms: median, p95_ms: p95 };
};
