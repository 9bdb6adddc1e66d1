const DAY_MS = 86_400_000;
const QUARTER_MS = 900_000;
/** No zone is further from UTC than this. */
const LARGEST_OFFSET_MS = 16 * 3_600_000;

const FORM = /^\d{4}-\d{2}-\d{2}$/;

const midnight = (day: string): number => Date.parse(`${day}T00:00:00Z`);
const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10);

/** True if a text is a day of the calendar, `YYYY-MM-DD`. */
export const isDay = (text: string): boolean => {
  const at = FORM.test(text) ? midnight(text) : Number.NaN;
  return !Number.isNaN(at) && dayOf(at) === text;
};

export const daysBetween = (from: string, to: string): number =>
  Math.round((midnight(to) - midnight(from)) / DAY_MS);

/** The day that it is in a time zone. */
const localDay = (zone: string): ((at: number) => string) => {
  const format = new Intl.DateTimeFormat('en-CA', {
    timeZone: zone,
    calendar: 'iso8601',
    numberingSystem: 'latn',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
  });
  return (at) => {
    const parts = new Map(format.formatToParts(at).map(({ type, value }) => [type, value]));
    const year = (parts.get('year') ?? '').padStart(4, '0');
    return `${year}-${parts.get('month')}-${parts.get('day')}`;
  };
};

/** The day, `YYYY-MM-DD`, that a time zone has at a moment (epoch milliseconds). */
export const dayInZone = (at: number, zone: string): string => localDay(zone)(at);

/** The first quarter hour of UTC that belongs to a day; where midnight is skipped, the one after it. */
const beginningOf = (day: string, dayAt: (at: number) => string): number => {
  let before = midnight(day) - LARGEST_OFFSET_MS;
  let within = midnight(day) + LARGEST_OFFSET_MS;
  while (within - before > QUARTER_MS) {
    const middle = before + Math.floor((within - before) / 2 / QUARTER_MS) * QUARTER_MS;
    if (dayAt(middle) < day) before = middle;
    else within = middle;
  }
  return within;
};

/** A day of a time zone; epoch milliseconds, `to` not included. */
export interface ZonedDay {
  day: string;
  from: number;
  to: number;
}

/** The days from one to another, both included, as a time zone has them. */
export const daysOfZone = (from: string, to: string, zone: string): ZonedDay[] => {
  const dayAt = localDay(zone);
  const days: ZonedDay[] = [];
  let start = beginningOf(from, dayAt);
  for (let at = midnight(from); at <= midnight(to); at += DAY_MS) {
    const end = beginningOf(dayOf(at + DAY_MS), dayAt);
    days.push({ day: dayOf(at), from: start, to: end });
    start = end;
  }
  return days;
};
