import type {
  HealthCounts,
  HealthReport,
  ResponseTimes,
  WebhookHealth,
} from '../../../shared/contracts/overview';
import { RECORDS } from '../pos/processing/record-store';
import { TimeSlice } from '../runtime/event-loop';
import { HOUR_MS, isoTime } from '../runtime/text';
import { countPending, type Pending } from '../webhooks/figures/pending';
import { DELIVERIES } from '../webhooks/deliveries/store';
import { readLastAnswer, toHealth } from '../webhooks/figures/health';
import { countFailed, quantile, readHours, type Rollup } from '../webhooks/figures/rollups';
import { RECOVERIES } from '../webhooks/recoveries/job';
import { type WebhookRow, WEBHOOKS_TABLE } from '../webhooks/tables';
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
/** Few enough for a screen that asks every ten seconds. */
const WEBHOOKS_SHOWN = 20;

const COUNTED = ['pending', 'failing', 'sent', 'failed'] as const;

const none = (): HealthCounts => ({ pending: 0, failing: 0, sent: 0, failed: 0 });

/** Starts of the chart's bars, oldest first, epoch milliseconds; the last bar ends with the current hour. */
export const bucketStarts = (now: number): number[] => {
  const end = Math.ceil(now / HOUR_MS) * HOUR_MS;
  return Array.from({ length: BUCKETS }, (_unused, index) => end - (BUCKETS - index) * BUCKET_MS);
};

/** Bars of 24 hours and their sum. Ended deliveries count in that hour, others when made and always in the sum. */
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

const CANDIDATE_COLUMNS = [
  'id',
  'active',
  'disabled_reason',
  'unwell_since',
  'paused_until',
] as const;
type Candidate = Pick<WebhookRow, (typeof CANDIDATE_COLUMNS)[number]>;

/** How urgently a webhook needs attention; 0: it does not. */
const urgencyOf = (row: Candidate, pending: Pending | undefined, failed: number, now: number) => {
  const { active, disabled_reason: reason, paused_until: until, unwell_since: since } = row;
  if (!active && reason === null) return pending ? 2 : 0;
  if (!active) return disabledBecause(reason)?.code === 'other_site' ? 2 : 6;
  if (Number(until) > now) return 1;
  if (since !== null) return 5;
  if (failed > 0) return 4;
  return pending && pending.failing > 0 ? 3 : 0;
};

interface Ranking {
  pending: ReadonlyMap<number, Pending>;
  since: number;
  now: number;
  /** Ids; else of all. */
  of: readonly number[] | undefined;
}

/** The ids of webhooks, the most urgent first, then those with more deliveries at stake; and how many are urgent. */
const rank = async (db: Db, { pending, since, now, of }: Ranking) => {
  const failures = await countFailed(db, since, of);
  const rows = db.table(WEBHOOKS_TABLE).select(CANDIDATE_COLUMNS).orderBy('id');
  if (of) rows.whereIn('id', of);
  const slice = new TimeSlice();
  const ranked: { id: number; urgency: number; stake: number }[] = [];
  for (const row of (await rows) as Candidate[]) {
    if (slice.isOver()) await slice.next();
    const id = Number(row.id);
    const [own, failed] = [pending.get(id), failures.get(id) ?? 0];
    const urgency = urgencyOf(row, own, failed, now);
    const stake = urgency > 0 ? failed + (own?.waiting ?? 0) + (own?.failing ?? 0) : 0;
    ranked.push({ id, urgency, stake });
  }
  const urgent = ranked.filter(({ urgency }) => urgency > 0).length;
  ranked.sort((a, b) => b.urgency - a.urgency || b.stake - a.stake);
  return { ids: ranked.slice(0, WEBHOOKS_SHOWN).map(({ id }) => id), urgent };
};

/** Results of 24 hours by chart bar, and unfinished deliveries, of one webhook or all; costs no more with a long log. */
export const readHealth = async (
  app: App,
  now: number,
  webhook?: number
): Promise<HealthReport> => {
  const db = await app.db.current();
  const starts = bucketStarts(now);
  const since = starts[0] ?? now;
  const of = webhook === undefined ? undefined : [webhook];
  const pending = await countPending(app, of ?? 'all');
  const { ids, urgent } = await rank(db, { pending, since, now, of });
  const rows = (await db.table(WEBHOOKS_TABLE).whereIn('id', ids)) as WebhookRow[];
  const rollups = await readHours(app, { since, webhooks: ids });

  const webhooks: WebhookHealth[] = [];
  for (const id of ids) {
    const row = rows.find((found) => Number(found.id) === id);
    if (!row) continue;
    const own = rollups.filter(({ webhookId }) => webhookId === id);
    const unfinished = pending.get(id);
    webhooks.push({
      webhook_id: id,
      name: row.name,
      disabled_reason: row.disabled_reason,
      disabled_because: disabledBecause(row.disabled_reason),
      health: toHealth(app, row, unfinished),
      ...chartOf(starts, own, unfinished ? [unfinished] : []).counts,
      last: await readLastAnswer(db, id),
    });
  }

  const ended = of
    ? rollups
    : await readHours(app, { since, sums: ['ended_sent', 'ended_failed'] });
  const { buckets, counts } = chartOf(starts, ended, [...pending.values()]);
  return {
    since: isoTime(since),
    totals: counts,
    buckets,
    webhooks,
    needing_attention: urgent,
    paused_queues: await app.scheduler.pausedQueues(WORK_KINDS),
  };
};
