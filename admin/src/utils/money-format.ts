import { minorDigits } from '../../../shared/currencies';

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
