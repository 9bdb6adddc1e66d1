import type { ConnectionMode, EventFlag, EventState } from './states';
import type { RefundOutcome } from './settle-refunds';

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
