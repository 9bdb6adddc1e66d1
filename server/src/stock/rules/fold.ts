/**
 * The rule of stock (docs/contract-pos.md#the-rule-of-stock), for an item in a location; times are epoch milliseconds. Level =
 * latest accepted count, or else the opening, + all movements with a later effective time. If two counts have the same
 * time, the later arrival wins, as a correction. The order of the steps does not matter; `foldInDatabase` is the same
 * rule in SQL.
 */

export type MovementReason =
  /** A count of the same or a later time already saw it. Effect 0. */
  | 'covered_by_count'
  /** A newer count is there. Effect 0. */
  | 'stale_count'
  /** Refunded goods that do not go back on the shelf. Effect 0. */
  | 'no_restock'
  /** The sale has nothing left of the item. Quantity and effect 0. */
  | 'over_refund'
  /** The sale's refunds were shared out again; this is the difference. */
  | 'reallocated'
  /** The line was mapped to the item or location by mistake; this takes it back. */
  | 'mapping_undone'
  /** The site wrote another number into its own product; this is the difference. */
  | 'product';

/** Reasons that are independent of counts: such a movement never changes the level. */
export const STANDING_REASONS = ['no_restock', 'over_refund'] as const;
type StandingReason = (typeof STANDING_REASONS)[number];

/** Reasons that the one who asks for a movement may give; the others are found by the rule. */
export type PostingReason = StandingReason | 'reallocated' | 'mapping_undone' | 'product';

export type MovementType = 'sale' | 'refund' | 'adjustment' | 'transfer' | 'count';

/** The order of counts: time, then arrival (`seq`, the record's id), then line of the record. */
interface CountMark {
  time: number;
  seq: number;
  line: number;
}

export interface LevelState {
  quantity: number;
  /** The count that the quantity starts from; null while it is the opening quantity. */
  lastCount: CountMark | null;
}

/** The effect of one ledger line: the level after it, the change, and why. */
export interface Step {
  level: LevelState;
  effect: number;
  reason: MovementReason | null;
}

export const openLevel = (openingQuantity: number): LevelState => ({
  quantity: openingQuantity,
  lastCount: null,
});

/** Below 0 if `a` counts as earlier than `b`. */
const compareCounts = (a: CountMark, b: CountMark): number =>
  a.time - b.time || a.seq - b.seq || a.line - b.line;

const without = (level: LevelState, reason: MovementReason): Step => ({ level, effect: 0, reason });

/** @param quantity  signed: what the shelf gains */
export const applyMovement = (
  level: LevelState,
  { time, quantity, reason }: { time: number; quantity: number; reason: PostingReason | null }
): Step => {
  const standing = STANDING_REASONS.find((one) => one === reason);
  if (standing) return without(level, standing);
  if (level.lastCount !== null && time <= level.lastCount.time) {
    return without(level, 'covered_by_count');
  }
  return { level: { ...level, quantity: level.quantity + quantity }, effect: quantity, reason };
};

/** True if a count would become the level's last one. */
export const isLatestCount = (level: LevelState, count: CountMark): boolean =>
  level.lastCount === null || compareCounts(count, level.lastCount) > 0;

/** @param movedAfter sum of this level's movement effects after the count, without counts; unused if it is stale */
export const applyCount = (
  level: LevelState,
  count: CountMark & { quantity: number },
  movedAfter: number
): Step => {
  if (!isLatestCount(level, count)) return without(level, 'stale_count');
  const quantity = count.quantity + movedAfter;
  const { time, seq, line } = count;
  return {
    level: { quantity, lastCount: { time, seq, line } },
    effect: quantity - level.quantity,
    reason: null,
  };
};
