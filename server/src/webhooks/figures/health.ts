import type { Knex } from 'knex';
import { type Health, HEALTH_STATES, type LastAnswer } from '../../../../shared/contracts/webhooks';
import type { Db } from '../../database/db';
import type { Metric, MetricSource, Sample } from '../../observability/measures';
import { isoTime, isoTimeOrNull } from '../../runtime/text';
import { countPending, type Pending } from './pending';
import { healthState } from '../rules/failing';
import { DELIVERIES_TABLE, type DeliveryRow, type WebhookRow, WEBHOOKS_TABLE } from '../tables';
import { spellOf } from '../webhook';
import { readTotals, SPAN_ENDS } from './rollups';
import type { App } from '../../app';

/** docs/contract-webhooks.md#health */
export const toHealth = (app: App, row: WebhookRow, pending: Pending | undefined): Health => {
  const spell = spellOf(row);
  const until = Number(row.paused_until);
  const isPaused = until > app.clock.now();
  return {
    state: healthState(Boolean(row.active), spell, isPaused),
    failing_since: isoTimeOrNull(spell.unwellSince),
    paused_until: isPaused ? isoTime(until) : null,
    waiting: pending?.waiting ?? 0,
    failing: pending?.failing ?? 0,
  };
};

/** The health of webhooks, in their order (docs/contract-webhooks.md#health); `saysSince` adds the oldest times. */
export const readHealthOf = async (
  app: App,
  rows: readonly WebhookRow[],
  saysSince = false
): Promise<Health[]> => {
  const ids = rows.map(({ id }) => Number(id));
  const pending = await countPending(app, ids);
  return rows.map((row) => {
    const own = pending.get(Number(row.id));
    const health = toHealth(app, row, own);
    if (!saysSince) return health;
    const waiting_since = isoTimeOrNull(own?.waitingSince);
    return { ...health, waiting_since, oldest_at: isoTimeOrNull(own?.oldest) };
  });
};

const ANSWER_COLUMNS = ['id', 'status', 'error', 'tries', 'finished_at', 'created_at'] as const;
type AnswerRow = Pick<DeliveryRow, (typeof ANSWER_COLUMNS)[number]>;

/** How far back an answer is looked for if the newest deliveries were not attempted yet. */
const NEWEST_SEARCHED = 1000;

const newestFirst = (query: Knex.QueryBuilder): Knex.QueryBuilder =>
  query.orderBy('created_at', 'desc').orderBy('id', 'desc');

/** Almost always the newest delivery; behind a queue that waits, the newest one that was attempted. */
const newestTried = async (db: Db, webhookId: number): Promise<AnswerRow | undefined> => {
  const newest = (): Knex.QueryBuilder =>
    newestFirst(db.table(DELIVERIES_TABLE).select(ANSWER_COLUMNS)).where({ webhook_id: webhookId });
  const row = (await newest().first()) as AnswerRow | undefined;
  if (!row || Number(row.tries) > 0) return row;
  const tried = db.from(newest().limit(NEWEST_SEARCHED)).select('*').where('tries', '>', 0);
  return (await newestFirst(tried).first()) as AnswerRow | undefined;
};

/** The answer to a webhook's newest attempted delivery. */
export const readLastAnswer = async (db: Db, webhookId: number): Promise<LastAnswer | null> => {
  const row = await newestTried(db, webhookId);
  if (!row) return null;
  const { status, error } = row;
  const at = isoTime(Number(row.finished_at ?? row.created_at));
  return { delivery_id: Number(row.id), status, error, tries: Number(row.tries), at };
};

const ATTEMPTS = 'switchboard_delivery_attempts_total';
const ENDED = 'switchboard_deliveries_ended_total';
const ANSWERS = 'switchboard_delivery_answer_seconds';
const WAITING = 'switchboard_deliveries_waiting';
const FAILING = 'switchboard_deliveries_failing';
const OLDEST = 'switchboard_delivery_oldest_waiting_seconds';
const WEBHOOKS = 'switchboard_webhooks';

const metric = (name: string, type: Metric['type'], help: string): Metric => ({ name, type, help });

const outcomes = (counts: { sent: number; failed: number }): Sample[] =>
  (['sent', 'failed'] as const).map((outcome) => ({ labels: { outcome }, value: counts[outcome] }));

/** Counts up to each span's end, as Prometheus has them. */
const buckets = (spans: readonly number[]): Sample[] => {
  let below = 0;
  const samples = spans.map((count, at): Sample => {
    below += count;
    const end = SPAN_ENDS[at];
    const le = end === undefined ? '+Inf' : String(end / 1000);
    return { suffix: '_bucket', labels: { le }, value: below };
  });
  return [...samples, { suffix: '_count', value: below }];
};

const countByHealth = async (app: App, now: number): Promise<Sample[]> => {
  const db = await app.db.current();
  const found = await db.rows<{ state: string; number: number | string }>(
    `SELECT state, COUNT(*) AS number FROM (
       SELECT CASE WHEN active = ? THEN CASE WHEN paused_until > ? THEN 'paused'
         WHEN unwell_since IS NOT NULL THEN 'failing' WHEN attempted = ? THEN 'healthy'
         ELSE 'new' END ELSE 'off' END AS state FROM ${db.named(WEBHOOKS_TABLE)}
     ) judged GROUP BY state`,
    [true, now, true]
  );
  const counts = new Map(found.map(({ state, number }) => [state, Number(number)]));
  return HEALTH_STATES.map((state) => ({ labels: { state }, value: counts.get(state) ?? 0 }));
};

export const webhookMetrics: MetricSource = {
  metrics: [
    metric(ATTEMPTS, 'counter', 'Attempts of deliveries, without tests'),
    metric(ENDED, 'counter', 'Deliveries that were delivered or failed'),
    metric(ANSWERS, 'histogram', 'How long receivers took to answer'),
    metric(WAITING, 'gauge', 'Deliveries before their first attempt, at most 10000 per webhook'),
    metric(FAILING, 'gauge', 'Failed deliveries that will be retried, at most 10000 per webhook'),
    metric(OLDEST, 'gauge', 'Age of the oldest delivery before its first attempt'),
    metric(WEBHOOKS, 'gauge', 'Webhooks by their health'),
  ],
  async read(app) {
    const now = app.clock.now();
    const totals = await readTotals(app);
    const pending = [...(await countPending(app, 'all')).values()];
    const sum = (of: 'waiting' | 'failing'): number =>
      pending.reduce((total, one) => total + one[of], 0);
    const since = Math.min(now, ...pending.map(({ waitingSince }) => waitingSince ?? now));
    return {
      [ATTEMPTS]: outcomes(totals.attempts),
      [ENDED]: outcomes(totals.ended),
      [ANSWERS]: buckets(totals.responseTimes),
      [WAITING]: [{ value: sum('waiting') }],
      [FAILING]: [{ value: sum('failing') }],
      [OLDEST]: [{ value: (now - since) / 1000 }],
      [WEBHOOKS]: await countByHealth(app, now),
    };
  },
};
