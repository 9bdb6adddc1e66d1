/**
 * Staleness of an absolute count (docs/contract-pos.md#order): judged line by line
 * against the newest *accepted* count of that item in that location, queued ones too.
 */

/**
 * A count is stale if it is older than the newest accepted one; of the very same time it is a
 * correction. Both are effective times in epoch milliseconds.
 *
 * @param newestAcceptedTime  null if the item was never counted there, or is not known
 */
export const judgeCount = (
  countTime: number,
  newestAcceptedTime: number | null
): 'fresh' | 'stale' =>
  newestAcceptedTime !== null && countTime < newestAcceptedTime ? 'stale' : 'fresh';

export type CountVerdict<Line> =
  /** Accepted whole. */
  | { verdict: 'fresh' }
  /** Accepted: a 409 must not be retried, so it would lose the fresh lines. */
  | { verdict: 'partly_stale'; stale: Line[] }
  /** 409: every line is older. */
  | { verdict: 'stale'; stale: Line[] };

/** Judges a whole record; `stale` keeps the lines as given, in their order. */
export const judgeCounts = <Line extends { newestAcceptedTime: number | null }>(
  countTime: number,
  lines: readonly Line[]
): CountVerdict<Line> => {
  const stale = lines.filter(
    ({ newestAcceptedTime }) => judgeCount(countTime, newestAcceptedTime) === 'stale'
  );
  if (stale.length === 0) return { verdict: 'fresh' };
  return { verdict: stale.length === lines.length ? 'stale' : 'partly_stale', stale };
};
