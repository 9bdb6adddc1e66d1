import type { AskedReason } from './fold';

/**
 * How the refunds of one sale share what was sold (docs/tills.md#refund).
 *
 * The result follows from the sale and the set of its refunds alone, never from the order in which
 * they arrived. So whenever a refund or the sale arrives, everything is shared out again, and the
 * ledger appends only the differences to what it has posted before (`differences`). A difference
 * bears the effective time of its refund: the movements of a refund then add up, at that one time,
 * to its final share, and the fold over them is the fold over the final share.
 */

/** Ids of an item and of a location. */
export type ItemId = number;
export type LocationId = number;

/** A line of the sale whose item and location are known. */
export interface SoldLine {
  item: ItemId;
  location: LocationId;
  /** Positive. */
  quantity: number;
}

/** A line of a refund whose item is known. */
export interface RefundedLine {
  /** Index in the record's `line_items`. */
  line: number;
  item: ItemId;
  /** Positive. */
  quantity: number;
}

/**
 * Where the goods of a refund go: a location it names, the one of the sale, or `unknown` if it
 * names one that is not mapped yet (its share is kept for it, and posted once it is).
 */
export type Destination = LocationId | 'of_sale' | 'unknown';

export interface RefundToShare {
  /** The refund's own id, for the caller. */
  id: number;
  /** Order of sharing out: effective time (epoch ms), then external id, then connection. */
  effectiveMs: number;
  externalId: string;
  connection: number;
  /** null: everything that is left at its place in the order. */
  lines: readonly RefundedLine[] | null;
  destination: Destination;
}

export interface Share {
  /** Index in the refund's `line_items`; null for a refund without lines. */
  line: number | null;
  item: ItemId;
  /** null: not known yet, to be posted later. */
  location: LocationId | null;
  requested: number;
  /** What of it the sale still had; at most `requested`. */
  allocated: number;
}

export interface RefundShares {
  id: number;
  shares: Share[];
  /** It asked for more than was left, or for the whole sale when nothing was left. */
  overRefund: boolean;
}

/** Code units, not a locale: the order must be the same on every machine. */
const compareText = (a: string, b: string): number => Number(a > b) - Number(a < b);

/** What refunds are shared out in the order of. */
export type RefundKey = Pick<RefundToShare, 'effectiveMs' | 'externalId' | 'connection'>;

export const compareRefunds = (a: RefundKey, b: RefundKey): number =>
  a.effectiveMs - b.effectiveMs ||
  compareText(a.externalId, b.externalId) ||
  a.connection - b.connection;

interface Sold {
  left: number;
  location: LocationId;
}

/** What was sold, by item. A sale happens in one place, so an item's first line tells where. */
const sumSold = (lines: readonly SoldLine[]): Map<ItemId, Sold> => {
  const sold = new Map<ItemId, Sold>();
  for (const { item, location, quantity } of lines) {
    const known = sold.get(item);
    if (known) known.left += quantity;
    else sold.set(item, { left: quantity, location });
  }
  return sold;
};

const placeOf = (destination: Destination, sold: Sold | undefined): LocationId | null => {
  if (destination === 'unknown') return null;
  return destination === 'of_sale' ? (sold?.location ?? null) : destination;
};

const shareLines = (
  lines: readonly RefundedLine[],
  destination: Destination,
  sold: Map<ItemId, Sold>
): Share[] =>
  lines.map(({ line, item, quantity }) => {
    const source = sold.get(item);
    const allocated = Math.min(quantity, source?.left ?? 0);
    if (source) source.left -= allocated;
    return { line, item, location: placeOf(destination, source), requested: quantity, allocated };
  });

const shareRest = (destination: Destination, sold: Map<ItemId, Sold>): Share[] => {
  const shares: Share[] = [];
  for (const [item, source] of sold) {
    if (source.left === 0) continue;
    const { left } = source;
    source.left = 0;
    const location = placeOf(destination, source);
    shares.push({ line: null, item, location, requested: left, allocated: left });
  }
  return shares;
};

/**
 * Shares what a sale sold among its refunds, which may be given in any order and come back in the
 * order of sharing. Give all refunds of the sale that count, and only those: refunds of a test
 * connection must not take from a live sale.
 */
export const allocateRefunds = (
  sale: readonly SoldLine[],
  refunds: readonly RefundToShare[]
): RefundShares[] => {
  const sold = sumSold(sale);
  return [...refunds].sort(compareRefunds).map(({ id, lines, destination }) => {
    if (lines === null) {
      const shares = shareRest(destination, sold);
      return { id, shares, overRefund: shares.length === 0 && sold.size > 0 };
    }
    const shares = shareLines(lines, destination, sold);
    return { id, shares, overRefund: shares.some((share) => share.allocated < share.requested) };
  });
};

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
