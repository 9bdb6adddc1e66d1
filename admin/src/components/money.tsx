import { useCallback } from 'react';
import { useIntl } from 'react-intl';
import type { MinorSum } from '../../../shared/minor-sums';
import { amountText, moneyFormat } from '../utils/money-format';

export type FormatMoney = (
  minor: MinorSum,
  currency: string,
  options?: { compact?: boolean }
) => string;

/** An amount in minor units as the reader's language writes it; `compact` for the axis of a chart. */
export const useMoney = (): FormatMoney => {
  const { formatNumber } = useIntl();
  return useCallback(
    (minor, currency, { compact = false } = {}) =>
      // `Intl` takes digits as they are; the types of react-intl know numbers alone.
      formatNumber(
        amountText(minor, currency) as unknown as number,
        moneyFormat(currency, compact)
      ),
    [formatNumber]
  );
};
