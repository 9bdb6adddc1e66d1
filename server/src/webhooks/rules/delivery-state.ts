import type { DeliveryState, DeliveryStatus } from '../../../../shared/contracts/webhooks';

/** A delivery's state; docs/contract-webhooks.md#deliveries. */
export const stateOf = (delivery: {
  status: DeliveryStatus;
  tries: number;
  isTest: boolean;
}): DeliveryState => {
  if (delivery.isTest) return 'test';
  if (delivery.status !== 'pending') return delivery.status;
  return delivery.tries > 0 ? 'failing' : 'waiting';
};

/** The sections that are asked for by their numbers. */
export const SECTIONS = { waiting: 0, failing: 1, test: 3 } as const;

export interface LogSection {
  /** As the column of the queue has it. */
  number: number;
  status: DeliveryStatus;
  state: DeliveryState;
}

const ALL: readonly LogSection[] = [
  { number: SECTIONS.waiting, status: 'pending', state: 'waiting' },
  { number: SECTIONS.failing, status: 'pending', state: 'failing' },
  { number: 2, status: 'failed', state: 'failed' },
  // Tests; and a sent one that is sent again by hand.
  { number: SECTIONS.test, status: 'pending', state: 'test' },
  { number: 4, status: 'failed', state: 'test' },
  { number: 5, status: 'sent', state: 'test' },
  { number: 6, status: 'sent', state: 'sent' },
];

/** The sections in which the deliveries of a status and of some states are; none if none can be in both. */
export const sectionsOf = (
  status: DeliveryStatus | undefined,
  states: readonly DeliveryState[] | undefined
): LogSection[] =>
  ALL.filter(
    (one) =>
      (status === undefined || one.status === status) && (states?.includes(one.state) ?? true)
  );

export const sectionOf = (delivery: Parameters<typeof stateOf>[0]): number => {
  const state = stateOf(delivery);
  return ALL.find((one) => one.status === delivery.status && one.state === state)!.number;
};

export interface DeliveryProgress {
  status: DeliveryStatus;
  tries: number;
  /** Attempts by hand ahead of the schedule, which used up none of it. */
  extraTries?: number | undefined;
}

export interface NextState extends DeliveryProgress {
  /** When the next attempt is due, epoch milliseconds; null: none, the delivery is finished. */
  nextAttemptAt: number | null;
  /** By how much the receiver has put the delivery off, in milliseconds: the attempt does not count. */
  pausedMs?: number;
  /** This attempt's weight for "20 deliveries in a row": a delivery that ended, once. */
  counts: 'sent' | 'failed' | null;
}

/** The most that a receiver may put one delivery off by, in all; then each answer counts. */
const LONGEST_PAUSES_MS = 72 * 3_600_000;

/**
 * The transition if the receiver asked for a pause: only the next attempt moves; docs/receivers.md#asking-for-a-pause.
 * @param until end of the pause, `at` end of the attempt; epoch milliseconds
 * @returns null if it was delayed long enough: the attempt counts as any other
 */
export const afterPause = (
  before: DeliveryProgress & { pausedMs: number; nextAttemptAt: number | null },
  until: number,
  at: number
): NextState | null => {
  const pausedMs = until - at;
  if (before.pausedMs + pausedMs > LONGEST_PAUSES_MS) return null;
  const { status, tries, extraTries } = before;
  const nextAttemptAt = status === 'pending' ? Math.max(until, before.nextAttemptAt ?? 0) : null;
  return { status, tries, extraTries, nextAttemptAt, pausedMs, counts: null };
};

/**
 * The transition of a delivery after an attempt; docs/contract-webhooks.md#delivery-states.
 *
 * - pending and answered with 2xx: sent.
 * - pending and failed: due again after the next pause of the schedule; failed after the last.
 * - pending, sent again by hand before its time, and failed: due when it was.
 * - finished (sent again by hand): success makes it sent, failure leaves it as it is.
 *
 * @param schedule pauses before the 2nd, 3rd, … try, in seconds.
 * @param at when the attempt ended, epoch milliseconds.
 * @param dueAt of an attempt by hand: when the delivery was due by itself; else null.
 */
export const afterAttempt = (
  before: DeliveryProgress,
  ok: boolean,
  schedule: readonly number[],
  at: number,
  dueAt: number | null = null
): NextState => {
  const { status, extraTries } = before;
  const tries = before.tries + 1;
  const ended = { tries, extraTries, nextAttemptAt: null };
  if (ok) return { status: 'sent', counts: 'sent', ...ended };
  if (status !== 'pending') return { status, counts: null, ...ended };
  if (dueAt !== null && dueAt > at) {
    return { status, tries, extraTries: (extraTries ?? 0) + 1, nextAttemptAt: dueAt, counts: null };
  }
  const pause = schedule[tries - (extraTries ?? 0) - 1];
  if (pause === undefined) return { status: 'failed', counts: 'failed', ...ended };
  return { status, tries, extraTries, nextAttemptAt: at + pause * 1000, counts: null };
};

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
 * The end of a pause that a 429 or 503 asks for by `Retry-After`, capped at a day; null if there is none: 0, a past
 * time, or neither whole seconds nor an HTTP date. Epoch milliseconds, as is `at` (now).
 * @param value the header as it came
 */
export const pauseUntil = (value: string | undefined, at: number): number | null => {
  const until = untilOf(value?.trim() ?? '', at);
  return until > at ? Math.min(until, at + LONGEST_MS) : null;
};
