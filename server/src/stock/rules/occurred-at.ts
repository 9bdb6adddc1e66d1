/**
 * `occurred_at`: ISO 8601 date and time with offset. Hours and minutes are required; seconds and up to nine fraction
 * digits are optional; the offset is `Z`, `+hh:mm`, `+hhmm` or `+hh`. The published schemas have this pattern;
 * `parseOccurredAt` checks that day and month exist.
 */
export const OCCURRED_AT_PATTERN =
  '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}(:\\d{2}([.,]\\d{1,9})?)?(Z|[+-]\\d{2}(:?\\d{2})?)$';

const PARTS =
  /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?(?:Z|([+-])(\d{2})(?::?(\d{2}))?)$/;

const MINUTE_MS = 60_000;

export type OccurredAt = { ok: true; epochMs: number } | { ok: false; rule: string };

const no = (rule: string): OccurredAt => ({ ok: false, rule });

/**
 * Parses `occurred_at` to epoch milliseconds (docs/contract-pos.md#sale). Cuts digits past the millisecond. A leap
 * second (`23:59:60` UTC) is the next day's first second, as in POSIX. A refusal fits after "occurred_at".
 */
export const parseOccurredAt = (text: string): OccurredAt => {
  const parts = PARTS.exec(text);
  if (!parts) {
    return no(
      'must be an ISO 8601 date and time with an explicit offset, such as 2025-03-01T14:05:00+01:00'
    );
  }
  const at = (index: number): number => Number(parts[index] ?? 0);
  const [year, month, day, hour, minute, second] = [at(1), at(2), at(3), at(4), at(5), at(6)];
  if (month < 1 || month > 12) return no('must name a month from 01 to 12');
  // `Date.UTC` takes the years 0-99 for 1900-1999; this does not.
  const midnight = new Date(0).setUTCFullYear(year, month - 1, day);
  if (new Date(midnight).getUTCDate() !== day) return no('must name a day that exists');
  if (hour > 23) return no('must name an hour from 00 to 23');
  if (minute > 59) return no('must name a minute from 00 to 59');
  if (at(9) > 23 || at(10) > 59) return no('must have an offset from -23:59 to +23:59');

  const offsetMinutes = (at(9) * 60 + at(10)) * (parts[8] === '-' ? -1 : 1);
  const minuteMs = midnight + (hour * 60 + minute - offsetMinutes) * MINUTE_MS;
  const utc = new Date(minuteMs);
  const leapMinute = utc.getUTCHours() === 23 && utc.getUTCMinutes() === 59;
  if (second > (leapMinute ? 60 : 59)) return no('must name a second from 00 to 59');

  const fractionMs = Number((parts[7] ?? '').padEnd(3, '0').slice(0, 3));
  return { ok: true, epochMs: minuteMs + second * 1000 + fractionMs };
};

/** The time that orders a record, epoch milliseconds: the earlier of `occurred_at` and receipt, fixed at acceptance. */
export const effectiveTime = (occurredAtMs: number, receivedAtMs: number) => ({
  effectiveMs: Math.min(occurredAtMs, receivedAtMs),
  clockAhead: occurredAtMs > receivedAtMs,
});
