import { data } from 'currency-codes';

const DEFAULT_DIGITS = 2;

/**
 * Withdrawn currencies without a minor unit. ISO 4217 no longer says how many digits a withdrawn one
 * had, and tills with old software go on printing them.
 */
const WITHDRAWN_WHOLE = ['BEF', 'BYR', 'ESP', 'GRD', 'ITL', 'LUF', 'MGF', 'PTE', 'TRL'];

const DIGITS: ReadonlyMap<string, number> = new Map([
  ...WITHDRAWN_WHOLE.map((code) => [code, 0] as const),
  ...data.map(({ code, digits }) => [code, digits] as const),
]);

/**
 * How many digits the minor unit of a currency has by ISO 4217: 2 for GBP and HUF, 0 for JPY, 3 for
 * KWD. Not what `Intl` says: it has the digits that people write, such as 0 for HUF, and browsers and
 * servers differ in them. The one table for the server and the admin panel; the till
 * client counts no money.
 */
export const minorDigits = (currency: string): number => DIGITS.get(currency) ?? DEFAULT_DIGITS;
