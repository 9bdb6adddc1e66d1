import {
  compareRefunds,
  type Destination,
  type ItemId,
  type LocationId,
  type RefundedLine,
  type RefundKey,
  type RefundShares,
  type RefundToShare,
  type Share,
  type SoldLine,
} from './allocation';

/**
 * What a sale still has after its refunds were shared out, so that one more need not share all of
 * them out again: the thousandth refund of a sale costs what the tenth did.
 *
 * Requests for an item are served in order, each with what is left at its place. So one more changes
 * nobody else's share if there is enough left for it, wherever it sorts; and if it sorts after the
 * last one that got any, it gets what is left. Otherwise (`null`) those that got something have to
 * make way: they are shared out again, and there are at most as many as the sale has pieces.
 */
export interface LeftOfItem {
  item: ItemId;
  location: LocationId;
  left: number;
  /** The last refund that got any of it; null: none did. */
  last: RefundKey | null;
}

export type SaleLeft = readonly LeftOfItem[];

const keyOf = ({ effectiveMs, externalId, connection }: RefundKey): RefundKey => ({
  effectiveMs,
  externalId,
  connection,
});

/** @param shared  what all refunds of the sale came to (`allocateRefunds`), with their keys */
export const leftOfSale = (
  sale: readonly SoldLine[],
  shared: readonly { refund: RefundKey; shares: readonly Share[] }[]
): LeftOfItem[] => {
  const items = new Map<ItemId, LeftOfItem>();
  for (const { item, location, quantity } of sale) {
    const known = items.get(item);
    if (known) known.left += quantity;
    else items.set(item, { item, location, left: quantity, last: null });
  }
  for (const { refund, shares } of shared) {
    for (const { item, allocated } of shares) {
      const known = items.get(item);
      if (!known || allocated === 0) continue;
      known.left -= allocated;
      if (!known.last || compareRefunds(refund, known.last) > 0) known.last = keyOf(refund);
    }
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
  if (isLast(refund, source)) source.last = keyOf(refund);
};

const shareLines = (
  refund: RefundToShare,
  lines: readonly RefundedLine[],
  items: Items
): Share[] | null => {
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

/**
 * Shares out refunds that are new to the sale, where no other refund's share changes.
 * @returns their shares and what is left then; null where others have to make way
 */
export const shareOnTop = (
  left: SaleLeft,
  refunds: readonly RefundToShare[]
): { shared: RefundShares[]; left: LeftOfItem[] } | null => {
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
  const items = left.map(({ item, location, left: rest, last }) => [
    item,
    location,
    rest,
    indexOf(last),
  ]);
  return JSON.stringify({
    items,
    unknownLines,
    keys: [...keys.keys()].map((key) => JSON.parse(key)),
  });
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
