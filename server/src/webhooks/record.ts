import type { Core } from '@strapi/strapi';
import type { Attempt } from '../../../shared/contracts/webhooks';
import { getOptions } from '../config';
import { inTransaction } from '../database/connection';
import { withTransientRetry } from '../database/retry';
import { getHook } from '../hooks';
import { isoTimeOrNull } from '../iso-time';
import type { Claimed, Settlement } from '../queue/types';
import { getOutbox } from './outbox';
import { afterAttempt, type NextState } from './rules/transition';
import type { AttemptResult } from './sender';
import { attemptsOf, toWebhook } from './serialize';
import { countEndings, announceSwitchOff, type Ending } from './switch-off';
import type { DeliveryRow, WebhookRow } from './tables';

/** An attempt that was made under a lease and is to be recorded. */
export interface MadeAttempt {
  claimed: Claimed;
  webhook: WebhookRow;
  result: AttemptResult;
}

/** An attempt that is in the log, and what it made of its delivery. */
export interface RecordedAttempt {
  made: MadeAttempt;
  next: NextState;
}

/** Sends by hand are without number; the log keeps the first tries of the schedule and the last. */
const ATTEMPTS_KEPT = 20;

const keep = (attempts: Attempt[]): Attempt[] =>
  attempts.length <= ATTEMPTS_KEPT
    ? attempts
    : [...attempts.slice(0, 7), ...attempts.slice(7 - ATTEMPTS_KEPT)];

const deliveryOf = (claimed: Claimed): DeliveryRow => claimed.row as unknown as DeliveryRow;

const nextState = (made: MadeAttempt, schedule: readonly number[]): NextState => {
  const row = deliveryOf(made.claimed);
  const test = Boolean(row.is_test);
  const state = afterAttempt(
    { status: row.status, tries: Number(row.tries) },
    made.result.ok,
    // A test is never retried.
    test ? [] : schedule,
    made.result.endedAt
  );
  return test ? { ...state, counts: null } : state;
};

const settlementOf = (made: MadeAttempt, next: NextState): Settlement => {
  const row = deliveryOf(made.claimed);
  return {
    id: made.claimed.id,
    owner: made.claimed.owner,
    dueAt: next.nextAttemptAt,
    columns: {
      status: next.status,
      tries: next.tries,
      next_attempt_at: next.nextAttemptAt,
      finished_at: next.nextAttemptAt === null ? made.result.endedAt : null,
      error: made.result.attempt.error,
      attempts: JSON.stringify(keep([...attemptsOf(row), made.result.attempt])),
    },
  };
};

const tell = async (strapi: Core.Strapi, { made, next }: RecordedAttempt): Promise<void> => {
  const hook = getHook(strapi, 'service_crm_webhook_delivered');
  if (hook.getHandlers().length === 0) return;
  const row = deliveryOf(made.claimed);
  await hook.call({
    delivery_id: row.delivery_id,
    webhook: toWebhook(made.webhook),
    result: {
      ok: made.result.ok,
      event: row.event,
      status: next.status,
      tries: next.tries,
      response_code: made.result.attempt.answer?.status ?? null,
      error: made.result.attempt.error,
      duration_ms: made.result.attempt.duration_ms,
      next_attempt_at: isoTimeOrNull(next.nextAttemptAt),
    },
  });
};

/**
 * Runs `service_crm_webhook_delivered` for attempts that were recorded; side by side, because one
 * handler that is slow about one delivery need not keep the others waiting.
 */
export const tellDelivered = async (
  strapi: Core.Strapi,
  recorded: readonly RecordedAttempt[]
): Promise<void> => {
  await Promise.all(recorded.map((one) => tell(strapi, one)));
};

/**
 * Records attempts, all in one transaction: each delivery's new state while its lease still holds,
 * and what the ended ones mean for their webhooks.
 * @returns those that were recorded; a lost lease records nothing.
 */
export const recordAttempts = async (
  strapi: Core.Strapi,
  made: readonly MadeAttempt[]
): Promise<RecordedAttempt[]> => {
  const { retryScheduleSeconds, disableAfterFailures } = getOptions(strapi).webhooks;
  const states = made.map((one) => ({ made: one, next: nextState(one, retryScheduleSeconds) }));
  const { recorded, switchedOff } = await withTransientRetry(() =>
    inTransaction(strapi, async ({ trx }) => {
      const held = await getOutbox(strapi).queue.settle(
        trx,
        states.map(({ made: one, next }) => settlementOf(one, next))
      );
      const endings: Ending[] = states
        .filter(({ made: one, next }) => held.has(one.claimed.id) && next.counts !== null)
        .map(({ made: one, next }) => ({
          webhookId: one.claimed.group,
          outcome: next.counts as Ending['outcome'],
        }));
      const off = await countEndings(strapi, trx, endings, disableAfterFailures);
      return { recorded: held, switchedOff: off };
    })
  );
  for (const webhook of switchedOff) announceSwitchOff(strapi, webhook);
  return states.filter(({ made: one }) => recorded.has(one.claimed.id));
};
