import fc from 'fast-check';
import { lineOf } from '../../../server/src/runtime/text';

/** As `lineOf` without its look at whether anything is to be replaced. */
const replaced = (text: string): string =>
  text
    .replace(/\p{Surrogate}/gu, '\ufffd')
    .replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .trim();

const unit = fc.oneof(
  fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)),
  fc.constantFrom('a', ' ', '\n', '\u0085', '\u00a0', '\u2028', '\ud800', '\udc00', '\u{1f600}')
);

describe('one line of text', () => {
  it('has nothing that a database refuses, whatever it was', () => {
    fc.assert(
      fc.property(fc.array(unit, { maxLength: 40 }), (units) => {
        const text = units.join('');
        expect(lineOf(text, 1000)).toBe(replaced(text));
      }),
      { numRuns: 2000 }
    );
  });

  it.each([
    ['Grace Hopper', 'Grace Hopper'],
    ['  Zoë\tÅngström\r\nLtd. ', 'Zoë Ångström Ltd.'],
    ['a\u0000b\u2029c\ud800', 'a b c\ufffd'],
    ['\u{1f600}', '\u{1f600}'],
    [12, '12'],
    [null, ''],
  ])('of %j is %j', (given, line) => expect(lineOf(given, 200)).toBe(line));
});
