import type { HealthState } from '../../../../shared/contracts/webhooks';
import { HOUR_MS } from '../../runtime/text';

interface FailureRun {
  /** Deliveries in a row that ended failed. */
  count: number;
  /** The run reached the threshold at some point of the sequence. */
  tripped: boolean;
}

/**
 * Goes on counting deliveries that ended `failed` in a row; a `sent` one starts over. Deliveries,
 * not tries: each delivery is handed in once, when it ends. docs/contract-webhooks.md#switching-off.
 */
export const continueRun = (
  count: number,
  outcomes: readonly ('sent' | 'failed')[],
  threshold: number
): FailureRun => {
  let run = count;
  let tripped = false;
  for (const outcome of outcomes) {
    run = outcome === 'sent' ? 0 : run + 1;
    if (outcome === 'failed' && run >= threshold) tripped = true;
  }
  return { count: run, tripped };
};

/** A webhook row's record of how its attempts went. */
export interface Failing {
  /** Deliveries in a row that ended `failed`. */
  consecutiveFailures: number;
  /** Attempts that failed since the last one that succeeded. */
  failedAttempts: number;
  /** When the first of those ended, epoch milliseconds; null: the last attempt succeeded. */
  failingSince: number | null;
}

/** An attempt of a real delivery; tests never count. */
export interface CountedAttempt {
  ok: boolean;
  /** The delivery's final status, if the attempt ended it. */
  ended: 'sent' | 'failed' | null;
  /** The receiver said that it is gone for good. */
  isGone?: boolean;
  /** Epoch milliseconds. */
  at: number;
}

export interface SwitchOffLimits {
  /** Deliveries in a row that may end `failed`. */
  failures: number;
  /** How long no attempt may succeed, in hours; fractions are allowed. */
  failingHours: number;
}

/** A webhook that is asked for little is not switched off for a bad day: so many attempts must have failed. */
const LEAST_FAILED_ATTEMPTS = 20;

const hours = (count: number): string => `${count} ${count === 1 ? 'hour' : 'hours'}`;

/**
 * Goes on counting, in the order of the attempts. docs/contract-webhooks.md#switching-off.
 * @returns the new counts, and why the webhook is to be switched off where it is.
 */
export const continueFailing = (
  before: Failing,
  attempts: readonly CountedAttempt[],
  limits: SwitchOffLimits
): { after: Failing; reason: string | null } => {
  const run = continueRun(
    before.consecutiveFailures,
    attempts.flatMap(({ ended }) => ended ?? []),
    limits.failures
  );
  let { failedAttempts, failingSince } = before;
  let tooLong = false;
  for (const { ok, at } of attempts) {
    failedAttempts = ok ? 0 : failedAttempts + 1;
    failingSince = ok ? null : (failingSince ?? at);
    tooLong ||=
      failingSince !== null &&
      failedAttempts >= LEAST_FAILED_ATTEMPTS &&
      at - failingSince >= limits.failingHours * HOUR_MS;
  }
  const after = { consecutiveFailures: run.count, failedAttempts, failingSince };
  if (attempts.some(({ isGone }) => isGone)) {
    return { after, reason: 'Switched off because its receiver answered 410: it is gone.' };
  }
  if (run.tripped) {
    return {
      after,
      reason: `Switched off after ${limits.failures} failed deliveries in a row.`,
    };
  }
  return {
    after,
    reason: tooLong
      ? `Switched off because no attempt succeeded for ${hours(limits.failingHours)}.`
      : null,
  };
};

/** A webhook's spell of failures; tests never count. */
export interface Spell {
  /** An attempt was made. */
  attempted: boolean;
  /** When the first attempt after the last success failed, epoch milliseconds; null: the last one succeeded. */
  unwellSince: number | null;
}

/** Goes on with a spell, in the order of the attempts. Switching a webhook off and on is no attempt. */
export const continueSpell = (
  before: Spell,
  attempts: readonly { ok: boolean; at: number }[]
): Spell => {
  let { unwellSince } = before;
  for (const { ok, at } of attempts) unwellSince = ok ? null : (unwellSince ?? at);
  return { attempted: before.attempted || attempts.length > 0, unwellSince };
};

/** docs/contract-webhooks.md#health */
export const healthState = (
  active: boolean,
  { attempted, unwellSince }: Spell,
  isPaused = false
): HealthState => {
  if (!active) return 'off';
  if (isPaused) return 'paused';
  if (unwellSince !== null) return 'failing';
  return attempted ? 'healthy' : 'new';
};
