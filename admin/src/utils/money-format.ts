import { minorDigits } from '../../../shared/currencies';
import type { MinorSum } from '../../../shared/minor-sums';

/**
 * An amount in minor units as decimal digits of the currency's unit; nothing is rounded of a whole one.
 */
export const amountText = (minor: MinorSum, currency: string): string => {
  const digits = minorDigits(currency);
  if (typeof minor === 'number' && !Number.isInteger(minor)) return String(minor / 10 ** digits);
  const sum = BigInt(minor);
  const size = String(sum < 0n ? -sum : sum).padStart(digits + 1, '0');
  const [whole, fraction] = [size.slice(0, size.length - digits), size.slice(size.length - digits)];
  return `${sum < 0n ? '-' : ''}${whole}${fraction && `.${fraction}`}`;
};

/**
 * How `Intl` is asked to write an amount of a currency, so that it shows the digits of ISO 4217 and
 * not its own.
 * @param compact  for the axis of a chart
 */
export const moneyFormat = (currency: string, compact: boolean) => {
  const digits = minorDigits(currency);
  return {
    style: 'currency' as const,
    currency,
    ...(compact
      ? { notation: 'compact' as const }
      : { minimumFractionDigits: digits, maximumFractionDigits: digits }),
  };
};
