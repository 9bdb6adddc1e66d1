import type { Attempt } from '../../../../shared/contracts/webhooks';
import { inParts } from '../../database/connection';
import type { ColumnType, RowUpdate } from '../../database/dialects/shared';
import { isInfrastructureFault } from '../../database/retry';
import { documentsOf } from '../../database/tables/internal-types';
import { debugEach, errorText, isoTime, isoTimeOrNull } from '../../runtime/text';
import { nextTurn } from '../../runtime/event-loop';
import { OPERATIONAL_EVENTS } from '../catalogue';
import { recordedLine, switchedOffLine } from '../debug-lines';
import { bytesOfAttempt } from '../deliveries/attempts';
import { pauseWebhooks } from '../deliveries/limits';
import { getDeliveryStore, type LeasedDelivery } from '../deliveries/store';
import { addToRollups, type RolledAttempt } from '../figures/rollups';
import { continueFailing, continueSpell, type CountedAttempt } from '../rules/failing';
import { afterAttempt, afterPause, type NextState, pauseUntil } from '../rules/delivery-state';
import { WEBHOOK, type WebhookRow, WEBHOOKS_TABLE } from '../tables';
import { announceAlarm, publishAlarms, type Alarm } from '../alarms';
import { answeredSinceRotation, spellOf, toWebhook } from '../webhook';
import type { AttemptResult } from './send';
import type { App } from '../../app';
import type { Tx } from '../../database/db';

/**
 * Resets a webhook that was switched on or given another address, in the transaction that does so: its
 * pause ends, and earlier attempts say nothing of it any more.
 */
export const beginActivation = async (app: App, id: number): Promise<void> => {
  const db = await app.db.current();
  await db
    .table(WEBHOOKS_TABLE)
    .where({ id })
    .update({ paused_until: null, activation: db.raw('COALESCE(activation, 0) + 1') });
};

/**
 * True if an attempt counts for a webhook: only if it was made to its current address, and since it was
 * switched on. The address is compared, too, because somebody else may have written it.
 */
const countsFor = (
  webhook: Pick<WebhookRow, 'url' | 'activation'>,
  { webhook: attempted }: MadeAttempt
): boolean =>
  webhook.url === attempted.url &&
  Number(webhook.activation ?? 0) === Number(attempted.activation ?? 0);

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

interface Outcome extends RecordedAttempt {
  /** The id of its webhook. */
  webhook: number;
  /** A test is never retried, and counts for nothing. */
  isTest: boolean;
  /** As the log will have it. */
  attempt: Attempt;
}

/** Until when the receiver asked to be left alone, epoch milliseconds; null: it did not. */
const requestedPause = ({ attempt: { answer }, endedAt }: AttemptResult): number | null =>
  answer?.status === 429 || answer?.status === 503
    ? pauseUntil(answer.headers['retry-after'], endedAt)
    : null;

const isGone = ({ attempt: { answer } }: AttemptResult): boolean => answer?.status === 410;

/** Attempts whose webhooks have another address by now, or were switched on since. */
const outdatedOf = async (
  app: App,
  made: readonly MadeAttempt[]
): Promise<ReadonlySet<MadeAttempt>> => {
  const ids = [...new Set(made.map(({ webhook }) => Number(webhook.id)))];
  const db = await app.db.current();
  const rows = (await db
    .table(WEBHOOKS_TABLE)
    .select('id', 'url', 'activation')
    .whereIn('id', ids)) as Pick<WebhookRow, 'id' | 'url' | 'activation'>[];
  const byId = new Map(rows.map((row) => [Number(row.id), row]));
  return new Set(
    made.filter((one) => {
      const now = byId.get(Number(one.webhook.id));
      return now !== undefined && !countsFor(now, one);
    })
  );
};

/** @param isOutdated what the receiver asks for is nothing that the webhook's address has said */
const nextState = (
  { lease: { delivery, dueAt: broughtTo }, result }: MadeAttempt,
  schedule: readonly number[],
  isOutdated: boolean
): NextState => {
  const { ok, endedAt } = result;
  if (delivery.isTest) return { ...afterAttempt(delivery, ok, [], endedAt), counts: null };
  const until = isOutdated ? null : requestedPause(result);
  const paused = until === null ? null : afterPause(delivery, until, endedAt);
  if (paused) return paused;
  if (isGone(result) && !isOutdated) return afterAttempt(delivery, ok, [], endedAt);
  // Somebody made it due before its time: what it has of its schedule stays.
  const isAhead = result.attempt.manual || broughtTo < (delivery.nextAttemptAt ?? 0);
  const dueAt = isAhead ? delivery.nextAttemptAt : null;
  return afterAttempt(delivery, ok, schedule, endedAt, dueAt);
};

/** True if an attempt that was answered 2xx is still to be noted of its webhook, as the attempt read it. */
const isUnnoted = ({ result, webhook }: MadeAttempt): boolean =>
  result.ok && answeredSinceRotation(webhook) === false;

/**
 * Locks the webhooks that attempts change, until the transaction ends: those of which one failed or is to
 * be noted, and those whose attempts all succeeded only if that is news. So nobody changes their
 * addresses or switches them on between the judgement and what is written.
 * @returns them by their ids, in the order of those: two nodes must not wait for each other
 */
const lockWebhooks = async (
  tx: Tx,
  outcomes: readonly Outcome[]
): Promise<Map<number, WebhookRow>> => {
  const changed = new Set<number>();
  const ids = new Set<number>();
  for (const { made, isTest, webhook } of outcomes) {
    const isNews = made.result.ok ? isUnnoted(made) : !isTest;
    if (isNews) changed.add(webhook);
    if (isNews || !isTest) ids.add(webhook);
  }
  if (ids.size === 0) return new Map();
  const rows = (await tx
    .table(WEBHOOKS_TABLE)
    .whereIn('id', [...ids])
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

/** Notes the pauses that receivers asked for. @returns until when, by webhook */
const notePauses = async (tx: Tx, outcomes: readonly Outcome[]): Promise<Map<number, number>> => {
  const pauses = new Map<number, number>();
  for (const one of outcomes) {
    const until = one.isTest ? null : requestedPause(one.made.result);
    if (until !== null) pauses.set(one.webhook, Math.max(pauses.get(one.webhook) ?? 0, until));
  }
  await pauseWebhooks(tx, pauses);
  return pauses;
};

/**
 * Notes of webhooks, as their attempts read them, that one was answered 2xx since the rotation whose
 * overlap is under way; tests count, for they are how somebody tries the new secret. Once a rotation: the
 * next attempts read that it is noted.
 */
const noteAnsweredRotations = async (tx: Tx, outcomes: readonly Outcome[]): Promise<void> => {
  const unnoted = outcomes.filter(({ made }) => isUnnoted(made)).map(({ made }) => made.webhook);
  // In the order of ids, as all that locks several webhooks.
  const rotations = [...new Map(unnoted.map((row) => [Number(row.id), row])).values()].sort(
    (a, b) => Number(a.id) - Number(b.id)
  );
  for (const { id, previous_secret_until: until } of rotations) {
    await tx
      .table(WEBHOOKS_TABLE)
      // The attempt says nothing of a rotation that came meanwhile.
      .where({ id, previous_secret_until: until })
      .update({ answered_rotation: until });
  }
};

/** An attempt that counts, as figures and webhooks have it. */
type Counted = RolledAttempt &
  CountedAttempt & {
    /** Why it failed; null: it did not. */
    cause: string | null;
    /** It is an alarm about another webhook, such as `webhook.failing`. */
    isAlarm: boolean;
  };

/** Outcomes that count: neither tests nor pauses. */
const counted = (outcomes: readonly Outcome[]): Counted[] =>
  outcomes
    .filter((one) => !one.isTest && !one.next.pausedMs)
    .map(({ made: { lease, result }, next, attempt, webhook }) => ({
      webhookId: webhook,
      at: result.endedAt,
      ok: result.ok,
      ended: next.counts,
      answeredIn: attempt.answer && attempt.duration_ms,
      isGone: isGone(result),
      cause: attempt.error,
      isAlarm: Object.hasOwn(OPERATIONAL_EVENTS, lease.delivery.event),
    }));

/**
 * A receiver to which nothing but alarms succeeds is not taken for well before that: else two that fail
 * now and then would tell each other of it for ever.
 */
const ALARM_MS = 600_000;

/**
 * The alarm about a webhook after these attempts. Once a spell: the transaction that has locked the row
 * and finds it so reports it.
 */
const alarmOf = (
  { alarmed_at: alarmedAt }: WebhookRow,
  unwellSince: number | null,
  attempts: readonly Counted[]
): Pick<Alarm, 'kind' | 'reason'> | null => {
  if (unwellSince !== null) {
    if (alarmedAt !== null) return null;
    const cause = attempts.findLast(({ ok }) => !ok)?.cause ?? 'unknown';
    const reason = `Attempts fail since ${isoTime(unwellSince)}: ${cause}.`;
    return { kind: 'failing', reason };
  }
  const isOver = attempts.some(
    ({ ok, isAlarm, at }) => ok && (!isAlarm || at - Number(alarmedAt) >= ALARM_MS)
  );
  return alarmedAt !== null && isOver
    ? { kind: 'recovered', reason: 'Attempts succeed again.' }
    : null;
};

/** A webhook row's record of its attempts. */
const KEPT_COLUMNS = {
  ...{ consecutive_failures: 'integer', failed_attempts: 'integer', failing_since: 'bigint' },
  ...{ attempted: 'boolean', unwell_since: 'bigint', alarmed_at: 'bigint' },
} satisfies Record<string, ColumnType>;

/**
 * Goes on counting what fails of each webhook and switches off those that have failed too often or
 * for too long, within the transaction that records the attempts, so each counts exactly once on any
 * number of nodes. Keeps the webhooks' health, too. An attempt that succeeded writes nothing where the
 * one before did. docs/contract-webhooks.md#switching-off, docs/contract-webhooks.md#health.
 * @param locked the webhooks for which something changes, by their ids and in the order of those
 * @returns the webhooks that this call switched off, that fail from now on, and that do not any more.
 */
const countAttempts = async (
  app: App,
  tx: Tx,
  attempts: readonly Counted[],
  locked: ReadonlyMap<number, WebhookRow>
): Promise<Alarm[]> => {
  const { disableAfterFailures, disableAfterFailingHours } = app.options.webhooks;
  const limits = { failures: disableAfterFailures, failingHours: disableAfterFailingHours };
  const alarms: Alarm[] = [];
  const updates: RowUpdate[] = [];
  const off: { row: WebhookRow; reason: string }[] = [];
  for (const [id, before] of locked) {
    const own = attempts.filter(({ webhookId }) => webhookId === id);
    if (own.length === 0) continue;
    const { attempted, unwellSince } = continueSpell(spellOf(before), own);
    const { after, reason } = continueFailing(
      {
        consecutiveFailures: Number(before.consecutive_failures ?? 0),
        failedAttempts: Number(before.failed_attempts ?? 0),
        failingSince: before.failing_since === null ? null : Number(before.failing_since),
      },
      own,
      limits
    );
    const alarm = alarmOf(before, unwellSince, own);
    const alarmedAt = alarm
      ? alarm.kind === 'failing'
        ? app.clock.now()
        : null
      : before.alarmed_at;
    const kept = { consecutive_failures: after.consecutiveFailures, attempted };
    updates.push({
      id,
      set: {
        ...kept,
        failed_attempts: after.failedAttempts,
        failing_since: after.failingSince,
        unwell_since: unwellSince,
        alarmed_at: alarmedAt === null ? null : Number(alarmedAt),
      },
    });
    const row = { ...before, ...kept };
    if (reason !== null && before.active) off.push({ row, reason });
    else if (alarm) alarms.push({ ...alarm, webhook: toWebhook(row) });
  }
  const table = { name: WEBHOOKS_TABLE, schema: tx.schema, columns: KEPT_COLUMNS };
  await tx.dialect.updateRows(tx.knex, table, updates);
  for (const { row, reason } of off) {
    const changes = { active: false, disabled_reason: reason, disabled_at: Date.now() };
    await documentsOf(app.strapi, WEBHOOK).update({ documentId: row.document_id, data: changes });
    alarms.push({ kind: 'disabled', webhook: toWebhook({ ...row, ...changes }), reason });
  }
  return alarms;
};

/** Records attempts in one transaction, each only while its lease holds. @returns those that were recorded */
const recordTogether = async (
  app: App,
  outcomes: readonly Outcome[]
): Promise<RecordedAttempt[]> => {
  const store = getDeliveryStore(app);
  const { held, alarms, pauses } = await app.db.retrying(async (tx) => {
    const held = await store.settle(
      tx,
      outcomes.map(({ made, next, attempt }) => ({
        ...{ lease: made.lease, next, attempt, endedAt: made.result.endedAt },
      }))
    );
    const recorded = outcomes.filter(({ made }) => held.has(made.lease.id));
    const locked = await lockWebhooks(tx, recorded);
    const current = recorded.filter((one) => {
      const webhook = locked.get(one.webhook);
      return !webhook || countsFor(webhook, one.made);
    });
    const pauses = await notePauses(tx, current);
    await noteAnsweredRotations(tx, current);
    const alarms = locked.size > 0 ? await countAttempts(app, tx, counted(current), locked) : [];
    // Last, because other nodes that record for the same webhooks wait for these rows.
    await addToRollups(tx, counted(recorded));
    if (alarms.length > 0) await publishAlarms(app, alarms);
    return { held, alarms, pauses };
  });
  pauses.forEach((until, webhook) => store.limits.notePause(webhook, until));
  debugEach(app.strapi, outcomes, ({ made: { lease }, next }) =>
    recordedLine(lease, next, held.has(lease.id))
  );
  const switchedOff = alarms.filter(({ kind }) => kind === 'disabled');
  debugEach(app.strapi, switchedOff, ({ webhook }) => switchedOffLine(webhook));
  for (const one of alarms) announceAlarm(app, one);
  return outcomes.filter(({ made }) => held.has(made.lease.id));
};

/** The part of an outcome that any database takes: that the attempt was made, and how it ended. */
const bare = (outcome: Outcome): Outcome => {
  const { made, attempt } = outcome;
  const answer = attempt.answer && { ...attempt.answer, headers: {}, body: '', truncated: true };
  const request = { url: made.webhook.url, headers: {} };
  return { ...outcome, attempt: { ...attempt, request, answer } };
};

type OnRecorded = (recorded: readonly RecordedAttempt[]) => Promise<void>;

/** One row that the database refuses must not cost the others their outcomes. */
const recordSplitting = async (
  app: App,
  outcomes: readonly Outcome[],
  onRecorded: OnRecorded
): Promise<void> => {
  try {
    await onRecorded(await recordTogether(app, outcomes));
    return;
  } catch (error) {
    if (isInfrastructureFault(error)) throw error;
    if (outcomes.length === 1) {
      await recordBare(app, outcomes[0] as Outcome, onRecorded, error);
      return;
    }
  }
  const half = Math.ceil(outcomes.length / 2);
  for (const part of [outcomes.slice(0, half), outcomes.slice(half)]) {
    await nextTurn();
    await recordSplitting(app, part, onRecorded);
  }
};

const recordBare = async (
  app: App,
  outcome: Outcome,
  onRecorded: OnRecorded,
  refused: unknown
): Promise<void> => {
  const which = `the outcome of delivery ${outcome.made.lease.delivery.deliveryId}`;
  try {
    await onRecorded(await recordTogether(app, [bare(outcome)]));
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
 * until only the bad row is left.
 * @param onRecorded is called with those that were recorded, part by part; a lost lease records nothing.
 * @throws if the database is away; what has been recorded by then stays so when it is called again.
 */
export const recordAttempts = async (
  app: App,
  made: readonly MadeAttempt[],
  onRecorded: OnRecorded
): Promise<void> => {
  const { retryScheduleSeconds } = app.options.webhooks;
  const { batch, largest } = await (await app.db.current()).statementSize();
  const asking = made.filter(({ result }) => isGone(result) || requestedPause(result) !== null);
  const outdated = asking.length > 0 ? await outdatedOf(app, asking) : new Set<MadeAttempt>();
  const outcomes = made.map((one): Outcome => {
    const next = nextState(one, retryScheduleSeconds, outdated.has(one));
    const { isTest, webhook } = one.lease.delivery;
    const outcome = { made: one, next, attempt: one.result.attempt, isTest, webhook };
    return bytesOfAttempt(outcome.attempt) * 2 > largest ? bare(outcome) : outcome;
  });
  const limits = { count: outcomes.length, bytes: batch };
  for (const part of inParts(outcomes, limits, ({ attempt }) => bytesOfAttempt(attempt))) {
    await recordSplitting(app, part, onRecorded);
    await nextTurn();
  }
};

/**
 * Runs `service_crm_webhook_delivered` for attempts that were recorded; side by side, because one
 * handler that is slow about one delivery need not keep the others waiting.
 */
export const tellDelivered = async (
  app: App,
  recorded: readonly RecordedAttempt[]
): Promise<void> => {
  const hook = app.hooks.get('service_crm_webhook_delivered');
  if (hook.getHandlers().length === 0) return;
  const tell = ({ made: { lease, webhook, result }, next }: RecordedAttempt) =>
    hook.call({
      delivery_id: lease.delivery.deliveryId,
      webhook: toWebhook(webhook),
      result: {
        ok: result.ok,
        event: lease.delivery.event,
        status: next.status,
        tries: next.tries,
        response_code: result.attempt.answer?.status ?? null,
        error: result.attempt.error,
        duration_ms: result.attempt.duration_ms,
        next_attempt_at: isoTimeOrNull(next.nextAttemptAt),
      },
    });
  await Promise.all(recorded.map(tell));
};
