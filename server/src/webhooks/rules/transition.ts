import type { DeliveryStatus } from '../../../../shared/contracts/webhooks';

export interface DeliveryState {
  status: DeliveryStatus;
  /** Attempts made so far. */
  tries: number;
}

export interface NextState extends DeliveryState {
  /** When the next try is due, epoch milliseconds; null: none, the delivery is finished. */
  nextAttemptAt: number | null;
  /** What this attempt means for "20 deliveries in a row": a delivery that ended, once. */
  counts: 'sent' | 'failed' | null;
}

/**
 * What an attempt makes of a delivery; docs/contract-webhooks.md#delivery-states.
 *
 * - pending and answered with 2xx: sent.
 * - pending and failed: due again after the next pause of the schedule; failed after the last.
 * - finished (sent again by hand): success makes it sent, failure leaves it as it is.
 *
 * @param schedule pauses before the 2nd, 3rd, … try, in seconds.
 * @param at when the attempt ended, epoch milliseconds.
 */
export const afterAttempt = (
  before: DeliveryState,
  ok: boolean,
  schedule: readonly number[],
  at: number
): NextState => {
  const tries = before.tries + 1;
  if (ok) return { status: 'sent', tries, nextAttemptAt: null, counts: 'sent' };
  if (before.status !== 'pending') {
    return { status: before.status, tries, nextAttemptAt: null, counts: null };
  }
  const pause = schedule[tries - 1];
  if (pause === undefined)
    return { status: 'failed', tries, nextAttemptAt: null, counts: 'failed' };
  return { status: 'pending', tries, nextAttemptAt: at + pause * 1000, counts: null };
};
