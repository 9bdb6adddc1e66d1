import type { ItemId, LocationId, Share } from './allocation';
import type { AskedReason } from './fold';

/** What a refund puts back of one item in one location, all its lines together. */
export interface Posting {
  refund: number;
  item: ItemId;
  location: LocationId;
  quantity: number;
}

/** A movement that the ledger has to append for a refund, at the refund's effective time. */
export interface PostingDifference extends Posting {
  /** What `applyMovement` is given as reason. */
  reason: AskedReason | null;
}

const keyOf = ({ refund, item, location }: Posting): string => `${refund}:${item}:${location}`;

/** What a refund's shares come to, by item and location; shares without a location wait. */
export const postingsOf = (refund: number, shares: readonly Share[]): Posting[] => {
  const postings = new Map<string, Posting>();
  for (const { item, location, allocated } of shares) {
    if (location === null) continue;
    const posting = { refund, item, location, quantity: allocated };
    const known = postings.get(keyOf(posting));
    if (known) known.quantity += allocated;
    else postings.set(keyOf(posting), posting);
  }
  return [...postings.values()];
};

/**
 * What the ledger still has to append so that each refund's movements add up to what it should
 * have: the first time for a place, the posting itself (with quantity 0 and `over_refund` if
 * nothing was left, so that the log shows why); later, the difference, as `reallocated`. Nothing
 * that is right already is returned, so doing it twice does nothing.
 *
 * @param desired  `postingsOf` all refunds that may have changed
 * @param posted  the sums of the **quantities** (not effects) of the movements already in the
 *   ledger for the same refunds, by refund, item and location, sums of 0 included
 * @param restock  whether the refund's goods go back on the shelf
 */
export const differences = (
  desired: readonly Posting[],
  posted: readonly Posting[],
  restock: (refund: number) => boolean
): PostingDifference[] => {
  const before = new Map(posted.map((posting) => [keyOf(posting), posting]));
  const wanted = new Set(desired.map(keyOf));
  const gone = posted
    .filter((posting) => !wanted.has(keyOf(posting)))
    .map((posting) => ({ ...posting, quantity: 0 }));

  return [...desired, ...gone].flatMap((target): PostingDifference[] => {
    const known = before.get(keyOf(target));
    const quantity = target.quantity - (known?.quantity ?? 0);
    if (known && quantity === 0) return [];
    return [{ ...target, quantity, reason: reasonOf(target, known, restock) }];
  });
};

const reasonOf = (
  target: Posting,
  known: Posting | undefined,
  restock: (refund: number) => boolean
): AskedReason | null => {
  if (!restock(target.refund)) return 'no_restock';
  if (known) return 'reallocated';
  return target.quantity === 0 ? 'over_refund' : null;
};
