import { beginningOf, dayAfter, isDay } from '../../../server/src/pos/rules/shop-time';

describe('a day of the calendar', () => {
  it.each(['2026-03-01', '2024-02-29', '0001-01-01', '9999-12-30'])('is %s', (day) => {
    expect(isDay(day)).toBe(true);
    expect(beginningOf(dayAfter(day), 'Pacific/Kiritimati')).toBeGreaterThan(
      beginningOf(day, 'Pacific/Kiritimati')
    );
  });

  // Nothing could be asked for up to its end.
  it.each(['2026-02-29', '2026-3-1', '26-03-01', '2026-13-01', '9999-12-31', ''])(
    'is not %s',
    (day) => {
      expect(isDay(day)).toBe(false);
    }
  );
});
