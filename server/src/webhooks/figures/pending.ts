import { TimeSlice } from '../../runtime/event-loop';
import { HOUR_MS } from '../../runtime/text';
import { SECTIONS } from '../rules/delivery-state';
import { DELIVERY_QUEUE_TABLE, WEBHOOKS_TABLE } from '../tables';
import type { App } from '../../app';
import type { Db } from '../../database/db';

/** Unfinished deliveries of a webhook; tests do not count. */
export interface Pending {
  waiting: number;
  /** Tried in vain, and to be tried again. */
  failing: number;
  /** When the oldest of those never tried was made, epoch milliseconds; null: there is none. */
  waitingSince: number | null;
  /** When the oldest of all of them was made; null: there is none. */
  oldest: number | null;
  /** The counts by the hour that the deliveries were created in (epoch milliseconds). */
  hours: { hour: number; waiting: number; failing: number }[];
}

/** Rows that are looked at: of one webhook, untried and failing ones each, and of all that are asked for together. */
const MOST_OF_ONE = 10_000;
const MOST_OF_ALL = 100_000;
/** The minimum looked at of each webhook, however many there are. */
const LEAST_OF_ONE = 100;
/** SQLite takes up to 500 queries in one statement, and answers it within the turn. */
const WEBHOOKS_AT_ONCE = 50;
const ROWS_AT_ONCE = 10_000;

interface CountRow {
  webhook_id: number | string;
  section: number;
  hour: number | string;
  total: number | string;
  oldest: number | string;
}

const PARTS = [SECTIONS.waiting, SECTIONS.failing];

/** Each webhook costs a step or two into an index, which holds for a database that would rather join. */
const havePending = async (db: Db, webhooks: readonly number[] | 'all'): Promise<number[]> => {
  const first = (section: number) =>
    db
      .table(`${DELIVERY_QUEUE_TABLE} as q`)
      .select('q.id')
      .whereRaw('?? = ??', ['q.group_id', 'w.id'])
      .where('q.section', section)
      .limit(1);
  const found = db
    .table(`${WEBHOOKS_TABLE} as w`)
    .whereRaw('COALESCE((?), (?)) IS NOT NULL', PARTS.map(first));
  if (webhooks !== 'all') found.whereIn('w.id', [...webhooks]);
  const ids = (await found.orderBy('w.id').pluck('w.id')) as number[];
  return ids.map(Number);
};

/** Some of each, those first that the index has first: of what fails not the oldest over all causes. */
const countOldest = async (db: Db, webhooks: readonly number[], limit: number) => {
  const part = `SELECT * FROM (
      SELECT MAX(group_id) AS webhook_id, MAX(section) AS section, hour, COUNT(*) AS total,
        MIN(created_at) AS oldest
      FROM (
        SELECT group_id, section, created_at, created_at - created_at % ${HOUR_MS} AS hour
        FROM ${db.named(DELIVERY_QUEUE_TABLE)}
        WHERE group_id = ? AND section = ? ORDER BY error, created_at, id LIMIT ?
      ) oldest GROUP BY hour) counted`;
  const queries = webhooks.flatMap((id) => PARTS.map((section) => [id, section, limit]));
  return db.rows<CountRow>(queries.map(() => part).join(' UNION ALL '), queries.flat());
};

const add = (pending: Pending, row: CountRow): void => {
  const state = Number(row.section) === SECTIONS.waiting ? 'waiting' : 'failing';
  const [hour, total, oldest] = [Number(row.hour), Number(row.total), Number(row.oldest)];
  const counted = pending.hours.find((one) => one.hour === hour);
  if (counted) counted[state] += total;
  else pending.hours.push({ hour, waiting: 0, failing: 0, [state]: total });
  pending[state] += total;
  pending.oldest = Math.min(pending.oldest ?? Infinity, oldest);
  if (state === 'waiting') {
    pending.waitingSince = Math.min(pending.waitingSince ?? Infinity, oldest);
  }
};

/**
 * Waiting and failing deliveries by webhook, without those that have none. Looks at the oldest 10,000 unattempted and
 * up to 10,000 failed of a webhook, and at 100,000 in all: then the counts are lower bounds.
 */
export const countPending = async (app: App, webhooks: readonly number[] | 'all') => {
  const counts = new Map<number, Pending>();
  const db = await app.db.current();
  const found = await havePending(db, webhooks);
  const share = Math.floor(MOST_OF_ALL / found.length / PARTS.length);
  const limit = Math.min(MOST_OF_ONE, Math.max(LEAST_OF_ONE, share));
  const atOnce = Math.min(
    WEBHOOKS_AT_ONCE,
    Math.max(1, Math.floor(ROWS_AT_ONCE / limit / PARTS.length))
  );
  const slice = new TimeSlice();
  for (let at = 0; at < found.length; at += atOnce) {
    if (slice.isOver()) await slice.next();
    for (const row of await countOldest(db, found.slice(at, at + atOnce), limit)) {
      const id = Number(row.webhook_id);
      const pending = counts.get(id) ?? {
        waiting: 0,
        failing: 0,
        waitingSince: null,
        oldest: null,
        hours: [],
      };
      counts.set(id, pending);
      add(pending, row);
    }
  }
  return counts;
};
