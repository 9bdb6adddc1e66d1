import { randomUUID } from 'node:crypto';
import type { Knex } from 'knex';
import { inChunks } from '../../database/written-rows';
import {
  type ItemState,
  RECOVERIES_TABLE,
  RECOVERY_ITEMS_TABLE,
  type RecoveryItemRow,
  type RecoveryKind,
  type RecoveryRow,
  WEBHOOKS_TABLE,
} from '../tables';
import type { FoundItem, QueuedItem } from './sources';
import type { App } from '../../app';
import type { Db, Tx } from '../../database/db';

/** The only code that writes recoveries and their items. */

const REMOVED_AT_ONCE = 500;
/** Items whose ends are looked at together. */
const READ_AT_ONCE = 500;
const DAY_MS = 86_400_000;
/** A preview that nobody has started by then. */
const PREVIEW_DAYS = 1;

export const recoveries = (db: Db): Knex.QueryBuilder => db.table(RECOVERIES_TABLE);

const recoveryItems = (db: Db): Knex.QueryBuilder => db.table(RECOVERY_ITEMS_TABLE);

/** The values of a new recovery. */
interface NewRecovery {
  kind: RecoveryKind;
  /** As its source understands it; stored as JSON. */
  filter: unknown;
  boundary: number;
  matching: number;
}

const byToken = async (db: Db, token: string): Promise<RecoveryRow | undefined> =>
  (await recoveries(db).where({ token }).first()) as RecoveryRow | undefined;

/** Stores a preview, or a recovery that begins now, in the caller's transaction where there is one. */
export const insertRecovery = (
  app: App,
  { filter, ...given }: NewRecovery,
  state: 'preview' | 'running' = 'running'
): Promise<RecoveryRow> =>
  app.db.retrying(async (tx) => {
    const token = randomUUID();
    const at = app.clock.now();
    await recoveries(tx).insert({
      ...{ ...given, token, state, filter: JSON.stringify(filter) },
      ...{ queued: 0, sent: 0, failed: 0 },
      ...{ created_at: at, moved_at: at, due_at: state === 'running' ? at : null },
    });
    return (await byToken(tx, token)) as RecoveryRow;
  });

/**
 * Makes a preview the recovery that it showed.
 * @returns `used` where it was started before, null where there is none
 */
export const startPreview = (app: App, token: string): Promise<RecoveryRow | 'used' | null> =>
  app.db.retrying(async (tx) => {
    const at = app.clock.now();
    const started = await recoveries(tx)
      .where({ token, state: 'preview' })
      .update({ state: 'running', created_at: at, moved_at: at, due_at: at });
    const row = await byToken(tx, token);
    if (!row) return null;
    return started === 1 ? row : 'used';
  });

/** All but previews. */
export const started = (db: Db): Knex.QueryBuilder => recoveries(db).whereNot('state', 'preview');

/** Locks a recovery until the transaction ends: whatever changes it or its items does so first. */
export const lockRecovery = async (tx: Tx, id: number): Promise<RecoveryRow | undefined> =>
  (await started(tx).where({ id }).forUpdate().first()) as RecoveryRow | undefined;

/** When each recovery is to be looked at. */
export const dueRecoveries = async (app: App): Promise<Map<number, number>> => {
  const found = (await recoveries(await app.db.current())
    .select('id', 'due_at')
    .whereNotNull('due_at')) as Pick<RecoveryRow, 'id' | 'due_at'>[];
  return new Map(found.map(({ id, due_at: dueAt }) => [Number(id), Number(dueAt)]));
};

/**
 * Takes a recovery that is to be looked at, so that other processes leave it alone until then.
 * @returns null where another process has
 */
export const takeRecovery = async (
  tx: Tx,
  id: number,
  until: number
): Promise<RecoveryRow | null> => {
  const taken = await started(tx)
    .where({ id })
    .where('due_at', '<=', tx.clock.now())
    .update({ due_at: until });
  return taken === 1 ? ((await lockRecovery(tx, id)) ?? null) : null;
};

/** Stores items that are not there yet. The caller has locked the recovery. */
export const keepItems = async (
  tx: Tx,
  recovery: number,
  found: readonly FoundItem[]
): Promise<void> => {
  for (const part of inChunks(found)) {
    await recoveryItems(tx)
      .insert(
        part.map(({ ref, webhook, at, delivery }) => ({
          ...{ recovery_id: recovery, ref, webhook_id: webhook, at },
          ...{ delivery_id: delivery, state: 'waiting' },
        }))
      )
      .onConflict(['recovery_id', 'ref'])
      .ignore();
  }
};

export const countItems = async (db: Db, recovery: number): Promise<number> => {
  const [row] = (await recoveryItems(db).where({ recovery_id: recovery }).count({ n: '*' })) as {
    n: number | string;
  }[];
  return Number(row?.n ?? 0);
};

const waitingItems = (db: Db, recovery: number): Knex.QueryBuilder =>
  recoveryItems(db).where({ recovery_id: recovery, state: 'waiting' });

/** Items of a recovery and a webhook that wait, the oldest first. */
export const waitingOf = async (
  db: Db,
  recovery: number,
  webhook: number,
  limit: number
): Promise<RecoveryItemRow[]> =>
  (await waitingItems(db, recovery)
    .where({ webhook_id: webhook })
    .orderBy(['at', 'ref'])
    .limit(limit)) as RecoveryItemRow[];

/** The next items of a recovery that are queued, by their ids. */
export const queuedAfter = async (
  db: Db,
  recovery: number,
  after: number
): Promise<RecoveryItemRow[]> =>
  (await recoveryItems(db)
    .where({ recovery_id: recovery, state: 'queued' })
    .where('id', '>', after)
    .orderBy('id')
    .limit(READ_AT_ONCE)) as RecoveryItemRow[];

/** Sets items of a recovery to a state. */
export const setItems = async (tx: Tx, ids: readonly number[], state: ItemState): Promise<void> => {
  if (ids.length === 0) return;
  await recoveryItems(tx)
    .whereIn('id', [...ids])
    .update({ state });
};

/** Marks those items as queued that are. */
export const setQueued = async (
  tx: Tx,
  items: readonly RecoveryItemRow[],
  queued: ReadonlyMap<number, QueuedItem>
): Promise<void> => {
  /** Most have had the same number of attempts: a statement for each. */
  const byTries = new Map<number, number[]>();
  for (const { id, ref, delivery_id: known } of items) {
    const one = queued.get(Number(ref));
    if (!one) continue;
    if (Number(known) !== one.delivery) {
      await recoveryItems(tx).where({ id }).update({ delivery_id: one.delivery });
    }
    byTries.set(one.tries, [...(byTries.get(one.tries) ?? []), Number(id)]);
  }
  for (const [tries, ids] of byTries) {
    await recoveryItems(tx).whereIn('id', ids).update({ state: 'queued', tries });
  }
};

/** Up to `limit` items of a recovery, then the recovery. @returns whether it is gone. */
const removePart = (app: App, id: number): Promise<boolean> =>
  app.db.retrying(async (tx) => {
    const ids = (await recoveryItems(tx)
      .where({ recovery_id: id })
      .limit(REMOVED_AT_ONCE)
      .pluck('id')) as number[];
    if (ids.length > 0) await recoveryItems(tx).whereIn('id', ids).delete();
    if (ids.length === REMOVED_AT_ONCE) return false;
    await recoveries(tx).where({ id }).delete();
    return true;
  });

/**
 * Removes previews that nobody started, and recoveries that ended before the log's days, in small batches.
 * @param pause between two batches
 */
export const removeOldRecoveries = async (
  app: App,
  logDays: number,
  pause: () => Promise<void>,
  now = Date.now()
): Promise<void> => {
  const db = await app.db.current();
  const ids = (await recoveries(db)
    .whereNull('due_at')
    .where((old) => {
      old
        .where({ state: 'preview' })
        .where('created_at', '<', now - PREVIEW_DAYS * DAY_MS)
        .orWhere('finished_at', '<', now - logDays * DAY_MS);
    })
    .pluck('id')) as number[];
  for (const id of ids) {
    while (!(await removePart(app, Number(id)))) await pause();
    await pause();
  }
};

/** Webhooks of which items wait, by their ids; each costs a step into an index. */
const waitingWebhooks = (db: Db, recovery: number): Knex.QueryBuilder => {
  const first = db
    .table(`${RECOVERY_ITEMS_TABLE} as i`)
    .select('i.id')
    .where({ 'i.recovery_id': recovery, 'i.state': 'waiting' })
    .whereRaw('?? = ??', ['i.webhook_id', 'w.id'])
    .limit(1);
  return db.table(`${WEBHOOKS_TABLE} as w`).whereRaw('(?) IS NOT NULL', [first]).orderBy('w.id');
};

/** Only webhooks that are sent to now. */
const whereServed = (app: App, webhooks: Knex.QueryBuilder, now: number): Knex.QueryBuilder =>
  webhooks
    .where('w.active', true)
    .where((paused) => {
      paused.whereNull('w.paused_until').orWhere('w.paused_until', '<=', now);
    })
    .where((own) => {
      own.whereNull('w.site_instance').orWhere('w.site_instance', app.site.instance);
    });

/** Up to `limit` webhooks of which items of a recovery wait, and that are sent to now, but for some. */
export const servedWebhooks = async (
  db: Db,
  app: App,
  recovery: number,
  { now, limit, without }: { now: number; limit: number; without: readonly number[] }
): Promise<number[]> => {
  const waiting = waitingWebhooks(db, recovery)
    .whereNotIn('w.id', [...without])
    .limit(limit);
  const ids = (await whereServed(app, waiting, now).pluck('w.id')) as number[];
  return ids.map(Number);
};

/** The active ones among some webhooks. */
export const servedAmong = async (
  db: Db,
  app: App,
  webhooks: readonly number[],
  now: number
): Promise<Set<number>> => {
  if (webhooks.length === 0) return new Set();
  const among = db.table(`${WEBHOOKS_TABLE} as w`).whereIn('w.id', [...webhooks]);
  const ids = (await whereServed(app, among, now).pluck('w.id')) as number[];
  return new Set(ids.map(Number));
};

/** True if items of an existing webhook wait. */
export const hasWaitingWebhook = async (db: Db, recovery: number): Promise<boolean> =>
  Boolean(await waitingWebhooks(db, recovery).first('w.id'));

/** A webhook, there or gone, of which items wait; null: there is none. */
export const anyWaitingWebhook = async (db: Db, recovery: number): Promise<number | null> => {
  const row = (await waitingItems(db, recovery).first('webhook_id')) as
    Pick<RecoveryItemRow, 'webhook_id'> | undefined;
  return row ? Number(row.webhook_id) : null;
};
