import { errorText } from '../../runtime/text';
import type { ServedHandler } from '../../scheduling/types';
import { readAgain, readEnds } from './again';
import { announceDeliveries } from '../deliveries/store';
import { firstOutcome, fullOf, nextLook, roomOf, UNTRIED_AT_MOST } from '../rules/recovery';
import type { RecoveryItemRow, RecoveryKind, RecoveryRow } from '../tables';
import { createDeliveriesSource, createJournalSource, type RecoverySource } from './sources';
import {
  anyWaitingWebhook,
  countItems,
  dueRecoveries,
  hasWaitingWebhook,
  keepItems,
  lockRecovery,
  queuedAfter,
  recoveries,
  servedAmong,
  servedWebhooks,
  setItems,
  setQueued,
  takeRecovery,
  waitingOf,
} from './store';
import type { App } from '../../app';
import type { Tx } from '../../database/db';

/** For so long other processes leave a recovery alone that one looks at: a dead one delays it by that. */
const LOOK_MS = 10_000;
/** Webhooks that share what may be untried at once. */
const SERVED_AT_MOST = UNTRIED_AT_MOST;
/** Items of a webhook that is gone that are left out together. */
const SKIPPED_AT_ONCE = 500;

/** What a look changed. */
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
    // Another attempt may have ended since it was found: its ends go with its tries of then.
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

/** The same of all that are queued. */
const settle = async (tx: Tx, recovery: number, changes: Changes): Promise<Untried[]> => {
  const untried: Untried[] = [];
  for (let after = 0; ;) {
    const queued = await queuedAfter(tx, recovery, after);
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
  private stopping = false;

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
      const row = await takeRecovery(tx, id, this.now() + LOOK_MS);
      return row && isToCollect(row) ? row : row && this.step(tx, row);
    });
    if (typeof looked === 'number' || looked === null) return looked;
    await this.collect(looked);
    if (this.stopping) return null;
    return this.app.db.retrying(async (tx) => {
      const row = await lockRecovery(tx, id);
      return row ? this.step(tx, row) : null;
    });
  }

  /** What is under way ends early; the next process goes on with it. */
  stop(): void {
    this.stopping = true;
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
      const matching = await countItems(tx, id);
      await recoveries(tx).where({ id }).update({ matching, collected_at: this.now() });
    });
  }

  /** Of what is untried, how many of each webhook can be sent now, and how many cannot. */
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
      // Those that are gone come last: others may still be served.
      if (waiting !== null && !(await hasWaitingWebhook(tx, recovery))) {
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
  let stopping = false;

  const look = async (id: number): Promise<number | null> => {
    if (stopping) return null;
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
      const due = await dueRecoveries(app);
      for (const [id, at] of due) due.set(id, Math.max(at, restUntil.get(id) ?? 0));
      return due;
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
      stopping = true;
      job.stop();
      await Promise.all(underWay);
    },
  };
};
