import fc from 'fast-check';
import { toMinorUnits } from '../../../server/src/stock/products';

describe('a price in minor units', () => {
  it.each([
    [19.99, 'EUR', 1999],
    ['19.99', 'EUR', 1999],
    ['0019.9', 'EUR', 1990],
    [1250, 'JPY', 1250],
    [1250.5, 'JPY', 1251],
    [1.2345, 'KWD', 1235],
    [1.005, 'USD', 101],
    [8.2, 'GBP', 820],
    [0, 'GBP', 0],
    [-3.5, 'GBP', -350],
    [Number.NaN, 'GBP', null],
    [1e21, 'GBP', null],
    ['9007199254740993', 'GBP', null],
    ['about 5', 'GBP', null],
    ['', 'GBP', null],
    [null, 'GBP', null],
    [true, 'GBP', null],
  ])('%p %s is %p', (value, currency, expected) => {
    expect(toMinorUnits(value, currency)).toBe(expected);
  });

  it('is that of the cents that a number was made of', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1_000_000_000 }), (cents) => {
        expect(toMinorUnits(cents / 100, 'EUR')).toBe(cents);
      })
    );
  });
});
