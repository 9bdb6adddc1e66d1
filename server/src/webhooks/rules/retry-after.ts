/** A receiver may ask for a day at most; docs/receivers.md#asking-for-a-pause. */
const LONGEST_MS = 86_400_000;

/** The date of HTTP (RFC 9110, 5.6.7), and the two older forms that a recipient has to take. */
const HTTP_DATES = [
  /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d{2}:\d{2}:\d{2} GMT$/,
  /^(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, \d{2}-(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)-\d{2} \d{2}:\d{2}:\d{2} GMT$/,
  /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/,
];

const untilOf = (value: string, at: number): number => {
  if (/^\d+$/.test(value)) return at + Number(value) * 1000;
  if (!HTTP_DATES.some((form) => form.test(value))) return Number.NaN;
  // The third form names no zone; it is GMT as well.
  return Date.parse(value.endsWith('GMT') ? value : `${value} GMT`);
};

/**
 * Until when a receiver that answered 429 or 503 wants to be left alone, by its `Retry-After`.
 * @param value the header as it came
 * @param at now, epoch milliseconds
 * @returns epoch milliseconds, a day ahead at most; null where it asks for no pause: 0, a time that
 * has passed, or anything that is neither whole seconds nor a date of HTTP
 */
export const pauseUntil = (value: string | undefined, at: number): number | null => {
  const until = untilOf(value?.trim() ?? '', at);
  return until > at ? Math.min(until, at + LONGEST_MS) : null;
};
