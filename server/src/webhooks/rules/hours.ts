export const HOUR_MS = 3_600_000;

/** The beginning of the hour of UTC that a time is in; both in epoch milliseconds. */
export const hourOf = (at: number): number => Math.floor(at / HOUR_MS) * HOUR_MS;
