import type { Executor } from '../connection';
import { allowedBeside, countOf, type Dialect, type GroupCap, type GroupClaim } from './types';

/** What `claimWithin` does once no other claim of the group can be made beside this one. */
export const claimLocked = async (
  trx: Executor,
  claimOf: (limit: number) => ReturnType<Dialect['claimGroup']>,
  { limit }: GroupClaim,
  cap: GroupCap
): ReturnType<Dialect['claimWithin']> => {
  const others = await countOf(cap.count(trx));
  const isAlone = others === 0;
  const allowed = allowedBeside(others, limit, cap);
  if (allowed === 0) return { rows: [], isFull: true, isAlone };
  const rows = await claimOf(allowed);
  const isFull = rows.length === allowed && others + cap.own + rows.length >= cap.atOnce;
  return { rows, isFull, isAlone };
};
