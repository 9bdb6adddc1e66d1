/**
 * The rule of stock (docs/tills.md#the-rule-of-stock), for one item in one location. Times are epoch milliseconds.
 *
 * Level = the latest accepted count, or else the opening quantity, + every movement whose effective
 * time is later than that count. Two counts of the very same time are a correction: the later
 * arrival wins.
 *
 * `applyMovement` and `applyCount` say it step by step, for the ledger: whatever the order of the
 * steps, the level is the same. The rebuild says it in one go, in SQL (stock/check-levels.ts).
 */

/**
 * Why a movement has the effect it has.
 *
 * - `covered_by_count`: a count of the same or a later time already saw it. Effect 0.
 * - `stale_count`: a newer count is there. Effect 0.
 * - `no_restock`: refunded goods that do not go back on the shelf. Effect 0.
 * - `over_refund`: the sale has nothing left of the item. Quantity and effect 0.
 * - `reallocated`: the sale's refunds were shared out again; this is the difference.
 * - `product`: the site wrote another number into its own product; this is the difference.
 * - `mapping_undone`: the line was mapped to the item or location by mistake; this takes it back.
 */
export const MOVEMENT_REASONS = [
  'covered_by_count',
  'stale_count',
  'no_restock',
  'over_refund',
  'reallocated',
  'mapping_undone',
  'product',
] as const;
export type MovementReason = (typeof MOVEMENT_REASONS)[number];

/** Reasons that hold whatever is counted before or after: such a movement never touches the shelf. */
export const STANDING_REASONS = [
  'no_restock',
  'over_refund',
] as const satisfies readonly MovementReason[];
type StandingReason = (typeof STANDING_REASONS)[number];

/** Reasons that the one who asks for a movement may give; the others are found by the rule. */
export type PostingReason = StandingReason | 'reallocated' | 'mapping_undone' | 'product';

export const MOVEMENT_TYPES = ['sale', 'refund', 'adjustment', 'transfer', 'count'] as const;
export type MovementType = (typeof MOVEMENT_TYPES)[number];

/** The order of counts: time, then arrival (`seq`, the record's id), then line of the record. */
interface CountMark {
  time: number;
  seq: number;
  line: number;
}

/** The stored state of a level. */
export interface LevelState {
  quantity: number;
  /** The count that the quantity starts from; null while it is the opening quantity. */
  lastCount: CountMark | null;
}

interface MovementInput {
  time: number;
  /** Signed: what the shelf gains. */
  quantity: number;
  reason: PostingReason | null;
}

interface CountInput extends CountMark {
  /** The counted quantity. */
  quantity: number;
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

const isStanding = (reason: MovementReason | null): boolean =>
  (STANDING_REASONS as readonly (MovementReason | null)[]).includes(reason);

const without = (level: LevelState, reason: MovementReason): Step => ({ level, effect: 0, reason });

/** Appends a sale, a refund or an adjustment. */
export const applyMovement = (level: LevelState, movement: MovementInput): Step => {
  if (movement.reason !== null && isStanding(movement.reason)) {
    return without(level, movement.reason);
  }
  if (level.lastCount !== null && movement.time <= level.lastCount.time) {
    return without(level, 'covered_by_count');
  }
  return {
    level: { ...level, quantity: level.quantity + movement.quantity },
    effect: movement.quantity,
    reason: movement.reason,
  };
};

/**
 * True if a count would become the level's last one. False saves the caller the sum that `applyCount`
 * needs.
 */
export const isLatestCount = (level: LevelState, count: CountMark): boolean =>
  level.lastCount === null || compareCounts(count, level.lastCount) > 0;

/**
 * Appends a count.
 *
 * @param movedAfter  the sum of the effects of this level's movements, counts left out, whose time
 *   is later than the count's. The effects recorded in the ledger will do: a movement later than
 *   the newest count has never been covered by one. Not looked at if the count is stale.
 */
export const applyCount = (level: LevelState, count: CountInput, movedAfter: number): Step => {
  if (!isLatestCount(level, count)) return without(level, 'stale_count');
  const quantity = count.quantity + movedAfter;
  const { time, seq, line } = count;
  return {
    level: { quantity, lastCount: { time, seq, line } },
    effect: quantity - level.quantity,
    reason: null,
  };
};

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

type CountVerdict<Line> =
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
