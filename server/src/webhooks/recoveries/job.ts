import type { Knex } from 'knex';
import { countOf } from '../../database/retry';
import { DAY_MS, errorText } from '../../runtime/text';
import type { GroupHandler } from '../../scheduling/types';
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
import { createDeliveriesSource, createJournalSource, type RecoverySource } from './sources';
import type { App } from '../../app';
import type { Db, Tx } from '../../database/db';

/** How long other processes skip a recovery that one is looking at; a crash delays it by that. */
const LOOK_MS = 10_000;
/** Items that are looked at, left out or removed together. */
const AT_ONCE = 500;
const PREVIEW_DAYS = 1;

export const recoveries = (db: Db): Knex.QueryBuilder => db.table(RECOVERIES_TABLE);

const recoveryItems = (db: Db): Knex.QueryBuilder => db.table(RECOVERY_ITEMS_TABLE);

/** All but previews. */
export const started = (db: Db): Knex.QueryBuilder => recoveries(db).whereNot('state', 'preview');

/** Locks a recovery until the transaction ends: every change of it or its items does that first. */
export const lockRecovery = async (tx: Tx, id: number): Promise<RecoveryRow | undefined> =>
  (await started(tx).where({ id }).forUpdate().first()) as RecoveryRow | undefined;

const waitingItems = (db: Db, recovery: number): Knex.QueryBuilder =>
  recoveryItems(db).where({ recovery_id: recovery, state: 'waiting' });

const waitingOf = async (db: Db, recovery: number, webhook: number, limit: number) =>
  (await waitingItems(db, recovery)
    .where({ webhook_id: webhook })
    .orderBy(['at', 'ref'])
    .limit(limit)) as RecoveryItemRow[];

const setItems = async (tx: Tx, ids: readonly number[], state: ItemState): Promise<void> => {
  if (ids.length === 0) return;
  await recoveryItems(tx).whereIn('id', ids).update({ state });
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

/** A webhook, there or gone, of which items wait; null: there is none. */
const anyWaitingWebhook = async (db: Db, recovery: number): Promise<number | null> => {
  const row = (await waitingItems(db, recovery).first('webhook_id')) as
    Pick<RecoveryItemRow, 'webhook_id'> | undefined;
  return row ? Number(row.webhook_id) : null;
};

type Changes = Record<'queued' | 'sent' | 'failed' | 'skipped', number>;

/** Something that is queued and has not had an attempt since. */
interface Untried {
  webhook: number;
  /** It waits for an earlier delivery, or for a module. */
  isHeld: boolean;
}

const isOpen = (row: RecoveryRow | undefined): boolean =>
  row?.state === 'running' || row?.state === 'paused';

const isToCollect = (row: RecoveryRow | undefined): boolean =>
  isOpen(row) && row?.collected_at === null;

/** Notes how the first attempts ended of some items that are queued. @returns what is still untried */
const settlePart = async (tx: Tx, queued: readonly RecoveryItemRow[], changes: Changes) => {
  const ids = queued.map(({ delivery_id: id }) => Number(id));
  const again = await readAgain(tx, ids);
  const hadSeveral = queued.flatMap(({ delivery_id: id, tries }) =>
    Number(again.get(Number(id))?.tries) > Number(tries) + 1 ? Number(id) : []
  );
  const ends = await readEnds(tx, hadSeveral);
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
  for (const outcome of ['sent', 'failed'] as const) {
    await setItems(tx, ended[outcome], outcome);
    changes[outcome] += ended[outcome].length;
  }
  return untried;
};

const settle = async (tx: Tx, recovery: number, changes: Changes): Promise<Untried[]> => {
  const untried: Untried[] = [];
  for (let after = 0; ;) {
    const queued = (await recoveryItems(tx)
      .where({ recovery_id: recovery, state: 'queued' })
      .where('id', '>', after)
      .orderBy('id')
      .limit(AT_ONCE)) as RecoveryItemRow[];
    const last = queued.at(-1);
    if (!last) return untried;
    untried.push(...(await settlePart(tx, queued, changes)));
    after = Number(last.id);
  }
};

/** The kind of work that recoveries are, as the scheduler and its log lines name it. */
export const RECOVERIES = 'switchboard recoveries';

/** At once on a node. */
const TURNS = 4;
/** When a recovery is looked at again whose look failed. */
const FAILED_AGAIN_MS = 5000;

/** Says that a recovery, or any (`null`), may be looked at now. For the moment after a commit; never throws. */
export const announceRecoveries = (app: App, id: number | null): void =>
  app.scheduler.announce(RECOVERIES, id, app.clock.now());

/** Works on recoveries. Any number of nodes may: each look is one transaction, so a process may die at any moment. */
export class RecoveryHandler implements GroupHandler {
  readonly turns = { groups: TURNS, nodes: 1 };
  private readonly sources: Readonly<Record<RecoveryKind, RecoverySource>>;
  /** Ends the current work early; the next process continues it. */
  private stopping = false;
  private readonly underWay = new Set<Promise<unknown>>();
  /** Looks of this process that are not awaited, by recovery. */
  private readonly begun = new Map<number, Promise<void>>();
  /** When recoveries are tried again whose look failed, epoch milliseconds. */
  private readonly restUntil = new Map<number, number>();

  constructor(
    private readonly app: App,
    readonly pollMs: number
  ) {
    this.sources = { deliveries: createDeliveriesSource(app), journal: createJournalSource(app) };
  }

  now() {
    return this.app.clock.now();
  }

  async dueTimes(): Promise<Map<number, number>> {
    await this.app.clock.sync();
    const found = (await recoveries(await this.app.db.current())
      .select('id', 'due_at')
      .whereNotNull('due_at')) as Pick<RecoveryRow, 'id' | 'due_at'>[];
    return new Map(
      found.map(({ id, due_at: at }) => [
        Number(id),
        Math.max(Number(at), this.restUntil.get(Number(id)) ?? 0),
      ])
    );
  }

  /** One that fails, or that has a million deliveries to collect, keeps no other waiting. */
  async work(groups: readonly number[]): Promise<void> {
    for (const id of groups) {
      while (this.begun.size >= TURNS) await Promise.race(this.begun.values());
      if (!this.begun.has(id)) this.begun.set(id, this.lookApart(id));
    }
  }

  async takeTurn(id: number): Promise<number | null> {
    if (this.stopping) return null;
    const looking = this.look(id);
    const settled = looking.catch(() => undefined).finally(() => this.underWay.delete(settled));
    this.underWay.add(settled);
    return looking;
  }

  async stop(): Promise<void> {
    this.stopping = true;
    await Promise.all(this.underWay);
  }

  /** Looks at a recovery and schedules its next look. */
  private async lookApart(id: number): Promise<void> {
    let again: number | null = null;
    try {
      again = await this.takeTurn(id);
      this.restUntil.delete(id);
    } catch (error) {
      this.app.log.error(`switchboard: recovery ${id} could not continue: ${errorText(error)}`);
      again = this.now() + FAILED_AGAIN_MS;
      this.restUntil.set(id, again);
    } finally {
      this.begun.delete(id);
    }
    if (again !== null) this.app.scheduler.announce(RECOVERIES, null, again);
  }

  /**
   * One look at a recovery, unless another process does: finds, settles and queues items. Returns the time of the next
   * look, epoch milliseconds; null: it has ended or another process continues.
   */
  private async look(id: number): Promise<number | null> {
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

  /** Stores everything that the recovery is about; then counts it. */
  private async collect(taken: RecoveryRow): Promise<void> {
    const id = Number(taken.id);
    for await (const found of this.sources[taken.kind].collect(taken)) {
      const items = found.map((item) => ({ ...item, recovery_id: id, state: 'waiting' }));
      const goesOn = await this.app.db.retrying(async (tx) => {
        const row = await lockRecovery(tx, id);
        if (this.stopping || !isToCollect(row)) return false;
        // But for those that are there.
        const conflict = { unique: ['recovery_id', 'ref'], then: 'ignore' } as const;
        await tx.insert(RECOVERY_ITEMS_TABLE, items, conflict);
        await recoveries(tx)
          .where({ id })
          .update({ due_at: this.now() + LOOK_MS });
        return true;
      });
      if (!goesOn) return;
    }
    await this.app.db.retrying(async (tx) => {
      const row = await lockRecovery(tx, id);
      if (!isToCollect(row)) return;
      const matching = await countOf(recoveryItems(tx).where({ recovery_id: id }));
      await recoveries(tx).where({ id }).update({ matching, collected_at: this.now() });
    });
  }

  private async served(webhooks: Knex.QueryBuilder): Promise<number[]> {
    const ids = (await webhooks
      .where('w.active', true)
      .where((paused) => {
        paused.whereNull('w.paused_until').orWhere('w.paused_until', '<=', this.now());
      })
      .where((own) => {
        own.whereNull('w.site_instance').orWhere('w.site_instance', this.app.site.instance);
      })
      .pluck('w.id')) as number[];
    return ids.map(Number);
  }

  /** Counts untried items by webhook: how many can be sent now, and how many cannot. */
  private async countUntried(tx: Tx, untried: readonly Untried[]) {
    const webhooks = [...new Set(untried.map(({ webhook }) => webhook))];
    const among = tx.table(`${WEBHOOKS_TABLE} as w`).whereIn('w.id', webhooks);
    const served = new Set(webhooks.length > 0 ? await this.served(among) : []);
    const counts = { free: new Map<number, number>(), stuck: new Map<number, number>() };
    for (const { webhook, isHeld } of untried) {
      const own = isHeld || !served.has(webhook) ? counts.stuck : counts.free;
      own.set(webhook, (own.get(webhook) ?? 0) + 1);
    }
    return counts;
  }

  /** Queues items of a webhook, those first that have waited longest. @returns whether any was */
  private async queueOf(
    tx: Tx,
    { id: recovery, kind }: RecoveryRow,
    { webhook, limit }: { webhook: number; limit: number },
    changes: Changes
  ): Promise<boolean> {
    const items = await waitingOf(tx, Number(recovery), webhook, limit);
    const queued = await this.sources[kind].queue(tx, items);
    const skipped: number[] = [];
    // Most have had the same number of attempts: a statement for each.
    const byTries = new Map<number, number[]>();
    for (const { id, ref, delivery_id: known } of items) {
      const one = queued.get(Number(ref));
      if (!one) {
        skipped.push(Number(id));
        continue;
      }
      if (Number(known) !== one.delivery) {
        await recoveryItems(tx).where({ id }).update({ delivery_id: one.delivery });
      }
      byTries.set(one.tries, [...(byTries.get(one.tries) ?? []), Number(id)]);
    }
    for (const [tries, ids] of byTries) {
      await recoveryItems(tx).whereIn('id', ids).update({ state: 'queued', tries });
    }
    await setItems(tx, skipped, 'skipped');
    changes.queued += queued.size;
    changes.skipped += skipped.length;
    return queued.size > 0;
  }

  /** Queues as much as may be untried at once, and announces its webhooks. @returns whether more waits */
  private async queue(tx: Tx, row: RecoveryRow, untried: readonly Untried[], changes: Changes) {
    const recovery = Number(row.id);
    const { free, stuck } = await this.countUntried(tx, untried);
    // So many at most share what may be untried at once.
    const waiting = waitingWebhooks(tx, recovery)
      .whereNotIn('w.id', fullOf(stuck))
      .limit(UNTRIED_AT_MOST);
    const served = await this.served(waiting);
    for (const [webhook, limit] of roomOf(served, free, stuck)) {
      if (await this.queueOf(tx, row, { webhook, limit }, changes)) {
        tx.onCommit(() => announceDeliveries(this.app, webhook));
      }
    }
    if (served.length > 0) return true;
    const left = await anyWaitingWebhook(tx, recovery);
    // Deleted webhooks come last: others may still be served.
    if (left !== null && !(await waitingWebhooks(tx, recovery).first('w.id'))) {
      const items = await waitingOf(tx, recovery, left, AT_ONCE);
      const ids = items.map(({ id }) => Number(id));
      await setItems(tx, ids, 'skipped');
      changes.skipped += ids.length;
    }
    return left !== null;
  }

  private async step(tx: Tx, row: RecoveryRow): Promise<number | null> {
    const id = Number(row.id);
    const changes: Changes = { queued: 0, sent: 0, failed: 0, skipped: 0 };
    const untried = await settle(tx, id, changes);
    const isReady = row.collected_at !== null;
    let isWaiting = !isReady;
    if (row.state === 'running' && isReady) {
      isWaiting = await this.queue(tx, row, untried, changes);
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

/** Removes some items of a recovery, then the recovery. @returns whether it is gone */
const removePart = (app: App, id: number): Promise<boolean> =>
  app.db.retrying(async (tx) => {
    const ids = (await recoveryItems(tx)
      .where({ recovery_id: id })
      .limit(AT_ONCE)
      .pluck('id')) as number[];
    if (ids.length > 0) await recoveryItems(tx).whereIn('id', ids).delete();
    if (ids.length === AT_ONCE) return false;
    await recoveries(tx).where({ id }).delete();
    return true;
  });

/** Removes unstarted previews, and recoveries that ended before the log's days, with pauses between. */
export const removeOldRecoveries = async (
  app: App,
  logDays: number,
  pause: () => Promise<void>
): Promise<void> => {
  const now = Date.now();
  const ids = (await recoveries(await app.db.current())
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
