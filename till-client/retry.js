'use strict';

const FIRST_MS = 500;
const LONGEST_MS = 5 * 60_000;

/**
 * How long to wait after this attempt (1 for the first): twice as long each time, up to five
 * minutes, with half of it at random so that all tills of a chain do not come back at once; at
 * least what `Retry-After` asked for.
 */
const retryDelay = (attempt, retryAfterMs = 0, random = Math.random) => {
  const full = Math.min(LONGEST_MS, FIRST_MS * 2 ** (attempt - 1));
  return Math.max(retryAfterMs, full / 2 + (full / 2) * random());
};

/** Resolves after a while, or at once when the signal is aborted. */
const pause = (milliseconds, signal) =>
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

exports.retryDelay = retryDelay;
exports.pause = pause;
