/**
 * The upper ends of the spans that response times are counted in, in milliseconds, about evenly
 * spaced on a logarithmic scale. What took longer is in one more span. Stored counts have one column
 * a span, so these never change.
 */
export const SPAN_ENDS = [5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000] as const;

export const SPANS = SPAN_ENDS.length + 1;

/** Which span a response time is counted in, 0 to `SPANS` - 1. */
export const spanOf = (milliseconds: number): number => {
  const at = SPAN_ENDS.findIndex((end) => milliseconds <= end);
  return at < 0 ? SPAN_ENDS.length : at;
};

/**
 * The response time that a share of the answers did not exceed, from the counts of the spans: within
 * a span the times are taken to be spread evenly.
 * @param share 0.5 for the median
 * @returns whole milliseconds; null without a count. Beyond the last end nothing is known but that end.
 */
export const quantile = (counts: readonly number[], share: number): number | null => {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  const wanted = total * share;
  let below = 0;
  for (const [at, count] of counts.entries()) {
    if (count > 0 && below + count >= wanted) {
      const from = SPAN_ENDS[at - 1] ?? 0;
      const to = SPAN_ENDS[at] ?? from;
      return Math.round(from + ((to - from) * (wanted - below)) / count);
    }
    below += count;
  }
  return SPAN_ENDS[SPAN_ENDS.length - 1] ?? null;
};
