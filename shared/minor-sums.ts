/**
 * A sum in minor units: an integer while a JSON number holds it exactly (up to 2^53 − 1 either way), its
 * digits as a string beyond. Single amounts are always integers; only sums grow that large.
 */
export type MinorSum = number | string;

/** A sum as answers, events and files show it. */
export const minorSum = (sum: bigint): MinorSum => {
  const number = Number(sum);
  return Number.isSafeInteger(number) ? number : String(sum);
};
