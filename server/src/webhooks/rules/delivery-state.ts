import {
  DELIVERY_STATUSES,
  type DeliveryState,
  type DeliveryStatus,
} from '../../../../shared/contracts/webhooks';

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

/** Under what a delivery in the queue is found, as its column has it. */
export const SECTIONS = {
  ...{ waiting: 0, failing: 1, failed: 2 },
  // Tests; and a sent one that is sent again by hand.
  ...{ test: 3, failedTest: 4, sentTest: 5, sent: 6 },
} as const;

export const sectionOf = (delivery: Parameters<typeof stateOf>[0]): number => {
  const state = stateOf(delivery);
  if (state !== 'test') return SECTIONS[state];
  if (delivery.status === 'pending') return SECTIONS.test;
  return delivery.status === 'failed' ? SECTIONS.failedTest : SECTIONS.sentTest;
};

/** Deliveries of one status, either tests or none. */
export interface LogSection {
  status: DeliveryStatus;
  isTest: boolean;
  /** Pending ones only: true for attempted ones, false for the others. */
  tried?: boolean;
}

const isIn = ({ status, isTest }: LogSection, state: DeliveryState): boolean => {
  if (isTest || state === 'test') return isTest && state === 'test';
  return status === 'pending' ? state === 'waiting' || state === 'failing' : status === state;
};

/**
 * The sections in which the deliveries of a status and of some states are.
 * @returns none if no delivery can be in both
 */
export const sectionsOf = (
  status: DeliveryStatus | undefined,
  states: readonly DeliveryState[] | undefined
): LogSection[] => {
  const all = DELIVERY_STATUSES.flatMap((one) => [
    { status: one, isTest: false },
    { status: one, isTest: true },
  ]).filter((section) => status === undefined || section.status === status);
  if (!states) return all;
  return states.flatMap((state) =>
    all
      .filter((section) => isIn(section, state))
      .map((section) =>
        state === 'waiting' || state === 'failing'
          ? { ...section, tried: state === 'failing' }
          : section
      )
  );
};

export interface DeliveryProgress {
  status: DeliveryStatus;
  /** Attempts made so far. */
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
 * The transition of a delivery whose receiver asked for a pause: only its next attempt is due later;
 * docs/receivers.md#asking-for-a-pause.
 * @param until when the pause ends, epoch milliseconds
 * @param at when the attempt ended, epoch milliseconds
 * @returns null if it was put off for long enough: the attempt counts as any other
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
  if (ok) return { status: 'sent', tries, extraTries, nextAttemptAt: null, counts: 'sent' };
  if (status !== 'pending') {
    return { status, tries, extraTries, nextAttemptAt: null, counts: null };
  }
  if (dueAt !== null && dueAt > at) {
    const extra = (extraTries ?? 0) + 1;
    return { status, tries, extraTries: extra, nextAttemptAt: dueAt, counts: null };
  }
  const pause = schedule[tries - (extraTries ?? 0) - 1];
  if (pause === undefined) {
    return { status: 'failed', tries, extraTries, nextAttemptAt: null, counts: 'failed' };
  }
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
 * Until when a receiver that answered 429 or 503 wants to be left alone, by its `Retry-After`.
 * @param value the header as it came
 * @param at now, epoch milliseconds
 * @returns epoch milliseconds, a day ahead at most; null if it asks for no pause: 0, a time that has
 * passed, or anything that is neither whole seconds nor a date of HTTP
 */
export const pauseUntil = (value: string | undefined, at: number): number | null => {
  const until = untilOf(value?.trim() ?? '', at);
  return until > at ? Math.min(until, at + LONGEST_MS) : null;
};
