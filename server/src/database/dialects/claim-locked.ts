import type { Executor } from '../connection';
import { countOf, type Dialect, type GroupCap, type GroupClaim } from './types';

/** What `claimWithin` does once no other claim of the group can be made beside this one. */
export const claimLocked = async (
  trx: Executor,
  claimOf: (limit: number) => ReturnType<Dialect['claimGroup']>,
  { limit }: GroupClaim,
  { atOnce, count }: GroupCap
): ReturnType<Dialect['claimWithin']> => {
  const room = atOnce - (await countOf(count(trx)));
  if (room <= 0) return { rows: [], isFull: true };
  const rows = await claimOf(Math.min(limit, room));
  return { rows, isFull: rows.length === room };
};
