import type { Attempt } from '../../../../shared/contracts/webhooks';
import { isInfrastructureFault, withTransientRetry } from '../../database/retry';
import { debugEach, errorText, isoTimeOrNull } from '../../runtime/text';
import { nextTurn, TimeSlice } from '../../runtime/event-loop';
import { OPERATIONAL_EVENTS } from '../catalogue';
import { recordedLine, switchedOffLine } from '../debug-lines';
import { bytesOfAttempt } from '../deliveries/attempts';
import { pauseWebhooks } from '../deliveries/limits';
import { type DeliveryOutcome, getDeliveryStore, type LeasedDelivery } from '../deliveries/store';
import { addToRollups, type RolledAttempt } from '../figures/rollups';
import { afterAttempt, afterPause, type NextState, pauseUntil } from '../rules/delivery-state';
import { type WebhookRow, WEBHOOKS_TABLE } from '../tables';
import { announceTurn, publishTurns } from '../turns';
import { answeredSinceRotation, toWebhook } from '../webhook';
import type { AttemptResult } from './send';
import { countAttempts, type WebhookAttempt } from './switch-off';
import type { App } from '../../app';
import type { Db, Tx } from '../../database/db';

/**
 * Has a webhook begin anew that was switched on or given another address, in the transaction that does
 * so: its pause ends, and attempts that were made before say nothing of it any more.
 */
export const beginActivation = async (app: App, id: number): Promise<void> => {
  const db = await app.db.current();
  await db
    .table(WEBHOOKS_TABLE)
    .where({ id })
    .update({ paused_until: null, activation: db.raw('COALESCE(activation, 0) + 1') });
};

type Known = Pick<WebhookRow, 'url' | 'activation'>;

/**
 * Whether an attempt counts for a webhook: only where it was made to the address that it has, and since it
 * was switched on. The address is compared, too, because somebody else may have written it.
 */
const countsFor = (webhook: Known, attempted: Known): boolean =>
  webhook.url === attempted.url &&
  Number(webhook.activation ?? 0) === Number(attempted.activation ?? 0);

/** Those of some attempts that count no more: their webhooks have another address, or were switched on since. */
const outdatedOf = async <T extends { webhook: WebhookRow }>(
  app: App,
  attempts: readonly T[]
): Promise<ReadonlySet<T>> => {
  if (attempts.length === 0) return new Set();
  const ids = [...new Set(attempts.map(({ webhook }) => Number(webhook.id)))];
  const db = await app.db.current();
  const rows = (await db
    .table(WEBHOOKS_TABLE)
    .select('id', 'url', 'activation')
    .whereIn('id', ids)) as Pick<WebhookRow, 'id' | 'url' | 'activation'>[];
  const current = new Map(rows.map((row) => [Number(row.id), row]));
  return new Set(
    attempts.filter(({ webhook }) => {
      const now = current.get(Number(webhook.id));
      return now !== undefined && !countsFor(now, webhook);
    })
  );
};

/**
 * Locks the webhooks that attempts change, until the transaction ends: those that are named in any case,
 * and those whose attempts all succeeded only where that is news. So nobody changes their addresses or
 * switches them on between the judgement and what is written.
 * @returns them by their ids, in the order of those: two nodes must not wait for each other
 */
const lockWebhooks = async (
  tx: Tx,
  changed: readonly number[],
  well: readonly number[]
): Promise<Map<number, WebhookRow>> => {
  if (changed.length + well.length === 0) return new Map();
  const rows = (await tx
    .table(WEBHOOKS_TABLE)
    .whereIn('id', [...new Set([...changed, ...well])])
    .andWhere((any) => {
      any
        .whereIn('id', [...changed])
        .orWhere('consecutive_failures', '<>', 0)
        .orWhere('failed_attempts', '>', 0)
        .orWhereNotNull('unwell_since')
        .orWhereNotNull('alarmed_at')
        .orWhereNull('attempted');
    })
    .orderBy('id')
    .forUpdate()) as WebhookRow[];
  return new Map(rows.map((row) => [Number(row.id), row]));
};

/** Whether an attempt that was answered 2xx is still to be noted of its webhook, as the attempt read it. */
const isUnnoted = (row: WebhookRow): boolean => answeredSinceRotation(row) === false;

/**
 * Notes of webhooks, as their attempts read them, that one was answered 2xx since the rotation whose
 * overlap is under way; tests count, for they are how somebody tries the new secret. Once a rotation: the
 * next attempts read that it is noted.
 */
const noteAnsweredRotations = async (db: Db, answered: readonly WebhookRow[]): Promise<void> => {
  const unnoted = answered.filter(isUnnoted);
  // In the order of ids, as all that locks several webhooks.
  const rotations = [...new Map(unnoted.map((row) => [Number(row.id), row])).values()].sort(
    (a, b) => Number(a.id) - Number(b.id)
  );
  for (const { id, previous_secret_until: until } of rotations) {
    await db
      .table(WEBHOOKS_TABLE)
      // Of a rotation that came meanwhile the attempt says nothing.
      .where({ id, previous_secret_until: until })
      .update({ answered_rotation: until });
  }
};

/** An attempt that was made under a lease and is to be recorded. */
export interface MadeAttempt {
  lease: LeasedDelivery;
  webhook: WebhookRow;
  result: AttemptResult;
}

/** An attempt that is in the log, and what it made of its delivery. */
export interface RecordedAttempt {
  made: MadeAttempt;
  next: NextState;
}

/** Until when the receiver asked to be left alone, epoch milliseconds; null: it did not. */
const askedUntil = ({ attempt: { answer }, endedAt }: AttemptResult): number | null =>
  answer?.status === 429 || answer?.status === 503
    ? pauseUntil(answer.headers['retry-after'], endedAt)
    : null;

const isGone = ({ attempt: { answer } }: AttemptResult): boolean => answer?.status === 410;

/** @param isOutdated what the receiver asks for is nothing that the webhook's address has said */
const nextState = (
  { lease: { delivery, dueAt: broughtTo }, result }: MadeAttempt,
  schedule: readonly number[],
  isOutdated: boolean
): NextState => {
  const { ok, endedAt } = result;
  // A test is never retried, and counts for nothing.
  if (delivery.isTest) return { ...afterAttempt(delivery, ok, [], endedAt), counts: null };
  const until = isOutdated ? null : askedUntil(result);
  const paused = until === null ? null : afterPause(delivery, until, endedAt);
  if (paused) return paused;
  if (isGone(result) && !isOutdated) return afterAttempt(delivery, ok, [], endedAt);
  // Somebody made it due before its time: what it has of its schedule stays.
  const isAhead = result.attempt.manual || broughtTo < (delivery.nextAttemptAt ?? 0);
  const dueAt = isAhead ? delivery.nextAttemptAt : null;
  return afterAttempt(delivery, ok, schedule, endedAt, dueAt);
};

const tell = async (app: App, { made, next }: RecordedAttempt): Promise<void> => {
  const hook = app.hooks.get('service_crm_webhook_delivered');
  if (hook.getHandlers().length === 0) return;
  const { delivery } = made.lease;
  await hook.call({
    delivery_id: delivery.deliveryId,
    webhook: toWebhook(made.webhook),
    result: {
      ok: made.result.ok,
      event: delivery.event,
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
  app: App,
  recorded: readonly RecordedAttempt[]
): Promise<void> => {
  await Promise.all(recorded.map((one) => tell(app, one)));
};

interface Outcome extends RecordedAttempt {
  /** As the log will have it. */
  attempt: Attempt;
}

/** What is left where the database does not take it as it is: that the attempt was made, and how it ended. */
const bare = (outcome: Outcome): Outcome => {
  const { made, attempt } = outcome;
  const answer = attempt.answer && { ...attempt.answer, headers: {}, body: '', truncated: true };
  const request = { url: made.webhook.url, headers: {} };
  return { ...outcome, attempt: { ...attempt, request, answer } };
};

const toStored = ({ made, next, attempt }: Outcome): DeliveryOutcome => ({
  lease: made.lease,
  next,
  attempt,
  endedAt: made.result.endedAt,
});

const toCounted = ({
  made: { lease, result },
  next,
  attempt,
}: Outcome): RolledAttempt & WebhookAttempt => ({
  webhookId: lease.delivery.webhook,
  at: result.endedAt,
  ok: result.ok,
  ended: next.counts,
  answeredIn: attempt.answer && attempt.duration_ms,
  isGone: isGone(result),
  cause: attempt.error,
  isAlarm: Object.hasOwn(OPERATIONAL_EVENTS, lease.delivery.event),
});

/** Until when each webhook is to be left alone whose receiver asked for it. */
const pausesOf = (outcomes: readonly Outcome[]): Map<number, number> => {
  const pauses = new Map<number, number>();
  for (const { made } of outcomes) {
    const until = made.lease.delivery.isTest ? null : askedUntil(made.result);
    const known = pauses.get(made.lease.delivery.webhook) ?? 0;
    if (until !== null) pauses.set(made.lease.delivery.webhook, Math.max(known, until));
  }
  return pauses;
};

/** A test never counts, nor does an attempt that was answered by a pause. */
const isCounted = ({ made, next }: Outcome): boolean =>
  !made.lease.delivery.isTest && !next.pausedMs;

/** The webhooks for which these attempts change something, locked. */
const lockWebhooksOf = (tx: Tx, outcomes: readonly Outcome[]): Promise<Map<number, WebhookRow>> => {
  const attempts = outcomes.filter(({ made }) => !made.lease.delivery.isTest);
  const groups = (some: readonly Outcome[]): number[] =>
    some.map(({ made }) => made.lease.delivery.webhook);
  const isNoted = ({ made }: Outcome): boolean => made.result.ok && isUnnoted(made.webhook);
  return lockWebhooks(
    tx,
    [
      ...groups(attempts.filter(({ made }) => !made.result.ok)),
      ...groups(outcomes.filter(isNoted)),
    ],
    groups(attempts)
  );
};

const recordTogether = async (
  app: App,
  outcomes: readonly Outcome[]
): Promise<RecordedAttempt[]> => {
  const { disableAfterFailures, disableAfterFailingHours } = app.options.webhooks;
  const limits = { failures: disableAfterFailures, failingHours: disableAfterFailingHours };
  const { recorded, turned, pauses } = await withTransientRetry(() =>
    app.db.transaction(async (tx) => {
      const held = await getDeliveryStore(app).settle(tx, outcomes.map(toStored));
      const recorded = outcomes.filter(({ made: { lease } }) => held.has(lease.id));
      const locked = await lockWebhooksOf(tx, recorded);
      const current = recorded.filter(({ made }) => {
        const webhook = locked.get(made.lease.delivery.webhook);
        return !webhook || countsFor(webhook, made.webhook);
      });
      const pauses = pausesOf(current);
      await pauseWebhooks(tx, pauses);
      await noteAnsweredRotations(
        tx,
        current.filter(({ made }) => made.result.ok).map(({ made }) => made.webhook)
      );
      const counted = current.filter(isCounted).map(toCounted);
      const turned = await countAttempts(tx, app, counted, locked, limits);
      // Last, because other nodes that record for the same webhooks wait for these rows.
      await addToRollups(tx, recorded.filter(isCounted).map(toCounted));
      await publishTurns(app, turned);
      return { recorded: held, turned, pauses };
    })
  );
  pauses.forEach((until, webhook) => getDeliveryStore(app).limits.notePause(webhook, until));
  debugEach(app.strapi, outcomes, ({ made: { lease }, next }) =>
    recordedLine(lease, next, recorded.has(lease.id))
  );
  const switchedOff = turned.filter(({ turn }) => turn === 'disabled');
  debugEach(app.strapi, switchedOff, ({ webhook }) => switchedOffLine(webhook));
  for (const one of turned) announceTurn(app, one);
  return outcomes.filter(({ made }) => recorded.has(made.lease.id));
};

type Told = (recorded: readonly RecordedAttempt[]) => Promise<void>;

/** One row that the database refuses must not cost the others their outcomes. */
const recordSplitting = async (
  app: App,
  outcomes: readonly Outcome[],
  told: Told
): Promise<void> => {
  try {
    await told(await recordTogether(app, outcomes));
    return;
  } catch (error) {
    if (isInfrastructureFault(error)) throw error;
    if (outcomes.length === 1) {
      await recordBare(app, outcomes[0] as Outcome, told, error);
      return;
    }
  }
  const half = Math.ceil(outcomes.length / 2);
  for (const part of [outcomes.slice(0, half), outcomes.slice(half)]) {
    await nextTurn();
    await recordSplitting(app, part, told);
  }
};

const recordBare = async (
  app: App,
  outcome: Outcome,
  told: Told,
  refused: unknown
): Promise<void> => {
  const which = `the outcome of delivery ${outcome.made.lease.delivery.deliveryId}`;
  try {
    await told(await recordTogether(app, [bare(outcome)]));
    app.log.warn(
      `switchboard: ${which} was recorded without the answer, which the database refused: ${errorText(refused)}`
    );
  } catch (error) {
    if (isInfrastructureFault(error)) throw error;
    app.log.error(`switchboard: ${which} could not be recorded: ${errorText(error)}`);
  }
};

/**
 * Records attempts: each delivery's new state while its lease still holds, and, in the same
 * transaction, what it means for its webhook. In parts of bounded size; a part that fails is split
 * until the one bad row stands alone.
 * @param told is called with those that were recorded, part by part; a lost lease records nothing.
 * @throws where the database is away; what has been recorded by then stays so when it is called again.
 */
export const recordAttempts = async (
  app: App,
  made: readonly MadeAttempt[],
  told: Told
): Promise<void> => {
  const { retryScheduleSeconds } = app.options.webhooks;
  const { batch, largest } = await (await app.db.current()).statementSize();
  const asking = made.filter(({ result }) => isGone(result) || askedUntil(result) !== null);
  const outdated = await outdatedOf(app, asking);
  const slice = new TimeSlice();
  let part: Outcome[] = [];
  let bytes = 0;
  for (const one of made) {
    let outcome: Outcome = {
      made: one,
      next: nextState(one, retryScheduleSeconds, outdated.has(one)),
      attempt: one.result.attempt,
    };
    let size = bytesOfAttempt(outcome.attempt);
    if (size * 2 > largest) {
      outcome = bare(outcome);
      size = bytesOfAttempt(outcome.attempt);
    }
    if (part.length > 0 && bytes + size > batch) {
      await recordSplitting(app, part, told);
      part = [];
      bytes = 0;
    }
    part.push(outcome);
    bytes += size;
    if (slice.isOver()) await slice.next();
  }
  await recordSplitting(app, part, told);
};
