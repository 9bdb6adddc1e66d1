/**
 * When a delivery is due that is put aside: not in our time (the end of the year 9999). So it costs
 * the queue nothing, is found by the index the queue has, and `next_attempt_at` stays what it was.
 */
export const ASIDE_UNTIL = 253_402_300_799_999;
/** The same of one that waits for an earlier one of its record. */
export const HELD_UNTIL = ASIDE_UNTIL - 1000;
