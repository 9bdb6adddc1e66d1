import {
  allocateRefunds,
  type LocationId,
  type RefundedLine,
  type RefundToShare,
  type Share,
  type SoldLine,
} from '../../stock/rules/allocation';
import type { ConnectionMode, EventFlag, EventState } from './states';

/**
 * Which sale a refund belongs to and what it puts back (docs/tills.md#refund), for a *group*:
 * all accepted sales with one `external_id`, and all accepted refunds that name it, on connections
 * that may know of each other (one connection, or the connections of one group), of one mode.
 *
 * The outcome follows from the group alone. Settling the whole group again whenever one of it
 * arrives, is mapped, or outlives its grace period is therefore all it takes to be independent of
 * the order of arrival. The ledger then appends the `differences` (stock/rules/postings).
 */

export interface GroupSale {
  /** Its event id. */
  id: number;
  connection: number;
  /** Its lines whose item and location are known. */
  lines: readonly SoldLine[];
}

/**
 * Where a refund says its goods went: a location by `location_ref` (resolved), one it names that is
 * not mapped yet, or nothing.
 */
export type NamedLocation = LocationId | 'unknown' | 'none';

export interface GroupRefund {
  /** Its event id. */
  id: number;
  connection: number;
  effectiveMs: number;
  externalId: string;
  /** Its lines whose item is known; null if it was sent without lines. */
  lines: readonly RefundedLine[] | null;
  namedLocation: NamedLocation;
  /** The connection's only location, for a refund that has to stand alone; null if it has several. */
  onlyLocation: LocationId | null;
  /** `graceIsOver` at the time of settling. */
  graceOver: boolean;
  /** Its owner said not to wait for its sale. */
  accepted: boolean;
}

export type RefundOutcome = { id: number; shares: Share[] } & (
  | { status: 'allocated'; sale: number; overRefund: boolean }
  /** Two sales fit: waits for its owner. */
  | { status: 'ambiguous'; sales: number[] }
  /** No sale yet. `saleNeverSeen`: for longer than the grace period, and it has no lines. */
  | { status: 'held'; saleNeverSeen: boolean }
  /** No sale in time, or its owner did not wait: applied by itself, at a location that may be unknown yet (`null` in shares). */
  | { status: 'standalone'; saleNeverSeen: true }
);

/** True once a refund has waited for its sale long enough (docs/contract-pos.md#limits). */
export const graceIsOver = (receivedAtMs: number, nowMs: number, graceMs: number): boolean =>
  nowMs - receivedAtMs >= graceMs;

type SaleMatch<S = GroupSale> =
  { match: 'one'; sale: S } | { match: 'several'; sales: number[] } | { match: 'none' };

/** The sale on the refund's own connection, else the only one in the group. */
export const matchSale = <S extends Pick<GroupSale, 'id' | 'connection'>>(
  connection: number,
  sales: readonly S[]
): SaleMatch<S> => {
  const own = sales.find((sale) => sale.connection === connection);
  if (own) return { match: 'one', sale: own };
  const [first, second] = sales;
  if (!first) return { match: 'none' };
  if (!second) return { match: 'one', sale: first };
  return { match: 'several', sales: sales.map(({ id }) => id).sort((a, b) => a - b) };
};

const standAlone = (refund: GroupRefund): RefundOutcome => {
  const { id, lines, namedLocation, onlyLocation, graceOver, accepted } = refund;
  if (!graceOver && !accepted) return { id, status: 'held', saleNeverSeen: false, shares: [] };
  if (lines === null) {
    // Nobody knows what came back; accepted, it moves nothing until its sale says.
    return { id, status: accepted ? 'standalone' : 'held', saleNeverSeen: true, shares: [] };
  }
  const location = typeof namedLocation === 'number' ? namedLocation : null;
  const shares = lines.map(({ line, item, quantity }) => ({
    line,
    item,
    location: namedLocation === 'none' ? onlyLocation : location,
    requested: quantity,
    allocated: quantity,
  }));
  return { id, status: 'standalone', saleNeverSeen: true, shares };
};

/** A refund as the sharing out takes it. */
export const refundToShare = ({ namedLocation, ...refund }: GroupRefund): RefundToShare => ({
  ...refund,
  destination: namedLocation === 'none' ? 'of_sale' : namedLocation,
});

/** Settles a group, in whatever order it is given; one outcome a refund, in the order given. */
export const settleRefunds = (
  sales: readonly GroupSale[],
  refunds: readonly GroupRefund[]
): RefundOutcome[] => {
  const outcomes = new Map<number, RefundOutcome>();
  const bySale = new Map<GroupSale, GroupRefund[]>();
  for (const refund of refunds) {
    const found = matchSale(refund.connection, sales);
    if (found.match === 'one') {
      const members = bySale.get(found.sale);
      if (members) members.push(refund);
      else bySale.set(found.sale, [refund]);
    } else if (found.match === 'several') {
      const { id } = refund;
      outcomes.set(id, { id, status: 'ambiguous', sales: found.sales, shares: [] });
    } else {
      outcomes.set(refund.id, standAlone(refund));
    }
  }
  for (const [sale, members] of bySale) {
    const shared = allocateRefunds(sale.lines, members.map(refundToShare));
    for (const { id, shares, overRefund } of shared) {
      outcomes.set(id, { id, status: 'allocated', sale: sale.id, overRefund, shares });
    }
  }
  return refunds.flatMap(({ id }) => outcomes.get(id) ?? []);
};

/**
 * The state of an event once its lines were looked at (docs/tills.md#what-becomes-of-a-record).
 *
 * @param placed  lines that are in the ledger, those with effect 0 too
 * @param waiting  lines that wait for an item or a location
 */
export const stateOfLines = (
  mode: ConnectionMode,
  placed: number,
  waiting: number
): Extract<EventState, 'applied' | 'partially_applied' | 'needs_mapping' | 'simulated'> => {
  if (mode === 'test') return 'simulated';
  if (waiting === 0) return 'applied';
  return placed === 0 ? 'needs_mapping' : 'partially_applied';
};

/**
 * The state of a refund once its group was settled.
 *
 * @param unknownLines  lines whose item is not known; for a refund without lines, those of its sale.
 *   Shares without a location are counted here, not by the caller.
 */
export const stateOfRefund = (
  mode: ConnectionMode,
  outcome: RefundOutcome,
  unknownLines: number
): EventState => {
  switch (outcome.status) {
    case 'held':
      return 'held';
    case 'ambiguous':
      return mode === 'test' ? 'simulated' : 'needs_mapping';
    case 'allocated':
    case 'standalone': {
      const homeless = outcome.shares.filter(({ location }) => location === null).length;
      const placed = outcome.shares.length - homeless;
      return stateOfLines(mode, placed, homeless + unknownLines);
    }
  }
};

/** The flags that follow from the settling; they replace all `SETTLED_FLAGS` set before. */
export const settledFlags = (outcome: RefundOutcome): EventFlag[] => {
  switch (outcome.status) {
    case 'allocated':
      return outcome.overRefund ? ['over_refund'] : [];
    case 'held':
    case 'standalone':
      return outcome.saleNeverSeen ? ['sale_never_seen'] : [];
    case 'ambiguous':
      return [];
  }
};
