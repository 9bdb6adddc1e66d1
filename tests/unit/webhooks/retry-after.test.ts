import fc from 'fast-check';
import { pauseUntil } from '../../../server/src/webhooks/rules/delivery-state';

const AT = Date.UTC(2026, 2, 9, 14, 30, 0);
const DAY = 86_400_000;

describe('Retry-After', () => {
  it.each([
    ['1', AT + 1000],
    ['120', AT + 120_000],
    [' 120 ', AT + 120_000],
    ['86400', AT + DAY],
    ['86401', AT + DAY],
    ['9'.repeat(400), AT + DAY],
    ['Mon, 09 Mar 2026 14:31:00 GMT', AT + 60_000],
    ['Monday, 09-Mar-26 14:31:00 GMT', AT + 60_000],
    ['Mon Mar  9 14:31:00 2026', AT + 60_000],
    ['Wed, 09 Mar 2033 14:31:00 GMT', AT + DAY],
  ])('%p is a pause', (value, until) => {
    expect(pauseUntil(value, AT)).toBe(until);
  });

  it.each([
    ...[
      undefined,
      '',
      '0',
      '-1',
      '1.5',
      '1e3',
      '0x10',
      'soon',
      '60s',
      '60, 120',
      'NaN',
      'Infinity',
    ],
    ...['Mon, 09 Mar 2026 14:30:00 GMT', 'Mon, 09 Mar 2026 14:29:59 GMT', '2026-03-09T14:31:00Z'],
    ...['Mon, 99 Mar 2026 14:31:00 GMT', 'Mon, 09 Mar 2026 14:31:00 CET'],
  ])('%p is none', (value) => {
    expect(pauseUntil(value, AT)).toBeNull();
  });

  it('is never anything but a time ahead, within a day', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.nat().map(String)), (value) => {
        const until = pauseUntil(value, AT);
        expect(until === null || (until > AT && until <= AT + DAY)).toBe(true);
      })
    );
  });
});
