import fc from 'fast-check';

import { effectiveTime, parseOccurredAt } from '../../../server/src/stock/rules/occurred-at';

const msOf = (text: string) => {
  const result = parseOccurredAt(text);
  return result.ok ? result.epochMs : result.rule;
};

describe('parseOccurredAt', () => {
  it('agrees with Date on every instant it prints', () => {
    fc.assert(
      fc.property(
        fc.date({
          min: new Date('0001-01-01T00:00:00Z'),
          max: new Date('9999-12-31T00:00:00Z'),
          noInvalidDate: true,
        }),
        (date) => {
          expect(msOf(date.toISOString())).toBe(date.getTime());
        }
      ),
      { numRuns: 1000 }
    );
  });

  it('agrees with Date on offsets', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 23 }),
        fc.integer({ min: 0, max: 59 }),
        fc.constantFrom('+', '-'),
        (hours, minutes, sign) => {
          const two = (number: number) => String(number).padStart(2, '0');
          const text = `2026-03-01T14:05:06.789${sign}${two(hours)}:${two(minutes)}`;
          expect(msOf(text)).toBe(Date.parse(text));
          expect(msOf(text.replace(/:(\d\d)$/, '$1'))).toBe(Date.parse(text));
        }
      ),
      { numRuns: 200 }
    );
  });

  it('never throws on any text', () => {
    fc.assert(
      fc.property(fc.string(), (text) => parseOccurredAt(text).ok === false),
      {
        numRuns: 500,
      }
    );
  });

  it.each([
    ['2026-03-01T14:05+01:00', Date.UTC(2026, 2, 1, 13, 5)],
    ['2026-03-01T14:05:00+01', Date.UTC(2026, 2, 1, 13, 5)],
    ['2026-03-01T14:05:00-00:00', Date.UTC(2026, 2, 1, 14, 5)],
    ['2026-03-01T14:05:00.1Z', Date.UTC(2026, 2, 1, 14, 5, 0, 100)],
    ['2026-03-01T14:05:00,123456789Z', Date.UTC(2026, 2, 1, 14, 5, 0, 123)],
    ['2026-03-01T14:05:00.999999999Z', Date.UTC(2026, 2, 1, 14, 5, 0, 999)],
    ['2024-02-29T00:00:00Z', Date.UTC(2024, 1, 29)],
    ['2000-02-29T00:00:00Z', Date.UTC(2000, 1, 29)],
    ['1969-12-31T23:59:59.999Z', -1],
    ['2016-12-31T23:59:60Z', Date.UTC(2017, 0, 1)],
    ['2017-01-01T00:59:60+01:00', Date.UTC(2017, 0, 1)],
  ])('%s is read', (text, epochMs) => {
    expect(msOf(text)).toBe(epochMs);
  });

  it('keeps the first century where it is', () => {
    expect(new Date(Number(msOf('0050-01-01T00:00:00Z'))).getUTCFullYear()).toBe(50);
  });

  it.each([
    ['2026-03-01', 'offset'],
    ['2026-03-01T14:05:00', 'offset'],
    ['2026-03-01 14:05:00Z', 'ISO 8601'],
    ['2026-03-01T14Z', 'ISO 8601'],
    ['2026-W09-7T14:05:00Z', 'ISO 8601'],
    ['2026-060T14:05:00Z', 'ISO 8601'],
    ['20260301T140500Z', 'ISO 8601'],
    ['2026-03-01T14:05:00.Z', 'ISO 8601'],
    ['2026-03-01T14:05:00.1234567890Z', 'ISO 8601'],
    ['2026-03-01T14:05:00 Z', 'ISO 8601'],
    ['2026-03-01T14:05:00Z\n', 'ISO 8601'],
    ['2026-03-01T14:05:00Europe/Rome', 'ISO 8601'],
    ['2026-03-01T14:05:00\u221201:00', 'ISO 8601'],
    ['+002026-03-01T14:05:00Z', 'ISO 8601'],
    ['1772370300', 'ISO 8601'],
    ['2026-00-01T00:00:00Z', 'month'],
    ['2026-13-01T00:00:00Z', 'month'],
    ['2026-04-31T00:00:00Z', 'day'],
    ['2026-01-00T00:00:00Z', 'day'],
    ['2023-02-29T00:00:00Z', 'day'],
    ['1900-02-29T00:00:00Z', 'day'],
    ['2026-03-01T24:00:00Z', 'hour'],
    ['2026-03-01T14:60:00Z', 'minute'],
    ['2026-03-01T14:05:60Z', 'second'],
    ['2026-03-01T23:59:60+01:00', 'second'],
    ['2026-03-01T23:59:61Z', 'second'],
    ['2026-03-01T14:05:00+24:00', 'offset from'],
    ['2026-03-01T14:05:00+01:60', 'offset from'],
  ])('%j is refused for its %s', (text, word) => {
    expect(msOf(text)).toContain(word);
  });
});

describe('effectiveTime', () => {
  it('is occurred_at, but never after the receipt', () => {
    expect(effectiveTime(5, 10)).toEqual({ effectiveMs: 5, clockAhead: false });
    expect(effectiveTime(10, 10)).toEqual({ effectiveMs: 10, clockAhead: false });
    expect(effectiveTime(11, 10)).toEqual({ effectiveMs: 10, clockAhead: true });
  });
});
