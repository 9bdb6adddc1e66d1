import type { PosEvent, PosEventState } from '../../../../shared/contracts/pos';

/** A filter by missing mappings also means records of which only some lines wait. */
export const statesOf = (filter: string | undefined): PosEventState[] | undefined => {
  if (!filter) return undefined;
  return filter === 'needs_mapping'
    ? ['needs_mapping', 'partially_applied']
    : [filter as PosEventState];
};

/** A record whose till or shop has something to fix before going live. */
export const needsAttention = ({ state, waiting }: Pick<PosEvent, 'state' | 'waiting'>): boolean =>
  state === 'failed' ||
  state === 'needs_mapping' ||
  state === 'partially_applied' ||
  // Test mode parks nothing: a line that no item answers to is left out of what was simulated.
  waiting.length > 0;
