import { inParts } from '../../database/connection';
import type { RowUpdate } from '../../database/dialects/shared';
import { isInfrastructureFault } from '../../database/retry';
import { findInChunks } from '../../database/written-rows';
import { debugEach, isoTimeOrNull, logFailure } from '../../runtime/text';
import { nextTurn } from '../../runtime/event-loop';
import { OPERATIONAL_EVENTS } from '../catalogue';
import { recordedLine, switchedOffLine } from '../debug-lines';
import { bytesOfAttempt } from '../deliveries/attempts';
import { getDeliveryStore, type LeasedDelivery } from '../deliveries/store';
import { addToRollups } from '../figures/rollups';
import { continueFailing, continueSpell } from '../rules/failing';
import { afterAttempt, afterPause, type NextState, pauseUntil } from '../rules/delivery-state';
import { type WebhookRow, WEBHOOKS_TABLE } from '../tables';
import { type Alarm, alarmOf, announceAlarm, publishAlarms, switchOff } from '../alarms';
import { answeredSinceRotation, spellOf, toWebhook } from '../webhook';
import type { AttemptResult } from './send';
import type { App } from '../../app';
import type { Db, Tx } from '../../database/db';

/** An attempt that was made under a lease, to be recorded. */
export interface MadeAttempt extends AttemptResult {
  lease: LeasedDelivery;
  webhook: WebhookRow;
}

/** True if an attempt was made to the webhook's present address (anybody may write it), and since it was switched on. */
const countsFor = (
  webhook: Pick<WebhookRow, 'url' | 'activation'>,
  { webhook: attempted }: MadeAttempt
): boolean =>
  webhook.url === attempted.url &&
  Number(webhook.activation ?? 0) === Number(attempted.activation ?? 0);

const toAnswered = (one: MadeAttempt) => {
  const { attempt, endedAt, retryAfter } = one;
  const mayPause = attempt.status === 429 || attempt.status === 503;
  return {
    /** The end of the pause that the receiver asked for, epoch milliseconds; null: it asked for none. */
    pauseUntil: mayPause ? pauseUntil(retryAfter, endedAt) : null,
    isGone: attempt.status === 410,
    ...one,
  };
};

/** An attempt with what its receiver asked for, before it is known what comes next. */
type AnsweredAttempt = ReturnType<typeof toAnswered>;

/** An attempt that is in the log, with what it made of its delivery. */
export type RecordedAttempt = AnsweredAttempt & { next: NextState };

/** Attempts with requested pauses; none if the answer no longer counts for its webhook. */
const readAnswers = async (db: Db, made: readonly MadeAttempt[]): Promise<AnsweredAttempt[]> => {
  const answered = made.map(toAnswered);
  const asking = answered.filter(({ isGone, pauseUntil: until }) => isGone || until !== null);
  if (asking.length === 0) return answered;
  const rows = await findInChunks<Pick<WebhookRow, 'id' | 'url' | 'activation'>>(
    asking.map(({ webhook }) => Number(webhook.id)),
    (ids) => db.table(WEBHOOKS_TABLE).select('id', 'url', 'activation').whereIn('id', ids)
  );
  const byId = new Map(rows.map((row) => [Number(row.id), row]));
  for (const one of asking) {
    const now = byId.get(Number(one.webhook.id));
    if (now && !countsFor(now, one)) Object.assign(one, { pauseUntil: null, isGone: false });
  }
  return answered;
};

const nextState = (one: AnsweredAttempt, schedule: readonly number[]): NextState => {
  const { attempt, endedAt, isGone, lease, ok, pauseUntil: until } = one;
  const { delivery } = lease;
  if (delivery.isTest) return { ...afterAttempt(delivery, ok, [], endedAt), counts: null };
  const paused = until === null ? null : afterPause(delivery, until, endedAt);
  if (paused) return paused;
  if (isGone) return afterAttempt(delivery, ok, [], endedAt);
  // A manual resend moved it forward: its place in the schedule stays.
  const isAhead = attempt.manual || lease.dueAt < (delivery.nextAttemptAt ?? 0);
  const dueAt = isAhead ? delivery.nextAttemptAt : null;
  return afterAttempt(delivery, ok, schedule, endedAt, dueAt);
};

/** True if an attempt that was answered 2xx is still to be noted of its webhook, as the attempt read it. */
const isUnnoted = ({ ok, webhook }: MadeAttempt): boolean =>
  ok && answeredSinceRotation(webhook) === false;

/**
 * Locks webhooks that attempts change, until the transaction ends: those with a failure or something to note, and those
 * with only successes if that is news. So addresses and activation cannot change before the result is written. Returns
 * them by id, which prevents deadlocks.
 */
const lockWebhooks = async (tx: Tx, made: readonly MadeAttempt[]): Promise<WebhookRow[]> => {
  const isNews = (one: MadeAttempt): boolean =>
    one.ok ? isUnnoted(one) : !one.lease.delivery.isTest;
  const webhooksOf = (some: readonly MadeAttempt[]) => [
    ...new Set(some.map(({ lease }) => lease.delivery.webhook)),
  ];
  const ids = webhooksOf(made.filter((one) => isNews(one) || !one.lease.delivery.isTest));
  if (ids.length === 0) return [];
  const any = tx.dialect.anyOf('id', ids);
  const news = tx.dialect.anyOf('id', webhooksOf(made.filter(isNews)));
  return tx.rows(
    `SELECT * FROM ${tx.named(WEBHOOKS_TABLE)} WHERE ${any.sql} AND (${news.sql}
       OR consecutive_failures <> 0 OR failed_attempts > 0 OR attempted IS NULL
       OR unwell_since IS NOT NULL OR alarmed_at IS NOT NULL) ORDER BY id${tx.forUpdate}`,
    [...any.bindings, ...news.bindings]
  );
};

/** Attempts that count, as figures and webhooks have them: neither tests nor pauses. */
const counted = (recorded: readonly RecordedAttempt[]) =>
  recorded
    .filter(({ lease, next }) => !lease.delivery.isTest && !next.pausedMs)
    .map(({ attempt, endedAt, isGone, lease: { delivery }, next, ok }) => ({
      webhookId: delivery.webhook,
      at: endedAt,
      ok,
      ended: next.counts,
      answeredIn: attempt.status === null ? null : attempt.duration_ms,
      isGone,
      cause: attempt.error,
      isAlarm: Object.hasOwn(OPERATIONAL_EVENTS, delivery.event),
    }));

const numberOrNull = (stored: number | string | null) => (stored === null ? null : Number(stored));

/** A webhook's columns after further attempts; the reason to switch it off, the alarm and the pause, null for none. */
const judge = (app: App, before: WebhookRow, own: readonly RecordedAttempt[]) => {
  const { disableAfterFailures, disableAfterFailingHours } = app.options.webhooks;
  const limits = { failures: disableAfterFailures, failingHours: disableAfterFailingHours };
  const attempts = counted(own);
  const { unwellSince } = continueSpell(spellOf(before), attempts);
  const failing = {
    consecutiveFailures: Number(before.consecutive_failures ?? 0),
    failedAttempts: Number(before.failed_attempts ?? 0),
    failingSince: numberOrNull(before.failing_since),
  };
  const { after, reason } = continueFailing(failing, attempts, limits);
  const alarm = alarmOf(numberOrNull(before.alarmed_at), unwellSince, attempts);
  const alarmedAt = alarm?.kind === 'failing' ? app.clock.now() : null;
  const requested = own.flatMap(({ lease, pauseUntil: until }) =>
    lease.delivery.isTest ? [] : (until ?? [])
  );
  const pause = requested.length > 0 ? Math.max(...requested) : null;
  const rotation = numberOrNull(before.previous_secret_until);
  // Tests count: they are how new secrets are tested. An attempt says nothing about a rotation after it.
  const isAnswered = own.some(
    (one) => isUnnoted(one) && numberOrNull(one.webhook.previous_secret_until) === rotation
  );
  const set = {
    consecutive_failures: after.consecutiveFailures,
    failed_attempts: after.failedAttempts,
    failing_since: after.failingSince,
    attempted: attempts.length > 0 || before.attempted,
    unwell_since: unwellSince,
    alarmed_at: alarm ? alarmedAt : numberOrNull(before.alarmed_at),
    // Only ever prolonged: answers may come in any order.
    paused_until: Math.max(Number(before.paused_until), pause ?? 0) || null,
    answered_rotation: isAnswered ? rotation : numberOrNull(before.answered_rotation),
  };
  return { set, reason, alarm, pause };
};

/**
 * Writes what attempts mean for their webhooks, in the recording transaction: each counts exactly once on any number of
 * nodes. Deactivates persistently failing ones. docs/contract-webhooks.md#switching-off and #health,
 * docs/receivers.md#asking-for-a-pause. Returns alarms, and the ends of requested pauses, by webhook.
 */
const updateWebhooks = async (app: App, tx: Tx, recorded: readonly RecordedAttempt[]) => {
  const alarms: Alarm[] = [];
  const pauses = new Map<number, number>();
  const updates: RowUpdate[] = [];
  const off: { row: WebhookRow; reason: string }[] = [];
  for (const before of await lockWebhooks(tx, recorded)) {
    const id = Number(before.id);
    const ofWebhook = recorded.filter(({ lease }) => lease.delivery.webhook === id);
    const own = ofWebhook.filter((one) => countsFor(before, one));
    if (own.length === 0) continue;
    const { set, reason, alarm, pause } = judge(app, before, own);
    updates.push({ id, set });
    if (pause !== null) pauses.set(id, pause);
    const row = { ...before, consecutive_failures: set.consecutive_failures };
    if (reason !== null && before.active) off.push({ row, reason });
    else if (alarm) alarms.push({ ...alarm, webhook: toWebhook(row) });
  }
  await tx.updateRows(WEBHOOKS_TABLE, updates);
  for (const { row, reason } of off) alarms.push(await switchOff(app, row, reason));
  return { alarms, pauses };
};

/** Records attempts in one transaction, each only while its lease holds. @returns those that were recorded */
const recordTogether = async (app: App, outcomes: readonly RecordedAttempt[]) => {
  const store = getDeliveryStore(app);
  const { recorded, alarms, pauses } = await app.db.retrying(async (tx) => {
    const held = await store.settle(tx, outcomes);
    const recorded = outcomes.filter(({ lease }) => held.has(lease.id));
    const changes = await updateWebhooks(app, tx, recorded);
    // Last, because other nodes that record for the same webhooks wait for these rows.
    await addToRollups(tx, counted(recorded));
    if (changes.alarms.length > 0) await publishAlarms(app, changes.alarms);
    return { recorded, ...changes };
  });
  pauses.forEach((until, webhook) => store.limits.notePause(webhook, until));
  debugEach(app.strapi, outcomes, (one) =>
    recordedLine(one.lease, one.next, recorded.includes(one))
  );
  const switchedOff = alarms.filter(({ kind }) => kind === 'disabled');
  debugEach(app.strapi, switchedOff, ({ webhook }) => switchedOffLine(webhook));
  for (const one of alarms) announceAlarm(app, one);
  return recorded;
};

/** The part of an outcome that any database takes: that the attempt was made, and how it ended. */
const bare = (outcome: RecordedAttempt): RecordedAttempt => {
  const { attempt, webhook } = outcome;
  const cut = { answer_headers: '{}', answer_body: '', truncated: true };
  const own = { url: webhook.url, request_headers: '{}', ...(attempt.status !== null && cut) };
  return { ...outcome, attempt: { ...attempt, ...own } };
};

type OnRecorded = (recorded: readonly RecordedAttempt[]) => Promise<void>;

/**
 * Splits a failing batch until one refused row is left, which is recorded without its answer: it must not cost other
 * rows their outcomes. `refused` is why the database refused the answer.
 */
const recordSplitting = async (
  app: App,
  outcomes: readonly RecordedAttempt[],
  onRecorded: OnRecorded,
  refused?: { error: unknown }
): Promise<void> => {
  const [first] = outcomes;
  const which = `the outcome of delivery ${first?.lease.delivery.deliveryId}`;
  try {
    await onRecorded(await recordTogether(app, outcomes));
    if (!refused) return;
    const without = `${which} was recorded without the answer, which the database refused`;
    logFailure(app, without, 'warn')(refused.error);
  } catch (error) {
    if (isInfrastructureFault(error)) throw error;
    if (refused) {
      logFailure(app, `${which} could not be recorded`)(error);
    } else if (first && outcomes.length === 1) {
      await recordSplitting(app, [bare(first)], onRecorded, { error });
    } else {
      const half = Math.ceil(outcomes.length / 2);
      for (const part of [outcomes.slice(0, half), outcomes.slice(half)]) {
        await nextTurn();
        await recordSplitting(app, part, onRecorded);
      }
    }
  }
};

/**
 * Records attempts whose lease holds, and in the same transaction their meaning for webhooks, in bounded parts.
 * @param onRecorded gets recorded ones, part by part; a lost lease records nothing
 * @throws if the database is unreachable; recorded parts stay recorded when it is called again
 */
export const recordAttempts = async (
  app: App,
  made: readonly MadeAttempt[],
  onRecorded: OnRecorded
): Promise<void> => {
  const { retryScheduleSeconds } = app.options.webhooks;
  const db = await app.db.current();
  const { batch, largest } = await db.statementSize();
  const outcomes = (await readAnswers(db, made)).map((one) => {
    const outcome = { next: nextState(one, retryScheduleSeconds), ...one };
    return bytesOfAttempt(outcome.attempt) * 2 > largest ? bare(outcome) : outcome;
  });
  const limits = { count: outcomes.length, bytes: batch };
  for (const part of inParts(outcomes, limits, ({ attempt }) => bytesOfAttempt(attempt))) {
    await recordSplitting(app, part, onRecorded);
    await nextTurn();
  }
};

/** Runs `service_crm_webhook_delivered` for recorded attempts, side by side: a slow handler delays no others. */
export const tellDelivered = async (app: App, recorded: readonly RecordedAttempt[]) => {
  const hook = app.hooks.get('service_crm_webhook_delivered');
  if (hook.getHandlers().length === 0) return;
  const tell = ({ attempt, lease, next, ok, webhook }: RecordedAttempt) =>
    hook.call({
      delivery_id: lease.delivery.deliveryId,
      webhook: toWebhook(webhook),
      result: {
        ok,
        event: lease.delivery.event,
        status: next.status,
        tries: next.tries,
        response_code: attempt.status,
        error: attempt.error,
        duration_ms: attempt.duration_ms,
        next_attempt_at: isoTimeOrNull(next.nextAttemptAt),
      },
    });
  await Promise.all(recorded.map(tell));
};
