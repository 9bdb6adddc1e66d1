import type { FailureCause } from '../../../../shared/contracts/webhooks';

/** How many are failing or failed with each cause, over all webhooks; the most first. */
export const countByCause = (rows: readonly FailureCause[]): [cause: string, count: number][] => {
  const counts = new Map<string, number>();
  for (const { cause, count } of rows) counts.set(cause, (counts.get(cause) ?? 0) + count);
  return [...counts].sort(([, a], [, b]) => b - a);
};
