import fc from 'fast-check';
import {
  follow,
  readUnits,
  toUnits,
  unitsText,
  type ValueKind,
} from '../../../server/src/crm/rules/lifetime-value';

const DIGITS: Record<string, number> = { JPY: 0, GBP: 2, KWD: 3, UYW: 4 };
const COLUMNS: ValueKind[] = ['own', 'decimal', 'float', 'integer', 'biginteger'];

describe('a lifetime value', () => {
  it.each([
    ['19.99', 199_900n],
    [0.003, 30n],
    ['-90100000000.0000', -901_000_000_000_000n],
    [null, 0n],
  ])('%p is %p units', (value, units) => expect(readUnits(value)).toBe(units));

  it('is written by its digits and read again', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(10n ** 29n), max: 10n ** 29n }), (units) => {
        expect(readUnits(unitsText(units))).toBe(units);
      })
    );
  });

  it.each(COLUMNS)('in a column of the kind %s is what it was once all is paid back', (column) => {
    const amount = fc.bigInt({ min: 0n, max: 10n ** 15n });
    const currency = fc.constantFrom(...Object.keys(DIGITS));
    fc.assert(
      fc.property(fc.array(amount, { maxLength: 8 }), currency, (sales, code) => {
        let [value, sum] = [readUnits('7'), 0n];
        const step = (change: bigint): void => {
          const digits = DIGITS[code] ?? 2;
          const [before, after] = [toUnits(sum, digits), toUnits(sum + change, digits)];
          value = follow(value, { before, after, column });
          sum += change;
          expect(value >= 0n).toBe(true);
        };
        for (const one of sales) step(one);
        for (const one of sales) step(-one);
        // What is in a column that is full beside the purchases is not known any more.
        const isFull = column !== 'own' && sales.reduce((all, one) => all + one, 0n) > 10n ** 7n;
        if (!isFull) expect(value).toBe(readUnits('7'));
      })
    );
  });

  it('exactly has what many small amounts come to, and half of a step rounds once', () => {
    let [value, sum] = [0n, 0n];
    for (let at = 0; at < 1000; at += 1) {
      value = follow(value, {
        before: toUnits(sum, 3),
        after: toUnits(sum + 5n, 3),
        column: 'decimal',
      });
      sum += 5n;
    }
    expect(unitsText(value)).toBe('5.0000');
  });
});
