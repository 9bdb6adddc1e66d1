/**
 * How long a delivery is held whose process has died. While that lives it prolongs the lease, so this
 * need not be as long as an attempt.
 */
export const LEASE_MS = 8_000;
/** What has waited for a slot for so long goes back to its place: another process may have one. */
const LONGEST_WAIT_MS = 15_000;
/** Of an attempt that is made by hand, whose lease nobody prolongs: beyond the deadline. */
const BY_HAND_MARGIN_MS = 20_000;
/** What an attempt may take beyond its deadline: slow hooks, and recording it. */
const ATTEMPT_MARGIN_MS = 5_000;

/**
 * Milliseconds. With less than `reserveMs` left of what the claim gave no attempt is started; every
 * `renewMs` leases are prolonged; `longestMs` is what an attempt may take in all.
 */
export const leaseTimes = (
  timeoutMs: number
): { byHandMs: number; reserveMs: number; renewMs: number; longestMs: number } => ({
  byHandMs: timeoutMs + BY_HAND_MARGIN_MS,
  reserveMs: LEASE_MS - LONGEST_WAIT_MS,
  renewMs: LEASE_MS / 4,
  longestMs: timeoutMs + ATTEMPT_MARGIN_MS,
});
