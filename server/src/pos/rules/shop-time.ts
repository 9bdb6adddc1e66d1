import { type OpenHours, WEEKDAYS } from '../../../../shared/contracts/pos';

const DAY_MS = 86_400_000;
export const QUARTER_MS = 900_000;
const LARGEST_OFFSET_MS = 16 * 3_600_000;

const FORM = /^\d{4}-\d{2}-\d{2}$/;

const midnight = (day: string): number => Date.parse(`${day}T00:00:00Z`);
const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10);

/** True if a text is a calendar day, `YYYY-MM-DD`, before the last one with a four-digit year. */
export const isDay = (text: string): boolean => {
  const at = FORM.test(text) ? midnight(text) : Number.NaN;
  return !Number.isNaN(at) && dayOf(at) === text && FORM.test(dayAfter(text));
};

export const daysBetween = (from: string, to: string): number =>
  Math.round((midnight(to) - midnight(from)) / DAY_MS);

const formats = new Map<string, Intl.DateTimeFormat>();

/** The end of a time with its offset: `GMT+05:30`, before clocks were set by zones `GMT-00:44:30`. */
const OFFSET = /([+\-\u2212])(\d\d):(\d\d)(?::(\d\d))?$/;

/** How far the clocks of a time zone are ahead of UTC at an instant, in milliseconds. */
const offsetAt = (zone: string, at: number): number => {
  const format =
    formats.get(zone) ??
    new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' });
  formats.set(zone, format);
  // For UTC some versions of Node write only `GMT`.
  const [, sign, hours = 0, minutes = 0, seconds = 0] = OFFSET.exec(format.format(at)) ?? [];
  const ahead = (Number(hours) * 60 + Number(minutes)) * 60_000 + Number(seconds) * 1000;
  return sign === '+' ? ahead : -ahead;
};

/** The day, `YYYY-MM-DD`, that a time zone has at a moment (epoch milliseconds). */
export const dayInZone = (at: number, zone: string): string => dayOf(at + offsetAt(zone, at));

export const dayAfter = (day: string): string => dayOf(midnight(day) + DAY_MS);

/** The first UTC quarter hour of a day in a zone, epoch milliseconds; the next one if midnight is skipped. */
export const beginningOf = (day: string, zone: string): number => {
  let before = midnight(day) - LARGEST_OFFSET_MS;
  let within = midnight(day) + LARGEST_OFFSET_MS;
  while (within - before > QUARTER_MS) {
    const middle = before + Math.floor((within - before) / 2 / QUARTER_MS) * QUARTER_MS;
    if (dayInZone(middle, zone) < day) before = middle;
    else within = middle;
  }
  return within;
};

const MINUTE_MS = 60_000;
const WEEK_MS = 7 * DAY_MS;
/** 1970-01-01 was a Thursday. */
const MONDAY_TO_EPOCH_MS = 3 * DAY_MS;

export const BEGINNING = /^([01]\d|2[0-3]):[0-5]\d$/;
export const END = /^(([01]\d|2[0-3]):[0-5]\d|24:00)$/;

const minutesOf = (text: string): number => Number(text.slice(0, 2)) * 60 + Number(text.slice(3));

/** When a shop is open within a week, in milliseconds since Monday 00:00 by its clock, in order, apart. */
type Week = readonly (readonly [from: number, to: number])[];

/** The spans of the week; hours that do not end after they begin end on the next day. */
const weekOf = (hours: readonly OpenHours[]): Week => {
  const spans = hours.flatMap(({ days, from, to }) =>
    days.flatMap((day): [number, number][] => {
      const midnight = WEEKDAYS.indexOf(day) * DAY_MS;
      const start = midnight + minutesOf(from) * MINUTE_MS;
      const nextDay = minutesOf(to) > minutesOf(from) ? 0 : DAY_MS;
      const end = midnight + minutesOf(to) * MINUTE_MS + nextDay;
      // Sunday night is the beginning of the week as well.
      return end <= WEEK_MS
        ? [[start, end]]
        : [
            [start, WEEK_MS],
            [0, end - WEEK_MS],
          ];
    })
  );
  const apart: [number, number][] = [];
  for (const [from, to] of spans.sort(([a], [b]) => a - b)) {
    const last = apart.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else apart.push([from, to]);
  }
  return apart;
};

/** Milliseconds that are open from the first Monday to a time of the shop's clock. */
const openUntil = (week: Week, local: number): number => {
  const at = local + MONDAY_TO_EPOCH_MS;
  const weeks = Math.floor(at / WEEK_MS);
  const within = at - weeks * WEEK_MS;
  let sum = 0;
  for (const [from, to] of week) {
    sum += weeks * (to - from) + Math.max(0, Math.min(to, within) - from);
  }
  return sum;
};

/** The first instant after `from` at which clocks have another offset; to the second. */
const changeBetween = (zone: string, from: number, to: number): number => {
  const before = offsetAt(zone, from);
  let [same, other] = [Math.floor(from / 1000), Math.ceil(to / 1000)];
  while (other - same > 1) {
    const middle = Math.floor((same + other) / 2);
    if (offsetAt(zone, middle * 1000) === before) same = middle;
    else other = middle;
  }
  return other * 1000;
};

/** True if hours are open at an instant (epoch milliseconds), by the clocks of a time zone. */
export const isOpenAt = (hours: readonly OpenHours[], zone: string, at: number): boolean => {
  const within = (at + offsetAt(zone, at) + MONDAY_TO_EPOCH_MS) % WEEK_MS;
  return weekOf(hours).some(([from, to]) => within >= from && within < to);
};

/** Fractional minutes of open hours between instants, by the shop's clock; counting may stop beyond `enough`. */
export const openMinutesBetween = (
  hours: readonly OpenHours[],
  zone: string,
  from: number,
  to: number,
  enough = Infinity
): number => {
  const week = weekOf(hours);
  let open = 0;
  // Clocks change at most once a day: between two looks of the same offset they ran evenly.
  for (let at = from; at < to && open / MINUTE_MS <= enough;) {
    const offset = offsetAt(zone, at);
    let next = Math.min(to, at + DAY_MS);
    if (offsetAt(zone, next) !== offset) next = Math.min(next, changeBetween(zone, at, next));
    open += openUntil(week, next + offset) - openUntil(week, at + offset);
    at = next;
  }
  return open / MINUTE_MS;
};
