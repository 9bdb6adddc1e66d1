import type { PostingReason } from './fold';

/**
 * How the refunds of a sale share what was sold (docs/tills.md#refund). The result depends only on the sale and the set
 * of its refunds, not on their order of arrival. Each arrival shares everything out again, and the ledger appends only
 * the `differences`, each at the effective time of its refund: so its movements add up to its final share.
 */

export type ItemId = number;
export type LocationId = number;

/** A line of the sale whose item and location are known. */
export interface SoldLine {
  item: ItemId;
  location: LocationId;
  /** Positive. */
  quantity: number;
}

export interface RefundedLine {
  /** Index in the record's `line_items`. */
  line: number;
  item: ItemId;
  /** Positive. */
  quantity: number;
}

/** The place of a refund's goods; `unknown`: its share is posted once the place is mapped. */
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
  /** Pieces that the sale still had; at most `requested`. */
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

/** The order in which refunds are shared out. */
export type RefundKey = Pick<RefundToShare, 'effectiveMs' | 'externalId' | 'connection'>;

export const compareRefunds = (a: RefundKey, b: RefundKey): number =>
  a.effectiveMs - b.effectiveMs ||
  compareText(a.externalId, b.externalId) ||
  a.connection - b.connection;

/**
 * The rest of a sale's item after its refunds, so the thousandth refund costs as much as the tenth. Requests for an
 * item are served in order: a further one changes no other share if enough is left, wherever it sorts; sorting last, it
 * gets the rest. Otherwise all are shared out again, at most as many as the sale has pieces.
 */
export interface LeftOfItem {
  item: ItemId;
  location: LocationId;
  left: number;
  /** The last refund that got any of it; null: none did. */
  last: RefundKey | null;
}

export type SaleLeft = readonly LeftOfItem[];

/** A sale before any refund. It happens in one place, so an item's first line tells where. */
export const wholeSale = (lines: readonly SoldLine[]): LeftOfItem[] => {
  const items = new Map<ItemId, LeftOfItem>();
  for (const { item, location, quantity } of lines) {
    const known = items.get(item);
    if (known) known.left += quantity;
    else items.set(item, { item, location, left: quantity, last: null });
  }
  return [...items.values()];
};

const isLast = (refund: RefundKey, { last }: LeftOfItem): boolean =>
  last === null || compareRefunds(refund, last) >= 0;

const placeOf = (destination: Destination, source: LeftOfItem | undefined): LocationId | null => {
  if (destination === 'unknown') return null;
  return destination === 'of_sale' ? (source?.location ?? null) : destination;
};

type Items = Map<ItemId, LeftOfItem>;

const take = (source: LeftOfItem, refund: RefundKey, quantity: number): void => {
  if (quantity === 0) return;
  source.left -= quantity;
  const { effectiveMs, externalId, connection } = refund;
  if (isLast(refund, source)) source.last = { effectiveMs, externalId, connection };
};

const shareLines = (refund: RefundToShare, lines: readonly RefundedLine[], items: Items) => {
  const shares: Share[] = [];
  for (const { line, item, quantity } of lines) {
    const source = items.get(item);
    if (source && quantity > source.left && !isLast(refund, source)) return null;
    const allocated = Math.min(quantity, source?.left ?? 0);
    if (source) take(source, refund, allocated);
    const location = placeOf(refund.destination, source);
    shares.push({ line, item, location, requested: quantity, allocated });
  }
  return shares;
};

const shareRest = (refund: RefundToShare, items: Items): Share[] | null => {
  const shares: Share[] = [];
  for (const source of items.values()) {
    if (!isLast(refund, source)) return null;
    const { item, left } = source;
    if (left === 0) continue;
    const location = placeOf(refund.destination, source);
    take(source, refund, left);
    shares.push({ line: null, item, location, requested: left, allocated: left });
  }
  return shares;
};

/** The shares of refunds in order, and the rest of the sale. */
interface Shared {
  shared: RefundShares[];
  left: LeftOfItem[];
}

/** Shares out new refunds if no other refund's share changes; null if others would change. */
export const shareOnTop = (left: SaleLeft, refunds: readonly RefundToShare[]): Shared | null => {
  const items: Items = new Map(left.map((one) => [one.item, { ...one }]));
  const shared: RefundShares[] = [];
  for (const refund of [...refunds].sort(compareRefunds)) {
    const { id, lines } = refund;
    const shares = lines === null ? shareRest(refund, items) : shareLines(refund, lines, items);
    if (shares === null) return null;
    const overRefund =
      lines === null
        ? shares.length === 0 && items.size > 0
        : shares.some(({ allocated, requested }) => allocated < requested);
    shared.push({ id, shares, overRefund });
  }
  return { shared, left: [...items.values()] };
};

/** Shares a sale among its refunds, in any order. Without test mode refunds: they would take from a live sale. */
export const allocateRefunds = (sale: readonly SoldLine[], refunds: readonly RefundToShare[]) => {
  const result = shareOnTop(wholeSale(sale), refunds);
  // In their order, each is the last so far.
  if (!result) throw new Error('A refund of a whole sale has no other refund to displace.');
  return result;
};

/** The pieces of one item that a refund puts back in one location, all its lines together. */
export interface Posting {
  refund: number;
  item: ItemId;
  location: LocationId;
  quantity: number;
}

/** A movement that the ledger has to append for a refund, at the refund's effective time. */
export interface PostingDifference extends Posting {
  reason: PostingReason | null;
}

const keyOf = ({ refund, item, location }: Posting): string => `${refund}:${item}:${location}`;

/** A refund's shares by item and location; shares without a location wait. */
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
 * Lines that the ledger lacks: first the posting itself (quantity 0 and `over_refund` if nothing was left, so the log
 * shows why), later the difference, as `reallocated`. Idempotent.
 * @param desired `postingsOf` all refunds that may have changed
 * @param posted the sums of the **quantities** (not effects) that the ledger has of them, 0 included
 * @param restock whether the refund's goods go back on the shelf
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
): PostingReason | null => {
  if (!restock(target.refund)) return 'no_restock';
  if (known) return 'reallocated';
  return target.quantity === 0 ? 'over_refund' : null;
};

/** As text, for the sale's row; refunds that are the last of many items are written once. */
export const writeLeft = (left: SaleLeft, unknownLines: number): string => {
  const keys = new Map<string, number>();
  const indexOf = (last: RefundKey | null): number => {
    if (!last) return -1;
    const text = JSON.stringify([last.effectiveMs, last.externalId, last.connection]);
    const known = keys.get(text) ?? keys.size;
    keys.set(text, known);
    return known;
  };
  const items = left.map((one) => [one.item, one.location, one.left, indexOf(one.last)]);
  const lasts = [...keys.keys()].map((key) => JSON.parse(key) as unknown);
  return JSON.stringify({ items, unknownLines, keys: lasts });
};

export const readLeft = (text: string): { left: LeftOfItem[]; unknownLines: number } => {
  const { items, unknownLines, keys } = JSON.parse(text) as {
    items: [ItemId, LocationId, number, number][];
    unknownLines: number;
    keys: [number, string, number][];
  };
  const lasts = keys.map(([effectiveMs, externalId, connection]) => ({
    effectiveMs,
    externalId,
    connection,
  }));
  const left = items.map(([item, location, rest, last]) => ({
    item,
    location,
    left: rest,
    last: lasts[last] ?? null,
  }));
  return { left, unknownLines };
};
