import { type Health, HEALTH_STATES } from '../../../../shared/contracts/webhooks';
import type { Metric, MetricSource, Sample } from '../../observability/measures';
import { isoTime, isoTimeOrNull } from '../../runtime/text';
import { countPending, type Pending } from './pending';
import { healthState } from '../rules/failing';
import { type WebhookRow, WEBHOOKS_TABLE } from '../tables';
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

/**
 * The health of some webhooks, in their order; docs/contract-webhooks.md#health says what it counts.
 * @param saysSince whether it has the times of the oldest waiting and failing deliveries
 */
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

const ATTEMPTS = 'switchboard_delivery_attempts_total';
const ENDED = 'switchboard_deliveries_ended_total';
const ANSWERS = 'switchboard_delivery_answer_seconds';
const WAITING = 'switchboard_deliveries_waiting';
const FAILING = 'switchboard_deliveries_failing';
const OLDEST = 'switchboard_delivery_oldest_waiting_seconds';
const WEBHOOKS = 'switchboard_webhooks';

const metric = (name: string, type: Metric['type'], help: string): Metric => ({ name, type, help });
const metrics = [
  metric(ATTEMPTS, 'counter', 'Attempts of deliveries, without tests'),
  metric(ENDED, 'counter', 'Deliveries that were sent, or given up'),
  metric(ANSWERS, 'histogram', 'How long receivers took to answer'),
  metric(WAITING, 'gauge', 'Deliveries of which no attempt counts yet, at most 10000 a webhook'),
  metric(
    FAILING,
    'gauge',
    'Deliveries that were tried in vain and will be tried again, at most 10000 a webhook'
  ),
  metric(OLDEST, 'gauge', 'Age of the oldest delivery of which no attempt counts yet'),
  metric(WEBHOOKS, 'gauge', 'Webhooks by their health'),
];

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
  metrics,
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
