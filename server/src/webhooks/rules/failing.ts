import type { HealthState } from '../../../../shared/contracts/webhooks';
import { HOUR_MS } from '../../runtime/text';

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
  /** The receiver answered 410: it is gone permanently. */
  isGone?: boolean;
  /** Epoch milliseconds. */
  at: number;
}

interface SwitchOffLimits {
  /** Deliveries in a row that may end `failed`. */
  failures: number;
  /** How long no attempt may succeed, in hours; fractions are allowed. */
  failingHours: number;
}

/** A webhook with few deliveries is not switched off for a bad day: this many attempts must have failed. */
const LEAST_FAILED_ATTEMPTS = 20;

const hours = (count: number): string => `${count} ${count === 1 ? 'hour' : 'hours'}`;

/** Continues counting in the order of attempts, and says why to deactivate. docs/contract-webhooks.md#switching-off */
export const continueFailing = (
  before: Failing,
  attempts: readonly CountedAttempt[],
  limits: SwitchOffLimits
): { after: Failing; reason: string | null } => {
  let { consecutiveFailures, failedAttempts, failingSince } = before;
  let tooMany = false;
  let tooLong = false;
  for (const { ok, ended, at } of attempts) {
    if (ended !== null) consecutiveFailures = ended === 'sent' ? 0 : consecutiveFailures + 1;
    tooMany ||= ended === 'failed' && consecutiveFailures >= limits.failures;
    failedAttempts = ok ? 0 : failedAttempts + 1;
    failingSince = ok ? null : (failingSince ?? at);
    tooLong ||=
      failingSince !== null &&
      failedAttempts >= LEAST_FAILED_ATTEMPTS &&
      at - failingSince >= limits.failingHours * HOUR_MS;
  }
  const after = { consecutiveFailures, failedAttempts, failingSince };
  let reason: string | null = null;
  if (attempts.some(({ isGone }) => isGone))
    reason = 'because its receiver answered 410: it is gone';
  else if (tooMany) reason = `after ${limits.failures} failed deliveries in a row`;
  else if (tooLong) reason = `because no attempt succeeded for ${hours(limits.failingHours)}`;
  return { after, reason: reason && `Switched off ${reason}.` };
};

/** A webhook's spell of failures; tests never count. */
export interface Spell {
  attempted: boolean;
  /** When the first attempt after the last success failed, epoch milliseconds; null: the last one succeeded. */
  unwellSince: number | null;
}

/** Goes on with a spell, in the order of the attempts. Switching a webhook off and on is no attempt. */
export const continueSpell = (before: Spell, attempts: readonly { ok: boolean; at: number }[]) => {
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
