import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import type {
  HealthBucket,
  HealthCounts,
  HealthReport,
  LastAnswer,
  WebhookHealth,
} from '../../../shared/contracts/overview';
import { currentExecutor, type Executor, table } from '../database/connection';
import { isoTime } from '../runtime/iso-time';
import { DELIVERIES_TABLE, type DeliveryRow, WEBHOOKS_TABLE } from '../webhooks/tables';

export const HOURS = 24;
const BUCKETS = 12;
const BUCKET_MS = (HOURS * 3_600_000) / BUCKETS;
/** Older deliveries of the same day are left out of a chart rather than slow the site down. */
export const NEWEST_COUNTED = 100_000;
/** A page of the admin shows at most this many webhooks' last answers. */
const WEBHOOKS_SHOWN = 1000;

/** How far back an answer is looked for where the newest deliveries were not tried yet. */
const NEWEST_SEARCHED = 1000;

const none = (): HealthCounts => ({ pending: 0, failing: 0, sent: 0, failed: 0 });

/** Where each bar of the chart begins, oldest first; epoch milliseconds. */
export const bucketStarts = (now: number): number[] =>
  Array.from({ length: BUCKETS }, (_unused, index) => now - (BUCKETS - index) * BUCKET_MS);

/**
 * The smallest id in `[low, high + 1]` whose row was made at `time` or later. Ids grow with time, so
 * a bisection over the primary key needs no index on the time.
 */
export const firstIdSince = async (
  createdAt: (id: number) => Promise<number | null>,
  time: number,
  low: number,
  high: number
): Promise<number> => {
  let [from, to] = [low, high + 1];
  while (from < to) {
    const middle = Math.floor((from + to) / 2);
    const at = await createdAt(middle);
    if (at !== null && at < time) from = middle + 1;
    else to = middle;
  }
  return from;
};

const deliveries = (strapi: Core.Strapi, executor: Executor): Knex.QueryBuilder =>
  table(strapi, executor, DELIVERIES_TABLE);

const idRange = async (strapi: Core.Strapi, executor: Executor): Promise<[number, number]> => {
  const [row] = (await deliveries(strapi, executor).min({ low: 'id' }).max({ high: 'id' })) as {
    low: number | null;
    high: number | null;
  }[];
  return [Number(row?.low ?? 1), Number(row?.high ?? 0)];
};

interface CountRow {
  webhook_id: number;
  status: keyof HealthCounts;
  bucket: number | string;
  n: number | string;
}

/**
 * How many deliveries each webhook has in each bar and status. The first question reads ids and
 * statuses only, which `sb_delivery_log` holds: no row is visited. Which of the pending ones were
 * tried is not in it, so only their rows are looked at, and only where there are any.
 */
const countByBucket = async (
  strapi: Core.Strapi,
  executor: Executor,
  starts: readonly number[]
): Promise<CountRow[]> => {
  const bounds = starts.slice(1);
  const bucket = bounds.map(() => 'when id < ? then ?').join(' ');
  const values = bounds.flatMap((id, index) => [id, index]);
  const counted = (): Knex.QueryBuilder =>
    deliveries(strapi, executor)
      .select('webhook_id', 'status')
      .select(executor.raw(`case ${bucket} else ? end as bucket`, [...values, starts.length - 1]))
      .count({ n: '*' })
      .where('id', '>=', starts[0] ?? 0)
      .groupBy('webhook_id', 'status', 'bucket');
  const rows = (await counted()) as unknown as CountRow[];
  if (!rows.some(({ status }) => status === 'pending')) return rows;
  const tried = (await counted()
    .where({ status: 'pending' })
    .where('tries', '>', 0)) as unknown as CountRow[];
  return [...rows, ...tried.map((row) => ({ ...row, status: 'failing' as const }))];
};

type AnswerRow = Pick<
  DeliveryRow,
  'id' | 'status' | 'error' | 'tries' | 'finished_at' | 'created_at'
>;

const ANSWER_COLUMNS = ['id', 'status', 'error', 'tries', 'finished_at', 'created_at'];

/** Almost always the newest delivery; behind a queue that waits, the newest one that was tried. */
const newestTried = async (
  strapi: Core.Strapi,
  executor: Executor,
  webhookId: number
): Promise<AnswerRow | undefined> => {
  const newest = (): Knex.QueryBuilder =>
    deliveries(strapi, executor)
      .select(ANSWER_COLUMNS)
      .where({ webhook_id: webhookId })
      .orderBy('id', 'desc');
  const row = (await newest().first()) as AnswerRow | undefined;
  if (!row || Number(row.tries) > 0) return row;
  return (await (executor as Knex)
    .select('*')
    .from(newest().limit(NEWEST_SEARCHED).as('newest'))
    .where('tries', '>', 0)
    .orderBy('id', 'desc')
    .first()) as AnswerRow | undefined;
};

const lastAnswer = async (
  strapi: Core.Strapi,
  executor: Executor,
  webhookId: number
): Promise<LastAnswer | null> => {
  const row = await newestTried(strapi, executor, webhookId);
  return row
    ? {
        delivery_id: Number(row.id),
        status: row.status,
        error: row.error,
        tries: Number(row.tries),
        at: isoTime(Number(row.finished_at ?? row.created_at)),
      }
    : null;
};

/** Deliveries queued in the last 24 hours, by webhook and by bar of the chart. */
export const readHealth = async (strapi: Core.Strapi, now: number): Promise<HealthReport> => {
  const executor = await currentExecutor(strapi);
  const [lowest, high] = await idRange(strapi, executor);
  const low = Math.max(lowest, high - NEWEST_COUNTED + 1);
  const createdAt = async (id: number): Promise<number | null> => {
    const row = (await deliveries(strapi, executor)
      .select('created_at')
      .where('id', '>=', id)
      .orderBy('id')
      .first()) as Pick<DeliveryRow, 'created_at'> | undefined;
    return row ? Number(row.created_at) : null;
  };

  const times = bucketStarts(now);
  const ids: number[] = [];
  for (const time of times) ids.push(await firstIdSince(createdAt, time, ids.at(-1) ?? low, high));
  const first = await createdAt(low);
  const complete = low === lowest || (first !== null && first < (times[0] ?? 0));

  const empty = (): HealthBucket[] => times.map((from) => ({ from: isoTime(from), ...none() }));
  const rows = (await table(strapi, executor, WEBHOOKS_TABLE)
    .select('id')
    .orderBy('id')
    .limit(WEBHOOKS_SHOWN)) as { id: number }[];
  const webhooks = new Map<number, WebhookHealth>();
  for (const { id } of rows) {
    const last = await lastAnswer(strapi, executor, id);
    webhooks.set(Number(id), { webhook_id: Number(id), ...none(), buckets: empty(), last });
  }

  const report: HealthReport = {
    since: isoTime(complete ? (times[0] ?? now) : (first ?? now)),
    complete,
    totals: none(),
    buckets: empty(),
    webhooks: [...webhooks.values()],
  };
  for (const row of high > 0 ? await countByBucket(strapi, executor, ids) : []) {
    const webhook = webhooks.get(Number(row.webhook_id));
    // A row of a webhook that was deleted just now: its log is on its way out.
    if (!webhook) continue;
    const index = Number(row.bucket);
    for (const counts of [webhook, webhook.buckets[index], report.totals, report.buckets[index]]) {
      if (counts) counts[row.status] += Number(row.n);
    }
  }
  return report;
};
