import { useCallback } from 'react';
import { useIntl } from 'react-intl';
import { minorDigits } from '../../../shared/currencies';
import { moneyFormat } from '../utils/money-format';

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
      formatNumber(minor / 10 ** minorDigits(currency), moneyFormat(currency, compact)),
    [formatNumber]
  );
};
