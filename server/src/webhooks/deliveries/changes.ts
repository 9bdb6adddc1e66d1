import type { Knex } from 'knex';
import type { Webhook } from '../../../../shared/contracts/webhooks';
import type { App } from '../../app';
import type { Tx } from '../../database/db';
import { QUEUE_STATES } from '../../queue/queue';
import { SECTIONS } from '../rules/delivery-state';
import { orderingKeys } from './limits';
import { WEBHOOKS_TABLE } from '../tables';
import {
  announceDeliveries,
  BY_HAND,
  type DeliveryStore,
  type EndCause,
  getDeliveryStore,
  type LeasedDelivery,
  PLACED_COLUMNS,
  type PlacedRow,
} from './store';

/** Why nothing was done with a delivery by hand. */
export type HandRefusal = 'absent' | 'finished' | 'held';

/** Changes of deliveries other than sending: by hand, webhook, module or import. Locks the queue before the log. */
export class DeliveryChanges {
  private readonly store: DeliveryStore;

  constructor(private readonly app: App) {
    this.store = getDeliveryStore(app);
  }

  /**
   * Queues a delivery for an immediate attempt, whatever its state and its webhook's.
   * @returns `held` while an attempt is under way or another one by hand is queued
   */
  handOver(id: number): Promise<'queued' | 'held' | 'absent'> {
    return this.app.db.retrying(async (tx) => {
      const known = (await this.store.queue.lock(tx, [id])).get(id);
      if (known?.isHeld || known?.group === BY_HAND) return 'held';
      const row = await this.store.find(tx, id);
      if (!row) return 'absent';
      const place = { state: 'ready' as const, dueAt: this.store.now() };
      const queued = { ...this.store.queued(row, BY_HAND), ...place };
      await this.store.queue.insert(tx, [queued], 'replace');
      return 'queued';
    });
  }

  /** How far a process that sends is with what was handed over. */
  async lookAtHandedOver(id: number): Promise<'waiting' | 'taken' | 'done'> {
    const row = (await this.store.queue.find(await this.app.db.current(), [id])).get(id);
    if (row?.group !== BY_HAND) return 'done';
    return row.isHeld ? 'taken' : 'waiting';
  }

  /** Withdraws a handed-over attempt that no process has taken. @returns whether it was withdrawn */
  takeBack(id: number): Promise<boolean> {
    return this.app.db.retrying(async (tx) => {
      const known = (await this.store.queue.lock(tx, [id])).get(id);
      if (known?.group !== BY_HAND || known.isHeld) return false;
      const row = await this.store.find(tx, id);
      // An unsent test is deleted; a resent delivery stays in the log.
      const isUnsentTest = Boolean(row?.is_test) && row?.status === 'pending';
      if (isUnsentTest) await this.store.rows(tx).where({ id }).delete();
      const isGone = !row || isUnsentTest || (row.status === 'sent' && !row.is_test);
      await this.store.queue.move(tx, [id], isGone ? null : this.store.queued(row));
      return true;
    });
  }

  /**
   * Ends a waiting delivery as `failed` by hand, which health and rules for switching off do not count.
   * @returns why it cannot end; NotFoundError (404) is thrown by the caller
   */
  skip(id: number): Promise<HandRefusal | null> {
    return this.byHand(id, (tx, row) => this.store.end(tx, [row], 'skipped'));
  }

  /** Unblocks later deliveries of its record; its schedule stays. */
  letPass(id: number): Promise<HandRefusal | null> {
    return this.byHand(id, async (tx) => {
      await this.store.rows(tx).where({ id }).update({ released_at: this.store.now() });
      await this.store.queue.letPass(tx, [id]);
    });
  }

  /**
   * Ends up to `limit` pending deliveries of a webhook without an attempt, which health does not count; tests stay.
   * @param force includes those under way, whose outcome is not recorded
   * @returns how many ended, and whether there are more
   */
  discard(webhook: number, limit: number, force: boolean) {
    return this.app.db.retrying(async (tx) => {
      const pending = () =>
        this.store
          .places(tx)
          .where({ group_id: webhook })
          .whereIn('section', [SECTIONS.waiting, SECTIONS.failing]);
      const found = force ? pending() : this.store.queue.free(pending());
      const ended = await this.endFound(tx, found.limit(limit), 'discarded');
      const byHand = { state: QUEUE_STATES.ready, group_id: BY_HAND };
      const sent = this.store.places(tx).select('id').where(byHand);
      const own = this.store.rows(tx).where({ webhook_id: webhook, status: 'pending' });
      // A delivery that is sent by hand comes back to its webhook if it fails.
      const isSent =
        !force && (await own.where({ is_test: false }).whereIn('id', sent).first('id'));
      return { ended, isLeft: Boolean(isSent || (await pending().first('id'))) };
    });
  }

  /** Deleted webhooks with pending deliveries in any state; null: those without a webhook. */
  async lostWebhooks(): Promise<(number | null)[]> {
    const db = await this.app.db.current();
    const lost = (await this.store
      .places(db)
      .distinct('group_id')
      .whereNot({ state: QUEUE_STATES.ended })
      .whereNotIn('group_id', db.table(WEBHOOKS_TABLE).select('id'))
      .whereNot({ group_id: BY_HAND })
      .pluck('group_id')) as number[];
    return [null, ...lost.map(Number)];
  }

  /** Ends up to `limit` pending deliveries of a deleted webhook, tests too, but those under way; returns how many. */
  endLost(webhook: number | null, limit: number): Promise<number> {
    return this.app.db.retrying(async (tx) => {
      if (webhook === null) {
        const nameless = this.store.rows(tx).whereNull('webhook_id');
        return this.endUnqueued(tx, nameless.limit(limit), 'webhook_deleted');
      }
      const found = this.store.queue.free(
        this.store.places(tx).where({ group_id: webhook }).whereNot({ state: QUEUE_STATES.ended })
      );
      return this.endFound(tx, found.limit(limit), 'webhook_deleted');
    });
  }

  /** Ends up to `limit` imported or foreign pending deliveries, which the original site sends; returns how many. */
  endImported(webhooks: readonly number[], limit: number): Promise<number> {
    return this.app.db.retrying((tx) => {
      const found = this.store.rows(tx).whereIn('webhook_id', [...webhooks]);
      return this.endUnqueued(tx, found.limit(limit), 'imported');
    });
  }

  /** Parks leased deliveries until `unpark`: their schedule stays unchanged. */
  async park(leases: readonly LeasedDelivery[]): Promise<void> {
    const outcomes = leases.map((lease) => {
      const { status, webhook } = lease.delivery;
      const columns = { group_id: webhook };
      const place = { dueAt: lease.dueAt, state: 'parked' as const, columns };
      // A finished one whose manual resend was interrupted by a crash has nothing to wait for.
      return { lease, next: status === 'pending' ? place : null };
    });
    await this.app.db.retrying((tx) => this.store.queue.settle(tx, outcomes));
  }

  async parkedEvents(): Promise<string[]> {
    const parked = this.store
      .places(await this.app.db.current())
      .where({ state: QUEUE_STATES.parked });
    return (await parked.distinct('event').pluck('event')) as string[];
  }

  /** Makes up to `limit` parked deliveries of an event ready again. @returns how many there were. */
  unpark(event: string, limit: number): Promise<number> {
    return this.app.db.retrying(async (tx) => {
      const ids = (await this.store
        .places(tx)
        .where({ state: QUEUE_STATES.parked, event })
        .limit(limit)
        .pluck('id')) as number[];
      await this.store.queue.setState(tx, ids, 'ready', 'parked');
      return ids.length;
    });
  }

  /** Makes these deliveries, which the caller has locked in the queue, due now with their whole schedule. */
  async restart(tx: Tx, rows: readonly PlacedRow[]): Promise<void> {
    if (rows.length === 0) return;
    const now = this.store.now();
    const ids = rows.map(({ id }) => id);
    const log = this.store.rows(tx).whereIn('id', ids);
    await log.update({
      status: 'pending',
      next_attempt_at: now,
      finished_at: null,
      // The attempts they had use up nothing of it.
      extra_tries: tx.knex.ref('tries'),
      paused_ms: 0,
      // The log tells by it what was never tried.
      error: tx.raw('CASE WHEN tries = 0 THEN NULL ELSE error END'),
    });
    const queued = rows.map((row) => {
      const error = Number(row.tries) === 0 ? null : row.error;
      return this.store.queued({ ...row, status: 'pending', error, next_attempt_at: now });
    });
    await this.store.queue.insert(tx, queued, 'replace');
  }

  /** Makes these deliveries, which the caller has locked in the queue, due now; their schedule stays. */
  async advance(tx: Tx, ids: readonly number[]): Promise<void> {
    if (ids.length === 0) return;
    const places = this.store.places(tx).whereIn('id', [...ids]);
    await places.update({ due_at: this.store.now() });
  }

  /** Applies a webhook's new order to waiting deliveries, in the same transaction: all queued earlier follow it. */
  async reorder(tx: Tx, { id, ordering }: Pick<Webhook, 'id' | 'ordering'>): Promise<void> {
    if (ordering !== 'by_record') await this.store.queue.dissolve(tx, id);
    else await this.store.queue.order(tx, id, orderingKeys(tx).where({ webhook_id: id }));
  }

  /** @returns how many of these ended. */
  private async endFound(tx: Tx, found: Knex.QueryBuilder, error: EndCause): Promise<number> {
    const ordered = found.orderBy(['error', 'created_at', 'id']).forUpdate();
    const ids: (number | string)[] = await ordered.pluck('id');
    const rows: PlacedRow[] = await this.store.rows(tx).select(PLACED_COLUMNS).whereIn('id', ids);
    await this.store.end(tx, rows, error);
    // Rows that the log has no more need no place.
    const known = new Set(rows.map(({ id }) => Number(id)));
    const stray = ids.map(Number).filter((id) => !known.has(id));
    if (stray.length > 0) await this.store.queue.move(tx, stray, null);
    return ids.length;
  }

  /** Ends what waits without a place in the queue, as an import leaves it, or that is of another site. */
  private async endUnqueued(tx: Tx, found: Knex.QueryBuilder, error: EndCause): Promise<number> {
    const rows = (await found.select(PLACED_COLUMNS).andWhere((any) => {
      any
        .where({ status: 'pending' })
        .whereNot('site_instance', this.app.site.instance)
        .orWhere((unqueued) => {
          // The log finds failed ones and tests by the queue.
          unqueued.whereNotIn('id', this.store.places(tx).select('id')).andWhere((kept) => {
            kept.whereIn('status', ['pending', 'failed']).orWhere({ is_test: true });
          });
        });
    })) as PlacedRow[];
    const pending = rows.filter(({ status }) => status === 'pending');
    const kept = rows.filter((row) => !pending.includes(row));
    const queued = kept.map((row) => this.store.queued(row));
    await this.store.queue.insert(tx, queued, 'replace');
    await this.store.end(tx, pending, error);
    return rows.length;
  }

  /** Changes a delivery that waits, unless an attempt of it is under way. */
  private byHand(id: number, change: (tx: Tx, row: PlacedRow) => Promise<void>) {
    return this.app.db.retrying(async (tx) => {
      const place = (await this.store.queue.lock(tx, [id])).get(id);
      const row = await this.store.find(tx, id);
      if (!row) return 'absent';
      if (place?.isHeld) return 'held';
      if (!place || row.status !== 'pending' || row.is_test) return 'finished';
      await change(tx, row);
      tx.onCommit(() => announceDeliveries(this.app, Number(row.webhook_id)));
      return null;
    });
  }
}

const createDeliveryChanges = (app: App): DeliveryChanges => new DeliveryChanges(app);

export const getDeliveryChanges = (app: App): DeliveryChanges => app.part(createDeliveryChanges);
