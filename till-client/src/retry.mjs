const FIRST_MS = 500;
const LONGEST_MS = 5 * 60_000;

/**
 * How long to wait after this attempt (1 for the first): twice as long each time, up to five
 * minutes, with half of it at random so that all tills of a chain do not come back at once; at
 * least what `Retry-After` asked for.
 */
export const retryDelay = (attempt, retryAfterMs = 0, random = Math.random) => {
  const full = Math.min(LONGEST_MS, FIRST_MS * 2 ** (attempt - 1));
  return Math.max(retryAfterMs, full / 2 + (full / 2) * random());
};

/** A gateway that says "in a year" must not silence a till for a year. */
const LONGEST_RETRY_AFTER_MS = 60 * 60_000;

/**
 * `Retry-After` in milliseconds, an hour at most; it comes as seconds or as an HTTP date.
 * @returns {number | undefined} undefined: there is none, or it cannot be read
 */
export const readRetryAfter = (header, nowMs) => {
  if (!header) return undefined;
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - nowMs;
  return Number.isNaN(ms) ? undefined : Math.min(LONGEST_RETRY_AFTER_MS, Math.max(0, ms));
};

/** Resolves after a while, or at once when the signal is aborted. */
export const pause = (milliseconds, signal) =>
  new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const timer = setTimeout(done, milliseconds);
    function done() {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    }
    signal?.addEventListener('abort', done, { once: true });
  });
