import type { Knex } from 'knex';
import type { Attempt } from '../../../../shared/contracts/webhooks';
import type { QueuedAgain } from '../rules/recovery';
import { ATTEMPTS_TABLE, DELIVERIES_TABLE, type DeliveryRow } from '../tables';
import { type AttemptEnd, endOfAttempt, readAttemptEnds } from './attempts';
import { ASIDE_UNTIL, HELD_UNTIL } from './ordering';
import { getDeliveryStore } from './store';
import type { App } from '../../app';
import type { Db, Tx } from '../../database/db';

/** Sending deliveries again through the queue, many at a time. */

const COLUMNS = [
  'id',
  'webhook_id',
  'event',
  'status',
  'tries',
  'is_test',
  'due_at',
  'owner',
  'site_instance',
] as const;

type Row = Pick<DeliveryRow, (typeof COLUMNS)[number]>;

const rows = (db: Db): Knex.QueryBuilder => db.table(DELIVERIES_TABLE);

/** Failed ones begin anew, with their whole schedule: the attempts they had use up nothing of it. */
const startAnew = async (tx: Tx, ids: readonly number[], now: number): Promise<void> => {
  if (ids.length === 0) return;
  await rows(tx)
    .whereIn('id', [...ids])
    .update({
      status: 'pending',
      due_at: now,
      next_attempt_at: now,
      finished_at: null,
      extra_tries: tx.knex.ref('tries'),
      paused_ms: 0,
      // The log tells by it what was never tried.
      error: tx.raw('CASE WHEN tries = 0 THEN NULL ELSE error END'),
    });
};

/** Those that wait for their next try are due now; by the schedule they are due as before. */
const advance = async (tx: Tx, ids: readonly number[], now: number): Promise<void> => {
  if (ids.length === 0) return;
  await rows(tx)
    .whereIn('id', [...ids])
    .update({ due_at: now });
};

/**
 * Makes failing and failed deliveries due now, in a transaction. One whose attempt is under way stays as
 * it is: it has what it was to get.
 * @param isHeld whether an event may not be sent now
 * @returns how many attempts each has had that is due now or under way, by the id of its row; what was
 * sent meanwhile, is a test, belongs to another site or is held is absent.
 */
export const sendAgain = async (
  tx: Tx,
  app: App,
  ids: readonly number[],
  isHeld: (event: string) => Promise<boolean>
): Promise<Map<number, number>> => {
  const found = (await rows(tx)
    .select(...COLUMNS)
    .whereIn('id', [...ids])
    .orderBy('id')
    .forUpdate()) as Row[];
  const now = getDeliveryStore(app).now();
  const tries = new Map<number, number>();
  const anew: number[] = [];
  const advanced: number[] = [];
  for (const row of found) {
    const id = Number(row.id);
    const dueAt = row.due_at === null ? null : Number(row.due_at);
    if (row.status === 'sent' || row.is_test || app.site.isForeign(row)) continue;
    if (dueAt === ASIDE_UNTIL || (await isHeld(row.event))) continue;
    if (row.status === 'failed') {
      if (dueAt === null) anew.push(id);
    } else if (dueAt === null) {
      continue;
    } else if (row.owner === null && dueAt > now) advanced.push(id);
    tries.set(id, Number(row.tries));
  }
  await startAnew(tx, anew, now);
  await advance(tx, advanced, now);
  return tries;
};

interface FoundAgain extends QueuedAgain {
  /** It is due for nobody: it waits for another of its record, or for a module. */
  isHeld: boolean;
}

/** What has become of deliveries that were to be sent again, by the ids of their rows. */
export const readAgain = async (
  db: Db,
  ids: readonly number[]
): Promise<Map<number, FoundAgain>> => {
  const found = (await rows(db)
    .select('id', 'status', 'tries', 'due_at')
    .whereIn('id', [...ids])) as Pick<DeliveryRow, 'id' | 'status' | 'tries' | 'due_at'>[];
  return new Map(
    found.map(({ id, status, tries, due_at: dueAt }) => [
      Number(id),
      {
        ...{ status, tries: Number(tries), isDue: dueAt !== null },
        isHeld: Number(dueAt) >= HELD_UNTIL,
      },
    ])
  );
};

interface SeveralEnds {
  /** Attempts made so far, as of the same moment. */
  tries: number;
  /** Whether each attempt that the log has as a row succeeded, oldest first. */
  ends: boolean[];
}

/** How the attempts of some deliveries ended, by the ids of their rows. One statement: nothing ends within it. */
export const readEnds = async (
  db: Db,
  ids: readonly number[]
): Promise<Map<number, SeveralEnds>> => {
  const several = new Map<number, SeveralEnds>();
  if (ids.length === 0) return several;
  const found = (await db
    .table(`${DELIVERIES_TABLE} as d`)
    .join(`${ATTEMPTS_TABLE} as a`, 'a.delivery_id', 'd.id')
    .select('d.id', 'd.tries', 'a.error')
    .whereIn('d.id', [...ids])
    .orderBy('a.id')) as { id: number; tries: number; error: string | null }[];
  for (const { id, tries, error } of found) {
    const one = several.get(Number(id)) ?? { tries: Number(tries), ends: [] };
    one.ends.push(error === null);
    several.set(Number(id), one);
  }
  return several;
};

/** A delivery of the log with how its attempts ended, for figures that an earlier version did not keep. */
export interface TriedDelivery {
  id: number;
  webhook: number;
  /** When it was made, epoch milliseconds. */
  at: number;
  /** It was given up. */
  failed: boolean;
  /** A test, or made by another site: it counts for nothing. */
  isForeign: boolean;
  /** Oldest first. */
  attempts: AttemptEnd[];
}

const TRIED_COLUMNS = [
  'id',
  'webhook_id',
  'created_at',
  'status',
  'is_test',
  'site_instance',
  'attempts',
] as const;

type TriedRow = Pick<DeliveryRow, (typeof TRIED_COLUMNS)[number]>;

const withEnds = async (db: Db, found: readonly TriedRow[]): Promise<TriedDelivery[]> => {
  if (found.length === 0) return [];
  const ids = found.map(({ id }) => Number(id));
  const appended = await readAttemptEnds(db, ids);
  return found.map((row) => ({
    id: Number(row.id),
    webhook: Number(row.webhook_id),
    at: Number(row.created_at),
    failed: row.status === 'failed',
    isForeign: Boolean(row.is_test) || db.site.isForeign(row),
    attempts: [
      ...(JSON.parse(row.attempts) as Attempt[]).map(endOfAttempt),
      ...(appended.get(Number(row.id)) ?? []),
    ],
  }));
};

/** Up to `limit` deliveries of the log up to an id, newest first. */
export const readDeliveriesUpTo = async (
  db: Db,
  upTo: number,
  limit: number
): Promise<TriedDelivery[]> => {
  const found = (await rows(db)
    .select(TRIED_COLUMNS)
    .where('id', '<=', upTo)
    .orderBy('id', 'desc')
    .limit(limit)) as TriedRow[];
  return withEnds(db, found);
};

/** Of the newest `among` deliveries of a webhook, the newest `limit` that were tried. */
export const readNewestTried = async (
  db: Db,
  webhook: number,
  { among, limit }: { among: number; limit: number }
): Promise<TriedDelivery[]> => {
  const newest = rows(db)
    .select('tries', ...TRIED_COLUMNS)
    .where({ webhook_id: webhook })
    .orderBy('id', 'desc')
    .limit(among);
  const found = (await (db.knex as Knex)
    .select(TRIED_COLUMNS)
    .from(newest.as('newest'))
    .where('tries', '>', 0)
    .orderBy('id', 'desc')
    .limit(limit)) as TriedRow[];
  return withEnds(db, found);
};

/** The id of the newest delivery; 0: there is none. */
export const newestDelivery = async (db: Db): Promise<number> => {
  const [row] = (await rows(db).max({ id: 'id' })) as { id: number | null }[];
  return Number(row?.id ?? 0);
};
