import { type OpenHours, WEEKDAYS } from '../../../../shared/contracts/pos';
import { offsetAt } from './days';

const MINUTE_MS = 60_000;
const DAY_MS = 1440 * MINUTE_MS;
const WEEK_MS = 7 * DAY_MS;
/** 1970-01-01 was a Thursday. */
const MONDAY_TO_EPOCH_MS = 3 * DAY_MS;

/** A time of day, `HH:MM`. */
export const BEGINNING = /^([01]\d|2[0-3]):[0-5]\d$/;
/** As `BEGINNING`, or the end of the day. */
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

/**
 * Minutes, with fractions, that lie in open hours between two instants (epoch milliseconds): those at
 * which the shop's clock shows a time within them. So an hour that clocks skip is none, and one that
 * they show twice is two.
 * @param enough  counting may stop once there are more than so many
 */
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
