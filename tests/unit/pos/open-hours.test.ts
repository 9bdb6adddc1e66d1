import fc from 'fast-check';
import { isOpenAt, openMinutesBetween } from '../../../server/src/pos/rules/shop-time';
import { countedFrom, isNewlySilent, silentSince } from '../../../server/src/pos/silence';
import { type OpenHours, WEEKDAYS } from '../../../shared/contracts/pos';

const MINUTE = 60_000;
const ZONES = ['Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kolkata', 'UTC'];
const at = (text: string): number => Date.parse(text);
const minutes = (text: string): number => Number(text.slice(0, 2)) * 60 + Number(text.slice(3));

/** What the clock on the wall says in a minute: which day of the week, and how far into it. */
const wallOf = (zone: string) => {
  const format = new Intl.DateTimeFormat('en-GB', {
    timeZone: zone,
    weekday: 'short',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  });
  return (instant: number): { day: number; minute: number } => {
    const parts = Object.fromEntries(
      format.formatToParts(instant).map(({ type, value }) => [type, value])
    );
    const day = WEEKDAYS.indexOf(parts.weekday!.toLowerCase() as OpenHours['days'][number]);
    return { day, minute: minutes(`${parts.hour}:${parts.minute}`) };
  };
};

const naivelyOpen = (
  hours: readonly OpenHours[],
  { day, minute }: { day: number; minute: number }
): boolean =>
  hours.some(({ days, from, to }) => {
    const [start, end] = [minutes(from), minutes(to)];
    const today = days.includes(WEEKDAYS[day]!);
    const yesterday = days.includes(WEEKDAYS[(day + 6) % 7]!);
    if (end > start) return today && minute >= start && minute < end;
    return (today && minute >= start) || (yesterday && minute < end);
  });

const time = fc
  .integer({ min: 0, max: 1439 })
  .map(
    (minute) =>
      `${String(Math.floor(minute / 60)).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}`
  );
const span = fc
  .record({
    days: fc.subarray([...WEEKDAYS], { minLength: 1 }),
    from: time,
    to: fc.oneof({ weight: 5, arbitrary: time }, fc.constant('24:00')),
  })
  .filter(({ from, to }) => from !== to);
/** About when clocks change somewhere, at the end of a year, and anywhere. */
const start = fc
  .tuple(
    fc.constantFrom(
      ...['2026-03-28', '2026-10-24', '2026-03-07', '2026-10-31', '2026-04-04', '2026-12-31'],
      '2028-02-28'
    ),
    fc.integer({ min: 0, max: 2880 })
  )
  .map(([day, minute]) => at(`${day}T00:00:00Z`) + minute * MINUTE);

describe('open minutes', () => {
  it('are those whose minute on the wall lies in the hours', () => {
    fc.assert(
      fc.property(
        fc.array(span, { minLength: 1, maxLength: 4 }),
        fc.constantFrom(...ZONES),
        start,
        fc.integer({ min: 0, max: 3 * 1440 }),
        (hours, zone, from, length) => {
          const wallAt = wallOf(zone);
          let counted = 0;
          for (let minute = 0; minute < length; minute += 1) {
            const instant = from + minute * MINUTE;
            const open = naivelyOpen(hours, wallAt(instant));
            if (minute % 97 === 0) expect(isOpenAt(hours, zone, instant)).toBe(open);
            counted += Number(open);
          }
          expect(openMinutesBetween(hours, zone, from, from + length * MINUTE)).toBe(counted);
        }
      ),
      { numRuns: 25 }
    );
  });

  const NIGHT: OpenHours[] = [{ days: ['sat'], from: '22:00', to: '04:00' }];
  it.each([
    ['an ordinary night', '2026-03-21', 360],
    ['the night in which clocks skip an hour', '2026-03-28', 300],
    ['the night in which clocks show an hour twice', '2026-10-24', 420],
  ])('of %s from Saturday to Sunday', (_what, saturday, expected) => {
    const noon = at(`${saturday}T11:00:00Z`);
    expect(openMinutesBetween(NIGHT, 'Europe/Berlin', noon, noon + 24 * 60 * MINUTE)).toBe(
      expected
    );
  });

  it('count once where hours overlap, and by fractions', () => {
    const hours: OpenHours[] = [
      { days: ['mon'], from: '09:00', to: '12:00' },
      { days: ['mon', 'tue'], from: '11:00', to: '13:00' },
    ];
    const from = at('2026-11-23T08:00:00Z');
    expect(openMinutesBetween(hours, 'UTC', from, from + 86_400_000)).toBe(240);
    expect(openMinutesBetween(hours, 'UTC', from, at('2026-11-23T09:00:30Z'))).toBe(0.5);
  });

  it('are told from years back as soon as there are enough', () => {
    const hours: OpenHours[] = [{ days: ['mon'], from: '00:00', to: '24:00' }];
    const [from, to] = [at('2016-01-01T00:00:00Z'), at('2026-01-01T00:00:00Z')];
    expect(openMinutesBetween(hours, 'Europe/London', from, to, 30)).toBe(1440);
  });
});

describe('silence', () => {
  const row = {
    mode: 'live' as const,
    active: true,
    revoked_at: null,
    deleted_at: null,
    created_at: at('2026-11-01T00:00:00Z'),
    last_seen_at: at('2026-11-23T12:04:00Z'),
    expected_every_minutes: 30,
    open_hours: '[{"days":["mon","tue"],"from":"09:00","to":"18:00"}]',
    watched_from: null,
    silent_since: null,
  };
  const isNew = (when: string, more: Partial<Record<keyof typeof row, unknown>> = {}) =>
    isNewlySilent({ ...row, ...more } as never, 'UTC', at(when));

  it('begins when more open minutes passed than expected', () => {
    expect(isNew('2026-11-23T12:34:00Z')).toBe(false);
    expect(isNew('2026-11-23T12:34:01Z')).toBe(true);
  });

  it('does not grow while the shop is closed, and is not told then', () => {
    const evening = { last_seen_at: at('2026-11-23T17:50:00Z') };
    expect(isNew('2026-11-24T09:20:00Z', evening)).toBe(false);
    expect(isNew('2026-11-24T09:21:00Z', evening)).toBe(true);
    expect(isNew('2026-11-23T18:30:00Z', { last_seen_at: at('2026-11-23T09:00:00Z') })).toBe(false);
  });

  it.each([
    ['in test mode', { mode: 'test' }],
    ['off', { active: false }],
    ['revoked', { revoked_at: 1 }],
    ['deleted', { deleted_at: 1 }],
    ['without an expectation', { expected_every_minutes: null }],
    ['without hours', { open_hours: null }],
    ['with hours that were taken away', { open_hours: 'null' }],
    ['told of already', { silent_since: row.last_seen_at }],
    ['live since a moment', { watched_from: at('2026-11-23T12:50:00Z') }],
  ])('is never that of a connection that is %s', (_what, more) => {
    expect(isNew('2026-11-23T13:00:00Z')).toBe(true);
    expect(isNew('2026-11-23T13:00:00Z', more)).toBe(false);
  });

  it('is said from when it was told until the till is heard of, in open hours', () => {
    const said = (more: object, when = '2026-11-23T13:00:00Z') =>
      silentSince({ ...row, ...more } as never, 'UTC', at(when));
    const told = { silent_since: row.last_seen_at };
    expect(said({})).toBeNull();
    expect(said(told)).toBe(row.last_seen_at);
    expect(said(told, '2026-11-23T20:00:00Z')).toBeNull();
    expect(said({ ...told, last_seen_at: at('2026-11-23T12:59:00Z') })).toBeNull();
  });

  it('of a till that was never heard of counts from when it was made, or made live', () => {
    expect(countedFrom({ ...row, last_seen_at: null } as never)).toBe(row.created_at);
    expect(countedFrom({ ...row, last_seen_at: null, watched_from: 5e12 } as never)).toBe(5e12);
  });
});
