import type { Knex } from 'knex';
import type {
  HealthCounts,
  HealthReport,
  LastAnswer,
  ResponseTimes,
  WebhookHealth,
} from '../../../shared/contracts/overview';
import { inChunks } from '../database/written-rows';
import { RECORDS } from '../pos/processing/record-store';
import { nextTurn, TimeSlice } from '../runtime/event-loop';
import { HOUR_MS, isoTime } from '../runtime/text';
import { countPending, type Pending } from '../webhooks/figures/pending';
import { DELIVERIES } from '../webhooks/deliveries/store';
import { toHealth } from '../webhooks/figures/health';
import { quantile, readHours, type Rollup } from '../webhooks/figures/rollups';
import { RECOVERIES } from '../webhooks/recoveries/job';
import {
  DELIVERIES_TABLE,
  type DeliveryRow,
  type WebhookRow,
  WEBHOOKS_TABLE,
} from '../webhooks/tables';
import { disabledBecause } from '../webhooks/webhook';
import type { App } from '../app';
import type { Db } from '../database/db';

/** How long receivers took in some hours together; null if nothing was answered. */
export const responseOf = (rollups: readonly Rollup[]): ResponseTimes | null => {
  const counts: number[] = [];
  for (const { responseTimes } of rollups) {
    for (const [span, count] of responseTimes.entries()) counts[span] = (counts[span] ?? 0) + count;
  }
  const [median, p95] = [quantile(counts, 0.5), quantile(counts, 0.95)];
  return median === null || p95 === null ? null : { median_ms: median, p95_ms: p95 };
};

/** Every kind of work that the scheduler serves; with `scheduler.engine: 'bullmq'` each has a queue. */
export const WORK_KINDS = [DELIVERIES, RECOVERIES, RECORDS];

const HOURS = 24;
const BUCKETS = 12;
const BUCKET_MS = (HOURS * HOUR_MS) / BUCKETS;
/** A page of the admin shows at most this many webhooks. */
const WEBHOOKS_SHOWN = 1000;

/** How far back an answer is looked for where the newest deliveries were not tried yet. */
const NEWEST_SEARCHED = 1000;

const COUNTED = ['pending', 'failing', 'sent', 'failed'] as const;

const none = (): HealthCounts => ({ pending: 0, failing: 0, sent: 0, failed: 0 });

/**
 * The beginnings of the chart's bars, oldest first; epoch milliseconds. Figures are kept by the hour, so
 * the last bar ends with the hour that has begun.
 */
export const bucketStarts = (now: number): number[] => {
  const end = Math.ceil(now / HOUR_MS) * HOUR_MS;
  return Array.from({ length: BUCKETS }, (_unused, index) => end - (BUCKETS - index) * BUCKET_MS);
};

const ANSWER_COLUMNS = ['id', 'status', 'error', 'tries', 'finished_at', 'created_at'] as const;
type AnswerRow = Pick<DeliveryRow, (typeof ANSWER_COLUMNS)[number]>;

const newestFirst = (query: Knex.QueryBuilder): Knex.QueryBuilder =>
  query.orderBy('created_at', 'desc').orderBy('id', 'desc');

/** Almost always the newest delivery; behind a queue that waits, the newest one that was tried. */
const newestTried = async (db: Db, webhookId: number): Promise<AnswerRow | undefined> => {
  const newest = (): Knex.QueryBuilder =>
    newestFirst(db.table(DELIVERIES_TABLE).select(ANSWER_COLUMNS)).where({ webhook_id: webhookId });
  const row = (await newest().first()) as AnswerRow | undefined;
  if (!row || Number(row.tries) > 0) return row;
  const tried = db.from(newest().limit(NEWEST_SEARCHED)).select('*').where('tries', '>', 0);
  return (await newestFirst(tried).first()) as AnswerRow | undefined;
};

const lastAnswer = async (db: Db, webhookId: number): Promise<LastAnswer | null> => {
  const row = await newestTried(db, webhookId);
  if (!row) return null;
  const { status, error } = row;
  const at = isoTime(Number(row.finished_at ?? row.created_at));
  return { delivery_id: Number(row.id), status, error, tries: Number(row.tries), at };
};

/**
 * Bars of the last 24 hours, and their sum. Deliveries that ended count in the bar of that hour, and
 * unfinished ones in that in which they were created; these count in the sum whenever that was.
 */
const chartOf = (
  starts: readonly number[],
  ended: readonly Pick<Rollup, 'hour' | 'ended'>[],
  pending: readonly Pending[]
) => {
  const all = none();
  const buckets = starts.map((from) => ({ from: isoTime(from), ...none() }));
  const add = (hour: number, more: Partial<HealthCounts>): void => {
    const bar = buckets[Math.floor((hour - (starts[0] ?? 0)) / BUCKET_MS)];
    for (const counts of bar ? [all, bar] : [all]) {
      for (const name of COUNTED) counts[name] += more[name] ?? 0;
    }
  };
  for (const { hour, ended: more } of ended) add(hour, more);
  for (const { hour, waiting, failing } of pending.flatMap(({ hours }) => hours)) {
    add(hour, { pending: waiting + failing, failing });
  }
  return { counts: all, buckets };
};

const rollupsByWebhook = async (app: App, rows: readonly WebhookRow[], since: number) => {
  const found = new Map<number, Rollup[]>();
  // With one statement each; SQLite answers it within the turn.
  for (const part of inChunks(rows.map(({ id }) => Number(id)))) {
    const webhooks = { from: part.at(0) ?? 0, to: part.at(-1) ?? 0 };
    for (const rollup of await readHours(app, { since, webhooks })) {
      const own = found.get(rollup.webhookId);
      if (own) own.push(rollup);
      else found.set(rollup.webhookId, [rollup]);
    }
    await nextTurn();
  }
  return found;
};

/**
 * How webhooks did in the last 24 hours, by bar of the chart, and what is not finished now. Reads
 * hourly rollups and a bounded number of rows that wait: what it costs does not follow the log.
 */
export const readHealth = async (app: App, now: number): Promise<HealthReport> => {
  const db = await app.db.current();
  const starts = bucketStarts(now);
  const since = starts[0] ?? now;
  const rows = (await db
    .table(WEBHOOKS_TABLE)
    .orderBy('id')
    .limit(WEBHOOKS_SHOWN + 1)) as WebhookRow[];
  const isCapped = rows.length > WEBHOOKS_SHOWN;
  rows.splice(WEBHOOKS_SHOWN);
  const rollups = await rollupsByWebhook(app, rows, since);
  const pending = await countPending(app, 'all');

  const webhooks: WebhookHealth[] = [];
  const slice = new TimeSlice();
  for (const row of rows) {
    if (slice.isOver()) await slice.next();
    const id = Number(row.id);
    const own = rollups.get(id) ?? [];
    const unfinished = pending.get(id);
    const chart = chartOf(starts, own, unfinished ? [unfinished] : []);
    webhooks.push({
      webhook_id: id,
      name: row.name,
      disabled_reason: row.disabled_reason,
      disabled_because: disabledBecause(row.disabled_reason),
      ordering: row.ordering ?? 'none',
      health: toHealth(app, row, unfinished),
      ...chart.counts,
      buckets: chart.buckets,
      response: responseOf(own),
      last: await lastAnswer(db, id),
    });
  }

  const ended = await readHours(app, { since, sums: ['ended_sent', 'ended_failed'] });
  const all = chartOf(starts, ended, [...pending.values()]);
  return {
    since: isoTime(since),
    // Every attempt was counted when it was recorded.
    complete: true,
    totals: all.counts,
    buckets: all.buckets,
    webhooks,
    webhooks_capped: isCapped,
    paused_queues: await app.scheduler.pausedQueues(WORK_KINDS),
  };
};
