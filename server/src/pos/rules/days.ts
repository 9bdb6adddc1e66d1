const DAY_MS = 86_400_000;
const QUARTER_MS = 900_000;
/** No zone is further from UTC than this. */
const LARGEST_OFFSET_MS = 16 * 3_600_000;

const FORM = /^\d{4}-\d{2}-\d{2}$/;

const midnight = (day: string): number => Date.parse(`${day}T00:00:00Z`);
const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10);

/** True if a text is a day of the calendar, `YYYY-MM-DD`, after which there is another one of four digits. */
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
export const offsetAt = (zone: string, at: number): number => {
  const format =
    formats.get(zone) ??
    new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' });
  formats.set(zone, format);
  // For UTC some versions of Node write `GMT` alone.
  const [, sign, hours = 0, minutes = 0, seconds = 0] = OFFSET.exec(format.format(at)) ?? [];
  const ahead = (Number(hours) * 60 + Number(minutes)) * 60_000 + Number(seconds) * 1000;
  return sign === '+' ? ahead : -ahead;
};

/** The day, `YYYY-MM-DD`, that a time zone has at a moment (epoch milliseconds). */
export const dayInZone = (at: number, zone: string): string => dayOf(at + offsetAt(zone, at));

export const dayAfter = (day: string): string => dayOf(midnight(day) + DAY_MS);

/**
 * The first quarter hour of UTC that belongs to a day of a time zone, epoch milliseconds; where midnight is
 * skipped, the one after it.
 */
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
