import type { Knex } from 'knex';
import { inChunks } from '../../database/written-rows';
import { errorText } from '../../runtime/text';
import type { ServedHandler } from '../../scheduling/types';
import { readAgain, readEnds } from './again';
import { announceDeliveries } from '../deliveries/store';
import { firstOutcome, fullOf, nextLook, roomOf, UNTRIED_AT_MOST } from '../rules/recovery';
import {
  type ItemState,
  RECOVERIES_TABLE,
  RECOVERY_ITEMS_TABLE,
  type RecoveryItemRow,
  type RecoveryKind,
  type RecoveryRow,
  WEBHOOKS_TABLE,
} from '../tables';
import {
  createDeliveriesSource,
  createJournalSource,
  type FoundItem,
  type QueuedItem,
  type RecoverySource,
} from './sources';
import type { App } from '../../app';
import type { Db, Tx } from '../../database/db';

/** For so long other processes leave a recovery alone that one looks at: a dead one delays it by that. */
const LOOK_MS = 10_000;
/** Webhooks that share what may be untried at once. */
const SERVED_AT_MOST = UNTRIED_AT_MOST;
/** Items of a webhook that is gone that are left out together. */
const SKIPPED_AT_ONCE = 500;

const REMOVED_AT_ONCE = 500;
/** Items whose ends are looked at together. */
const READ_AT_ONCE = 500;
const DAY_MS = 86_400_000;
/** A preview that nobody has started by then. */
const PREVIEW_DAYS = 1;

export const recoveries = (db: Db): Knex.QueryBuilder => db.table(RECOVERIES_TABLE);

const recoveryItems = (db: Db): Knex.QueryBuilder => db.table(RECOVERY_ITEMS_TABLE);

/** All but previews. */
export const started = (db: Db): Knex.QueryBuilder => recoveries(db).whereNot('state', 'preview');

/** Locks a recovery until the transaction ends: whatever changes it or its items does so first. */
export const lockRecovery = async (tx: Tx, id: number): Promise<RecoveryRow | undefined> =>
  (await started(tx).where({ id }).forUpdate().first()) as RecoveryRow | undefined;

/** Stores items that are not there yet. The caller has locked the recovery. */
const keepItems = async (tx: Tx, recovery: number, found: readonly FoundItem[]): Promise<void> => {
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

const waitingItems = (db: Db, recovery: number): Knex.QueryBuilder =>
  recoveryItems(db).where({ recovery_id: recovery, state: 'waiting' });

/** Items of a recovery and a webhook that wait, the oldest first. */
const waitingOf = async (
  db: Db,
  recovery: number,
  webhook: number,
  limit: number
): Promise<RecoveryItemRow[]> =>
  (await waitingItems(db, recovery)
    .where({ webhook_id: webhook })
    .orderBy(['at', 'ref'])
    .limit(limit)) as RecoveryItemRow[];

/** Sets items of a recovery to a state. */
const setItems = async (tx: Tx, ids: readonly number[], state: ItemState): Promise<void> => {
  if (ids.length === 0) return;
  await recoveryItems(tx)
    .whereIn('id', [...ids])
    .update({ state });
};

/** Marks those items as queued that are. */
const setQueued = async (
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
const servedWebhooks = async (
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
const servedAmong = async (
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

/** A webhook, there or gone, of which items wait; null: there is none. */
const anyWaitingWebhook = async (db: Db, recovery: number): Promise<number | null> => {
  const row = (await waitingItems(db, recovery).first('webhook_id')) as
    Pick<RecoveryItemRow, 'webhook_id'> | undefined;
  return row ? Number(row.webhook_id) : null;
};

/** The changes that a look made. */
interface Changes {
  queued: number;
  sent: number;
  failed: number;
  skipped: number;
}

/** Something that is queued and has not had an attempt since. */
interface Untried {
  webhook: number;
  /** It waits for another one, or for a module. */
  isHeld: boolean;
}

const isOpen = (row: RecoveryRow | undefined): boolean =>
  row?.state === 'running' || row?.state === 'paused';

const isToCollect = (row: RecoveryRow | undefined): boolean =>
  isOpen(row) && row?.collected_at === null;

/** Notes how the first attempts ended of some items that are queued. @returns what is still untried */
const settlePart = async (
  tx: Tx,
  queued: readonly RecoveryItemRow[],
  changes: Changes
): Promise<Untried[]> => {
  const again = await readAgain(
    tx,
    queued.map(({ delivery_id: id }) => Number(id))
  );
  const severalSince = queued
    .filter(({ delivery_id: id, tries }) => {
      const known = again.get(Number(id));
      return known !== undefined && known.tries > Number(tries) + 1;
    })
    .map(({ delivery_id: id }) => Number(id));
  const ends = await readEnds(tx, severalSince);
  const ended: Record<'sent' | 'failed', number[]> = { sent: [], failed: [] };
  const untried: Untried[] = [];
  for (const item of queued) {
    const delivery = Number(item.delivery_id);
    const found = again.get(delivery);
    const seen = ends.get(delivery);
    // Another attempt may have ended since: the ends belong to the attempts of that time.
    const now = found && seen ? { ...found, tries: seen.tries } : found;
    const outcome = firstOutcome(Number(item.tries), now, seen?.ends ?? []);
    if (outcome) ended[outcome].push(Number(item.id));
    else untried.push({ webhook: Number(item.webhook_id), isHeld: found?.isHeld ?? false });
  }
  await setItems(tx, ended.sent, 'sent');
  await setItems(tx, ended.failed, 'failed');
  changes.sent += ended.sent.length;
  changes.failed += ended.failed.length;
  return untried;
};

/** Settles all that are queued. */
const settle = async (tx: Tx, recovery: number, changes: Changes): Promise<Untried[]> => {
  const untried: Untried[] = [];
  for (let after = 0; ;) {
    const queued = (await recoveryItems(tx)
      .where({ recovery_id: recovery, state: 'queued' })
      .where('id', '>', after)
      .orderBy('id')
      .limit(READ_AT_ONCE)) as RecoveryItemRow[];
    const last = queued.at(-1);
    if (!last) return untried;
    untried.push(...(await settlePart(tx, queued, changes)));
    after = Number(last.id);
  }
};

/** Leaves out items of a webhook that is gone, some at once. */
const skipGone = async (
  tx: Tx,
  recovery: number,
  webhook: number,
  changes: Changes
): Promise<void> => {
  const items = await waitingOf(tx, recovery, webhook, SKIPPED_AT_ONCE);
  await setItems(
    tx,
    items.map(({ id }) => Number(id)),
    'skipped'
  );
  changes.skipped += items.length;
};

/** Works on recoveries: each look is one transaction, so a process may die at any moment. */
class RecoveryJob {
  /** Ends the current work early; the next process goes on with it. */
  stopping = false;

  constructor(
    private readonly app: App,
    private readonly sources: Readonly<Record<RecoveryKind, RecoverySource>>
  ) {}

  /**
   * Looks at a recovery, unless another process does: finds its items, notes the attempts that what is
   * queued has had, and queues more.
   * @returns when it is to be looked at again, epoch milliseconds; null: another process will, or it has ended
   */
  async look(id: number): Promise<number | null> {
    const looked = await this.app.db.retrying(async (tx) => {
      const taken = await started(tx)
        .where({ id })
        .where('due_at', '<=', this.now())
        .update({ due_at: this.now() + LOOK_MS });
      const row = taken === 1 ? await lockRecovery(tx, id) : undefined;
      if (!row) return null;
      return isToCollect(row) ? row : this.step(tx, row);
    });
    if (typeof looked === 'number' || looked === null) return looked;
    await this.collect(looked);
    if (this.stopping) return null;
    return this.app.db.retrying(async (tx) => {
      const row = await lockRecovery(tx, id);
      return row ? this.step(tx, row) : null;
    });
  }

  private now() {
    return this.app.clock.now();
  }

  /** Stores everything that the recovery is about; then counts it. */
  private async collect(taken: RecoveryRow): Promise<void> {
    const id = Number(taken.id);
    let isCut = false;
    await this.sources[taken.kind].collect(taken, async (found) => {
      const goesOn = await this.app.db.retrying(async (tx) => {
        const row = await lockRecovery(tx, id);
        if (this.stopping || !isToCollect(row)) return false;
        await keepItems(tx, id, found);
        await recoveries(tx)
          .where({ id })
          .update({ due_at: this.now() + LOOK_MS });
        return true;
      });
      isCut ||= !goesOn;
      return goesOn;
    });
    if (isCut) return;
    await this.app.db.retrying(async (tx) => {
      const row = await lockRecovery(tx, id);
      if (!isToCollect(row)) return;
      const items = recoveryItems(tx).where({ recovery_id: id });
      const [counted] = (await items.count({ n: '*' })) as { n: number | string }[];
      const matching = Number(counted?.n ?? 0);
      await recoveries(tx).where({ id }).update({ matching, collected_at: this.now() });
    });
  }

  /** Counts untried items by webhook: how many can be sent now, and how many cannot. */
  private async countUntried(
    tx: Tx,
    untried: readonly Untried[]
  ): Promise<Record<'free' | 'stuck', Map<number, number>>> {
    const webhooks = [...new Set(untried.map(({ webhook }) => webhook))];
    const served = await servedAmong(tx, this.app, webhooks, this.now());
    const counts = { free: new Map<number, number>(), stuck: new Map<number, number>() };
    for (const { webhook, isHeld } of untried) {
      const own = isHeld || !served.has(webhook) ? counts.stuck : counts.free;
      own.set(webhook, (own.get(webhook) ?? 0) + 1);
    }
    return counts;
  }

  private async queueOf(
    tx: Tx,
    { id, kind }: RecoveryRow,
    webhook: number,
    limit: number,
    changes: Changes
  ): Promise<boolean> {
    const items = await waitingOf(tx, Number(id), webhook, limit);
    const queued = await this.sources[kind].queue(tx, items);
    const skipped = items
      .filter(({ ref }) => !queued.has(Number(ref)))
      .map(({ id: item }) => Number(item));
    await setQueued(tx, items, queued);
    await setItems(tx, skipped, 'skipped');
    changes.queued += queued.size;
    changes.skipped += skipped.length;
    return queued.size > 0;
  }

  /** Queues as much as may be untried at once. @returns the webhooks that have work now, and whether more waits */
  private async queue(
    tx: Tx,
    row: RecoveryRow,
    untried: readonly Untried[],
    changes: Changes
  ): Promise<{ woken: number[]; isWaiting: boolean }> {
    const recovery = Number(row.id);
    const woken: number[] = [];
    const { free, stuck } = await this.countUntried(tx, untried);
    const served = await servedWebhooks(tx, this.app, recovery, {
      now: this.now(),
      limit: SERVED_AT_MOST,
      without: fullOf(stuck),
    });
    if (served.length === 0) {
      const waiting = await anyWaitingWebhook(tx, recovery);
      // Deleted webhooks come last: others may still be served.
      if (waiting !== null && !(await waitingWebhooks(tx, recovery).first('w.id'))) {
        await skipGone(tx, recovery, waiting, changes);
      }
      return { woken, isWaiting: waiting !== null };
    }
    for (const [webhook, limit] of roomOf(served, free, stuck)) {
      if (await this.queueOf(tx, row, webhook, limit, changes)) woken.push(webhook);
    }
    return { woken, isWaiting: true };
  }

  private async step(tx: Tx, row: RecoveryRow): Promise<number | null> {
    const id = Number(row.id);
    const changes: Changes = { queued: 0, sent: 0, failed: 0, skipped: 0 };
    const untried = await settle(tx, id, changes);
    const isReady = row.collected_at !== null;
    let isWaiting = !isReady;
    if (row.state === 'running' && isReady) {
      const queued = await this.queue(tx, row, untried, changes);
      isWaiting = queued.isWaiting;
      tx.onCommit(() => {
        for (const webhook of queued.woken) announceDeliveries(this.app, webhook);
      });
    } else if (row.state === 'paused' && isReady) {
      isWaiting = (await anyWaitingWebhook(tx, id)) !== null;
    }
    const hasMoved = Object.values(changes).some((count) => count > 0);
    const at = this.now();
    const movedAt = hasMoved ? at : Number(row.moved_at);
    const isTried = untried.length === 0 && changes.queued === 0;
    const isDone = isOpen(row) && isTried && !isWaiting;
    const isOver = isDone || (!isOpen(row) && isTried);
    // Nothing but a person ends a pause.
    const rests = row.state === 'paused' && isReady && isTried;
    const dueAt = isOver || rests ? null : nextLook(at, movedAt);
    await recoveries(tx)
      .where({ id })
      .update({
        queued: Number(row.queued) + changes.queued,
        sent: Number(row.sent) + changes.sent,
        failed: Number(row.failed) + changes.failed,
        moved_at: movedAt,
        due_at: dueAt,
        ...(isDone && { state: 'done', finished_at: at }),
      });
    return dueAt;
  }
}

/** The kind of work that recoveries are, as the scheduler and its log lines name it. */
export const RECOVERIES = 'switchboard recoveries';

/** At once on a node. */
const TURNS = 4;
/** When a recovery is looked at again whose look failed. */
const FAILED_AGAIN_MS = 5000;

/** Says that a recovery, or any (`null`), may be looked at now. For the moment after a commit; never throws. */
export const announceRecoveries = (app: App, id: number | null): void =>
  app.scheduler.announce(RECOVERIES, id, app.clock.now());

/**
 * Works on recoveries from this node. Any number of nodes may: each look is taken by one of them, and
 * changes all it changes in one transaction.
 */
export const createRecoveryHandler = (app: App, pollMs: number): ServedHandler => {
  const job = new RecoveryJob(app, {
    deliveries: createDeliveriesSource(app),
    journal: createJournalSource(app),
  });
  const underWay = new Set<Promise<unknown>>();
  /** Looks that were begun here and that nobody waits for, by their recoveries. */
  const begun = new Map<number, Promise<void>>();
  /** When recoveries are tried again whose look failed, epoch milliseconds. */
  const restUntil = new Map<number, number>();
  const now = () => app.clock.now();

  const look = async (id: number): Promise<number | null> => {
    if (job.stopping) return null;
    const looking = job.look(id);
    const settled = looking.catch(() => undefined).finally(() => underWay.delete(settled));
    underWay.add(settled);
    return looking;
  };

  /** Looks at a recovery, and says when it is to be looked at again. */
  const lookApart = async (id: number): Promise<void> => {
    let again: number | null = null;
    try {
      again = await look(id);
      restUntil.delete(id);
    } catch (error) {
      app.log.error(`switchboard: recovery ${id} could not go on: ${errorText(error)}`);
      again = now() + FAILED_AGAIN_MS;
      restUntil.set(id, again);
    } finally {
      begun.delete(id);
    }
    if (again !== null) app.scheduler.announce(RECOVERIES, null, again);
  };

  return {
    pollMs,
    now,
    async dueTimes() {
      await app.clock.sync();
      const found = (await recoveries(await app.db.current())
        .select('id', 'due_at')
        .whereNotNull('due_at')) as Pick<RecoveryRow, 'id' | 'due_at'>[];
      return new Map(
        found.map(({ id, due_at: at }) => [
          Number(id),
          Math.max(Number(at), restUntil.get(Number(id)) ?? 0),
        ])
      );
    },
    // One that fails, or that has a million deliveries to collect, keeps no other waiting.
    async work(groups) {
      for (const id of groups) {
        while (begun.size >= TURNS) await Promise.race(begun.values());
        if (!begun.has(id)) begun.set(id, lookApart(id));
      }
      return null;
    },
    takeTurn: look,
    turns: { groups: TURNS, nodes: 1 },
    async stop() {
      job.stopping = true;
      await Promise.all(underWay);
    },
  };
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
  pause: () => Promise<void>
): Promise<void> => {
  const now = Date.now();
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
