/**
 * So much of what a rate allows is claimed at once, in microseconds: a claim for each of 10,000 attempts
 * a second would be all that the database does. Who is late by no more than that catches up.
 */
const GRAIN_US = 100_000;

/** What the clocks of two nodes may differ by, in microseconds. */
const CLOCKS_DIFFER_US = 1_000_000;

/** What a rate allows now. Times are microseconds. */
export interface Allowance {
  /** Attempts that may start. */
  attempts: number;
  /** From when on they count. */
  from: number;
  /** How far they are apart. */
  interval: number;
}

const intervalOf = (ratePerSecond: number): number => 1_000_000 / ratePerSecond;

/**
 * When the next attempt may start by what the last claim left: no later than a rate like this can have left
 * it. What is, comes from a lower rate, or from a clock that was ahead.
 * @param freeAt when the next attempt may start; 0: nothing was sent yet
 */
export const freeAtMost = (ratePerSecond: number, freeAt: number, now: number): number => {
  const interval = intervalOf(ratePerSecond);
  const latest = now + Math.max(interval, GRAIN_US) + CLOCKS_DIFFER_US;
  return freeAt > latest ? Math.round(now + interval) : freeAt;
};

/**
 * What a rate allows at a moment: attempts as far apart as it says, together where they are less than a
 * tenth of a second apart, and no credit for a time in which nothing was sent.
 * docs/receivers.md#how-much-at-once.
 * @param freeAt when the next attempt may start; 0: nothing was sent yet
 */
export const allowance = (ratePerSecond: number, freeAt: number, now: number): Allowance => {
  const interval = intervalOf(ratePerSecond);
  if (freeAt > now) return { attempts: 0, from: freeAt, interval };
  const from = now - freeAt > GRAIN_US ? now : freeAt;
  const attempts = Math.max(1, Math.floor((now + GRAIN_US - from) / interval));
  return { attempts, from, interval };
};

/** When the next attempt may start after so many. */
export const freeAfter = ({ from, interval }: Allowance, attempts: number): number =>
  Math.round(from + attempts * interval);
