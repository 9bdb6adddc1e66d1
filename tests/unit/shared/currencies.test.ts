import { data } from 'currency-codes';
import { moneyFormat } from '../../../admin/src/utils/money-format';
import { recordMatcher } from '../../../server/src/pos/rules/record-match';
import { toMinorUnits } from '../../../server/src/stock/products';
import { minorDigits } from '../../../shared/currencies';

/** As ISO 4217 has them; ICU has 0 for most of the first row. */
const BY_ISO = [
  ...['HUF', 'COP', 'IDR', 'PKR', 'AFN', 'ALL', 'IRR', 'LAK', 'LBP', 'MMK', 'SYP', 'YER'].map(
    (code) => [code, 2] as const
  ),
  ...(['GBP', 'EUR', 'USD', 'CHF'] as const).map((code) => [code, 2] as const),
  ...(['JPY', 'KRW', 'CLP', 'VND', 'ISK', 'UYI'] as const).map((code) => [code, 0] as const),
  ...(['IQD', 'KWD', 'BHD', 'TND'] as const).map((code) => [code, 3] as const),
  ...(['CLF', 'UYW'] as const).map((code) => [code, 4] as const),
  // Withdrawn, but still printed by old tills.
  ...(['ITL', 'BYR'] as const).map((code) => [code, 0] as const),
  ...(['DEM', 'HRK'] as const).map((code) => [code, 2] as const),
];

describe('minor units of a currency', () => {
  it.each(BY_ISO)('%s has %d digits, wherever money is counted or shown', (currency, digits) => {
    const one = 10 ** digits;
    expect(minorDigits(currency)).toBe(digits);
    expect(toMinorUnits(7, currency)).toBe(7 * one);
    const shown = new Intl.NumberFormat('en', moneyFormat(currency, false)).format(7);
    expect(shown.replace(/[^\d.]/g, '')).toBe((7).toFixed(digits));
    const find = recordMatcher('7');
    const money = { currency, amount: BigInt(7 * one) };
    expect(find({ externalId: 'x', body: '{}', money })).toBe(true);
  });

  it('are those of the package for every currency of it', () => {
    expect(data.length).toBeGreaterThan(170);
    for (const { code, digits } of data) expect([code, minorDigits(code)]).toEqual([code, digits]);
  });
});
