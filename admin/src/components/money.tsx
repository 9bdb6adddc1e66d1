import { useCallback } from 'react';
import { useIntl } from 'react-intl';

const DEFAULT_DIGITS = 2;

/** How many digits a currency's minor unit has, such as 2 of GBP and 0 of JPY. */
export const minorDigits = (currency: string): number =>
  new Intl.NumberFormat('en', { style: 'currency', currency }).resolvedOptions()
    .maximumFractionDigits ?? DEFAULT_DIGITS;

export type FormatMoney = (
  minor: number,
  currency: string,
  options?: { compact?: boolean }
) => string;

/** An amount in minor units as the reader's language writes it; `compact` for the axis of a chart. */
export const useMoney = (): FormatMoney => {
  const { formatNumber } = useIntl();
  return useCallback(
    (minor, currency, { compact = false } = {}) =>
      formatNumber(minor / 10 ** minorDigits(currency), {
        style: 'currency',
        currency,
        ...(compact && { notation: 'compact' }),
      }),
    [formatNumber]
  );
};
