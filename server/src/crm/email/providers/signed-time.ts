/** How old a signature may be. Providers post again for hours, not for longer. */
export const SIGNATURE_WINDOW_MS = 3 * 24 * 3600 * 1000;
/** Clocks differ; a signature from further ahead could be kept and used when its time has come. */
const AHEAD_MS = 5 * 60 * 1000;

/** Whether a signed time, Unix seconds in digits, is one at which a signature counts. */
export const isCurrent = (timestamp: unknown, now: number): boolean => {
  const text = typeof timestamp === 'number' ? String(timestamp) : timestamp;
  if (typeof text !== 'string' || !/^[1-9]\d{0,11}$/.test(text)) return false;
  const at = Number(text) * 1000;
  return now - at <= SIGNATURE_WINDOW_MS && at - now <= AHEAD_MS;
};
