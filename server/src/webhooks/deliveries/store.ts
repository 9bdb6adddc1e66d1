import type { Knex } from 'knex';
import type {
  Attempt,
  DeliveryStatus,
  Subject,
  Webhook,
} from '../../../../shared/contracts/webhooks';
import type { UpdatedTable, RowUpdate } from '../../database/dialects/shared';
import {
  type GroupRoom,
  type Lease,
  type LeasedRow,
  type NextPlace,
  QUEUE_STATES,
} from '../../queue/queue';
import {
  type CappedClaim,
  type CountedLease,
  type LeaseCap,
  LimitedQueue,
} from '../../queue/limited-queue';
import type { CappedWorkStore } from '../../scheduling/types';
import { type NextState, SECTIONS, sectionOf } from '../rules/delivery-state';
import {
  DELIVERIES_TABLE,
  DELIVERY_ORDER_TABLE,
  DELIVERY_QUEUE_TABLE,
  DELIVERY_SLOTS_TABLE,
  type DeliveryRow,
  WEBHOOK_LOCKS_TABLE,
  WEBHOOKS_TABLE,
} from '../tables';
import { appendAttempts } from './attempts';
import { KnownLimits, LimitedClaims, seenOf } from './limits';
import { insertMessages, readBodies, type SharedMessage } from './messages';
import type { App } from '../../app';
import type { Db, Tx } from '../../database/db';

/** A delivery, as an attempt has to know it. */
export interface QueuedDelivery {
  id: number;
  deliveryId: string;
  webhook: number;
  event: string;
  body: string;
  status: DeliveryStatus;
  /** Attempts made so far. */
  tries: number;
  /** Attempts among them that used up none of the schedule. */
  extraTries: number;
  /** When its next attempt is due by the schedule, epoch milliseconds; null: it has none. */
  nextAttemptAt: number | null;
  /** By how much its receiver has put it off so far, in milliseconds. */
  pausedMs: number;
  /** Why the last attempt that counts failed. */
  error: string | null;
  isTest: boolean;
  /** Later ones of its record may wait for it. */
  isOrdered: boolean;
  /** It is an event of the journal, sent later. */
  replayed: boolean;
  createdAt: number;
}

export interface LeasedDelivery extends Lease {
  delivery: QueuedDelivery;
}

/** A delivery that is about to be queued. Times are epoch milliseconds. */
export interface NewDelivery {
  /** Its id for the receiver: a UUID. */
  deliveryId: string;
  webhook: number;
  /** The webhook's address at this moment, for the log. */
  url: string;
  event: string;
  /** The frozen body of every attempt, or the message that it shares with others. */
  body: string | SharedMessage;
  at: number;
  isTest: boolean;
  /** The record that its event is about, as it is now. */
  subject?: Subject | null;
  /** True if it waits for the earlier ones of its record. */
  isOrdered?: boolean;
  /** Somebody waits for another process to send it. */
  isByHand?: boolean;
  /** It is an event of the journal, sent later. */
  replayed?: boolean;
}

/** The result of an attempt for its delivery; `attempt` is appended to its log. */
export interface DeliveryOutcome {
  lease: LeasedDelivery;
  next: NextState;
  attempt: Attempt;
  /** When the attempt ended, epoch milliseconds. */
  endedAt: number;
}

/** Why nothing was done with a delivery by hand. */
export type HandRefusal = 'absent' | 'finished' | 'held';

/**
 * The group of what somebody has sent by hand from a process that does not send: another one takes it
 * whatever its webhook has to do, and whether that is on or not. The largest id: no webhook has it.
 */
export const BY_HAND = 2_147_483_647;

/** Causes of deliveries that ended without an attempt. */
const CAUSES = {
  /** An import brought it as pending. */
  imported: 'imported',
  skipped: 'skipped',
  discarded: 'discarded',
  webhookDeleted: 'webhook_deleted',
  /** Somebody has deleted its message. */
  bodyMissing: 'body_missing',
} as const;

/**
 * How long a delivery is held whose process has died. While that lives it renews the lease, so this
 * need not be as long as an attempt.
 */
const LEASE_MS = 8_000;
/** A row that has waited for a slot for so long goes back to its place: another process may have one. */
const LONGEST_WAIT_MS = 15_000;
/** The lease of an attempt by hand, which nobody renews: beyond the deadline. */
const BY_HAND_MARGIN_MS = 20_000;
/** The time of an attempt beyond its deadline: slow hooks, and recording it. */
const ATTEMPT_MARGIN_MS = 5_000;

/**
 * Milliseconds. With less than `reserveMs` left of what the claim gave no attempt is started; every
 * `renewMs` leases are renewed; `longestMs` is what an attempt may take in all.
 */
export const leaseTimes = (
  timeoutMs: number
): { byHandMs: number; reserveMs: number; renewMs: number; longestMs: number } => ({
  byHandMs: timeoutMs + BY_HAND_MARGIN_MS,
  reserveMs: LEASE_MS - LONGEST_WAIT_MS,
  renewMs: LEASE_MS / 4,
  longestMs: timeoutMs + ATTEMPT_MARGIN_MS,
});

/**
 * How long a process that does not send waits for one that does: for that to look, and for an attempt;
 * docs/operations.md#several-nodes. Milliseconds.
 */
export const patienceOf = ({ options: { webhooks } }: App): number =>
  webhooks.timeoutMs + webhooks.pollSeconds * 1000;

/** Rows of the log that one statement writes. */
const WRITTEN_AT_ONCE = 200;

const LEASED_COLUMNS = [
  ...['id', 'document_id', 'webhook_id', 'event', 'status', 'tries', 'extra_tries'],
  ...['next_attempt_at', 'paused_ms', 'error', 'is_test', 'replayed', 'subject_type'],
  ...['body', 'message_id', 'created_at'],
];

/** The columns from which a delivery's place in the queue follows. */
export const PLACED_COLUMNS = [
  ...(['id', 'webhook_id', 'event', 'status', 'tries', 'is_test'] as const),
  ...(['error', 'created_at', 'next_attempt_at'] as const),
] satisfies readonly (keyof DeliveryRow)[];

export type PlacedRow = Pick<DeliveryRow, (typeof PLACED_COLUMNS)[number]>;

/**
 * Deliveries: their rows in the log, and with them the queue of those that are not done, whose groups are
 * webhooks. With `log.ts` the only code that knows their rows. A delivery that waits for a module is
 * parked, one that waits for an earlier one of its record blocked; one that failed has ended and is kept
 * in the queue to be found, one that was sent is not in it. A change of both locks the queue first.
 */
export class DeliveryStore implements CappedWorkStore<LeasedDelivery> {
  /** The webhooks' own limits, as far as they are known. */
  readonly limits: KnownLimits;
  readonly claims: LimitedClaims;
  readonly queue: LimitedQueue;
  private readonly log: UpdatedTable;
  private readonly byHandMs: number;

  constructor(private readonly app: App) {
    this.byHandMs = leaseTimes(app.options.webhooks.timeoutMs).byHandMs;
    this.limits = new KnownLimits(app);
    this.queue = new LimitedQueue(app.db, {
      tableName: DELIVERY_QUEUE_TABLE,
      columns: { section: 'integer', error: 'text', event: 'text', created_at: 'bigint' },
      groups: {
        tableName: WEBHOOKS_TABLE,
        where: { active: true },
        always: BY_HAND,
        seen: seenOf(app, this.limits),
      },
      leaseMs: LEASE_MS,
      order: DELIVERY_ORDER_TABLE,
      slots: DELIVERY_SLOTS_TABLE,
      locks: WEBHOOK_LOCKS_TABLE,
      keysOf: (tx, ids) => this.keysOf(tx, ids),
      freed: (webhooks) => webhooks.forEach((webhook) => announceDeliveries(app, webhook)),
    });
    this.claims = new LimitedClaims(this.queue, this.limits, (webhook) =>
      announceDeliveries(app, webhook)
    );
    this.log = {
      name: DELIVERIES_TABLE,
      schema: app.db.schema,
      columns: {
        ...{ status: 'text', tries: 'integer', extra_tries: 'integer' },
        ...{ next_attempt_at: 'bigint', finished_at: 'bigint', error: 'text', paused_ms: 'bigint' },
      },
    };
  }

  /** Epoch milliseconds, by the database's clock. */
  now(): number {
    return this.queue.now();
  }

  dueTimes(): Promise<Map<number, number>> {
    return this.queue.due();
  }

  async claim(rooms: readonly GroupRoom[]): Promise<LeasedDelivery[]> {
    return this.withRows(await this.claims.claim(rooms));
  }

  async claimWithin(
    webhook: number,
    limit: number,
    cap: LeaseCap
  ): Promise<CappedClaim<LeasedDelivery>> {
    const claimed = await this.claims.claimLocked(webhook, limit, cap);
    return { ...claimed, leases: await this.withRows(claimed.leases) };
  }

  renew(leases: readonly LeasedDelivery[]): Promise<void> {
    return this.queue.renew(leases);
  }

  release(leases: readonly LeasedDelivery[]): Promise<void> {
    return this.queue.release(leases);
  }

  /**
   * Queues deliveries in `tx`'s transaction: they exist if and only if it commits. A message that
   * they share is stored with the first of them.
   * @returns the ids of their rows, by the ids that receivers know
   */
  async insert(tx: Db, deliveries: readonly NewDelivery[]): Promise<Map<string, number>> {
    const messages = new Set<SharedMessage>();
    for (const { body } of deliveries) {
      if (typeof body !== 'string' && body.id === null) messages.add(body);
    }
    await insertMessages(tx, [...messages]);
    const ids = await tx.insertForIds(
      DELIVERIES_TABLE,
      deliveries.map((one) => ({
        document_id: one.deliveryId,
        site_instance: this.app.site.instance,
        webhook_id: one.webhook,
        event: one.event,
        status: 'pending',
        tries: 0,
        is_test: one.isTest,
        next_attempt_at: one.at,
        created_at: one.at,
        subject_type: one.subject?.type ?? null,
        subject_id: one.subject?.id ?? null,
        subject_label: one.subject?.label ?? null,
        replayed: one.replayed ?? false,
        url: one.url,
        body: typeof one.body === 'string' ? one.body : null,
        message_id: typeof one.body === 'string' ? null : one.body.id,
        attempts: '[]',
      }))
    );
    await this.queue.insert(
      tx,
      deliveries.map((one) => ({
        id: ids.get(one.deliveryId) as number,
        group: one.isByHand ? BY_HAND : one.webhook,
        dueAt: one.at,
        columns: {
          section: sectionOf({ status: 'pending', tries: 0, isTest: one.isTest }),
          error: null,
          event: one.event,
          created_at: one.at,
        },
        orderingKey: one.isOrdered && one.subject ? `${one.subject.type}:${one.subject.id}` : null,
      }))
    );
    return ids;
  }

  /** Logs a test, under a lease from the start, so that nobody sends it a second time. */
  async insertLeased(delivery: NewDelivery): Promise<LeasedDelivery> {
    const held = await this.app.db.retrying(async (tx) => {
      const id = (await this.insert(tx, [delivery])).get(delivery.deliveryId) as number;
      return this.queue.claimOne(id, this.byHandMs, tx);
    });
    const [lease] = typeof held === 'string' ? [] : await this.withRows([held]);
    if (!lease) throw new Error('The test could not be started.');
    return lease;
  }

  /** Takes one, due or not, finished or not; `held` while an attempt of it is under way. */
  async claimOne(id: number): Promise<LeasedDelivery | 'held' | 'absent'> {
    const held = await this.app.db.retrying(async (tx) => {
      const row = await this.find(tx, id);
      if (!row) return 'absent';
      return this.queue.hold(tx, this.queued(row), this.byHandMs);
    });
    return typeof held === 'string' ? held : ((await this.withRows([held]))[0] ?? 'absent');
  }

  /**
   * Makes a sending process attempt a delivery now, whatever becomes of its webhook.
   * @returns `held` while an attempt of it is under way
   */
  handOver(id: number): Promise<'queued' | 'held' | 'absent'> {
    return this.app.db.retrying(async (tx) => {
      const known = (await this.queue.lock(tx, [id])).get(id);
      if (known?.isHeld || known?.group === BY_HAND) return 'held';
      const row = await this.find(tx, id);
      if (!row) return 'absent';
      await this.queue.requeue(tx, [
        { ...this.queued(row, BY_HAND), state: 'ready', dueAt: this.now() },
      ]);
      return 'queued';
    });
  }

  /** How far another process is with what was handed over. */
  async lookAtHandedOver(id: number): Promise<'waiting' | 'taken' | 'done'> {
    const row = (await this.queue.find(await this.app.db.current(), [id])).get(id);
    if (row?.group !== BY_HAND) return 'done';
    return row.isHeld ? 'taken' : 'waiting';
  }

  /** Takes back what was handed over and nobody has taken. @returns whether it was taken back */
  takeBack(id: number): Promise<boolean> {
    return this.app.db.retrying(async (tx) => {
      const known = (await this.queue.lock(tx, [id])).get(id);
      if (known?.group !== BY_HAND || known.isHeld) return false;
      const row = await this.find(tx, id);
      // A test that nobody has sent never was; one that is sent again stays in the log.
      const isUnsentTest = Boolean(row?.is_test) && row?.status === 'pending';
      if (isUnsentTest) await this.rows(tx).where({ id }).delete();
      const isGone = !row || isUnsentTest || (row.status === 'sent' && !row.is_test);
      await this.queue.move(tx, [id], isGone ? null : this.queued(row));
      return true;
    });
  }

  /**
   * Records attempts, each delivery only while its lease holds.
   * @returns the ids whose lease held; of the others nothing was written.
   */
  async settle(tx: Tx, outcomes: readonly DeliveryOutcome[]): Promise<Set<number>> {
    const ends = outcomes.map((one) => ({ ...one, columns: columnsAfter(one) }));
    const held = await this.queue.settle(
      tx,
      ends.map(({ lease, next, endedAt, columns: { error } }) => {
        const { isTest, webhook } = lease.delivery;
        // Tests are kept, as what failed, to be found by the log.
        if (next.status === 'sent' && !isTest) return { lease, next: null };
        const columns = { group_id: webhook, section: sectionOf({ ...next, isTest }), error };
        const place: NextPlace =
          next.nextAttemptAt === null
            ? { dueAt: endedAt, state: 'ended', columns }
            : { dueAt: next.nextAttemptAt, columns };
        return { lease, next: place };
      })
    );
    const written = ends.filter(({ lease }) => held.has(lease.id));
    const sizes = { count: WRITTEN_AT_ONCE, valuesOf: ({ set }: RowUpdate) => set };
    await tx.inParts(
      written.map(({ lease: { id }, columns }) => ({ id, set: columns })),
      sizes,
      async (part) => void (await tx.dialect.updateRows(tx.knex, this.log, part))
    );
    await appendAttempts(
      tx,
      written.map(({ lease: { id, delivery }, attempt, columns }) => ({
        ...{ delivery: id, webhook: delivery.webhook, attempt },
        ...{ tries: columns.tries, pausedMs: columns.paused_ms },
      }))
    );
    return held;
  }

  /**
   * Ends a delivery that waits, as `failed` by hand, for which nothing counts.
   * @returns why it cannot be; NotFoundError (404) is the caller's
   */
  skip(id: number): Promise<HandRefusal | null> {
    return this.byHand(id, (tx, row) => this.end(tx, [row], CAUSES.skipped));
  }

  /** Unblocks later deliveries of its record; its schedule stays. */
  letPass(id: number): Promise<HandRefusal | null> {
    return this.byHand(id, async (tx) => {
      await this.rows(tx).where({ id }).update({ released_at: this.now() });
      await this.queue.letPass(tx, [id]);
    });
  }

  /**
   * Ends up to `limit` pending deliveries of a webhook without an attempt, and without counting for
   * anything; tests are left out.
   * @param force those, too, whose attempt is under way: what comes of it is not recorded
   * @returns how many ended, and whether there are more
   */
  discard(
    webhook: number,
    limit: number,
    force: boolean
  ): Promise<{ ended: number; isLeft: boolean }> {
    return this.app.db.retrying(async (tx) => {
      const pending = () =>
        this.places(tx)
          .where({ group_id: webhook })
          .whereIn('section', [SECTIONS.waiting, SECTIONS.failing]);
      const found = force ? pending() : this.free(pending());
      const ended = await this.endFound(tx, found, limit, CAUSES.discarded);
      return { ended, isLeft: Boolean(await pending().first('id')) };
    });
  }

  /** Webhooks that are gone and of which deliveries wait, in whatever state; null: a delivery names no webhook. */
  async lostWebhooks(): Promise<(number | null)[]> {
    const db = await this.app.db.current();
    const lost = (await this.places(db)
      .distinct('group_id')
      .whereNot({ state: QUEUE_STATES.ended })
      .whereNotIn('group_id', db.table(WEBHOOKS_TABLE).select('id'))
      .whereNot({ group_id: BY_HAND })
      .pluck('group_id')) as number[];
    const nameless = await this.rows(db)
      .whereNull('webhook_id')
      .where({ status: 'pending' })
      .first('id');
    return [...(nameless ? [null] : []), ...lost.map(Number)];
  }

  /**
   * Ends up to `limit` pending deliveries of a webhook that is gone, tests too, but for those whose attempt
   * is under way. @returns how many there were.
   */
  endLost(webhook: number | null, limit: number): Promise<number> {
    return this.app.db.retrying(async (tx) => {
      if (webhook === null) {
        const nameless = this.rows(tx).whereNull('webhook_id');
        return this.endUnqueued(tx, nameless, limit, CAUSES.webhookDeleted);
      }
      const found = this.free(
        this.places(tx).where({ group_id: webhook }).whereNot({ state: QUEUE_STATES.ended })
      );
      return this.endFound(tx, found, limit, CAUSES.webhookDeleted);
    });
  }

  /**
   * Ends up to `limit` pending deliveries of these webhooks that an import brought, or that belong to
   * another site: the original did, or will. @returns how many there were.
   */
  endImported(webhooks: readonly number[], limit: number): Promise<number> {
    return this.app.db.retrying((tx) => {
      const found = this.rows(tx).whereIn('webhook_id', [...webhooks]);
      return this.endUnqueued(tx, found, limit, CAUSES.imported);
    });
  }

  /** Parks leased deliveries until `unpark`: their schedule stays unchanged. */
  async park(leases: readonly LeasedDelivery[]): Promise<void> {
    await this.app.db.retrying((tx) =>
      this.queue.settle(
        tx,
        leases.map((lease) => {
          const { status, webhook } = lease.delivery;
          const place = { dueAt: lease.dueAt, columns: { group_id: webhook } };
          // A finished one that somebody sent again, and whose node died, has nothing to wait for.
          return { lease, next: status === 'pending' ? { ...place, state: 'parked' } : null };
        })
      )
    );
  }

  /** The events of deliveries that are parked, by webhook. */
  async parked(): Promise<{ webhook: number; event: string }[]> {
    const rows = this.places(await this.app.db.current());
    const found = (await rows
      .distinct('group_id', 'event')
      .where({ state: QUEUE_STATES.parked })) as { group_id: number; event: string }[];
    return found.map(({ group_id: webhook, event }) => ({ webhook: Number(webhook), event }));
  }

  /** Makes up to `limit` parked deliveries of an event ready again. @returns how many there were. */
  unpark(webhook: number, event: string, limit: number): Promise<number> {
    return this.app.db.retrying(async (tx) => {
      const ids = (await this.places(tx)
        .where({ state: QUEUE_STATES.parked, group_id: webhook, event })
        .limit(limit)
        .pluck('id')) as number[];
      await this.queue.setState(tx, ids, 'ready', 'parked');
      return ids.length;
    });
  }

  /** Makes these deliveries, which the caller has locked in the queue, due now with their whole schedule. */
  async restart(tx: Tx, rows: readonly PlacedRow[]): Promise<void> {
    if (rows.length === 0) return;
    const now = this.now();
    await this.rows(tx)
      .whereIn(
        'id',
        rows.map(({ id }) => id)
      )
      .update({
        status: 'pending',
        next_attempt_at: now,
        finished_at: null,
        // The attempts they had use up nothing of it.
        extra_tries: tx.knex.ref('tries'),
        paused_ms: 0,
        // The log tells by it what was never tried.
        error: tx.raw('CASE WHEN tries = 0 THEN NULL ELSE error END'),
      });
    await this.queue.requeue(
      tx,
      rows.map((row) => {
        const error = Number(row.tries) === 0 ? null : row.error;
        return this.queued({ ...row, status: 'pending', error, next_attempt_at: now });
      })
    );
  }

  /** Makes these deliveries, which the caller has locked in the queue, due now; their schedule stays. */
  async advance(tx: Tx, ids: readonly number[]): Promise<void> {
    if (ids.length === 0) return;
    await this.places(tx)
      .whereIn('id', [...ids])
      .update({ due_at: this.now() });
  }

  /** Takes deliveries that the caller has locked out of the queue: they are about to leave the log. */
  async remove(tx: Tx, ids: readonly number[]): Promise<void> {
    await this.queue.move(tx, ids, null);
    await this.queue.letPass(tx, ids);
  }

  /**
   * Applies a webhook's new order to waiting deliveries, in the transaction that gives it that: when it
   * commits, all that was queued before follows it.
   */
  async reorder(tx: Tx, { id, ordering }: Pick<Webhook, 'id' | 'ordering'>): Promise<void> {
    if (ordering !== 'by_record') await this.queue.dissolve(tx, id);
    else await this.queue.order(tx, id, this.keyed(tx).where({ webhook_id: id }));
  }

  private rows(db: Db): Knex.QueryBuilder {
    return db.table(DELIVERIES_TABLE);
  }

  private places(db: Db): Knex.QueryBuilder {
    return db.table(DELIVERY_QUEUE_TABLE);
  }

  /** Rows without an attempt under way. */
  private free(query: Knex.QueryBuilder): Knex.QueryBuilder {
    return query.andWhere((any) => {
      any.whereNull('leased_until').orWhere('leased_until', '<=', this.now());
    });
  }

  private async find(db: Db, id: number): Promise<PlacedRow | undefined> {
    return (await this.rows(db).where({ id }).first(PLACED_COLUMNS)) as PlacedRow | undefined;
  }

  /** A delivery as the queue has it, at its place. */
  queued(row: PlacedRow, group = Number(row.webhook_id)) {
    const { status, tries } = row;
    const isEnded = status === 'failed' || (status === 'sent' && row.is_test);
    return {
      id: Number(row.id),
      group,
      dueAt: row.next_attempt_at === null ? this.now() : Number(row.next_attempt_at),
      state: isEnded ? ('ended' as const) : ('ready' as const),
      columns: {
        group_id: group,
        section: sectionOf({ status, tries: Number(tries), isTest: Boolean(row.is_test) }),
        error: row.error,
        event: row.event,
        created_at: Number(row.created_at),
      },
    };
  }

  /** Rows that were claimed, with what they send. Deliveries whose message is gone end as failed. */
  private async withRows(claimed: readonly CountedLease[]): Promise<LeasedDelivery[]> {
    if (claimed.length === 0) return [];
    const db = await this.app.db.current();
    const found = (await this.rows(db)
      .select(LEASED_COLUMNS)
      .whereIn(
        'id',
        claimed.map(({ id }) => id)
      )) as DeliveryRow[];
    const bodies = await readBodies(db, this.app, found);
    const known = new Map(found.map((row, at) => [Number(row.id), { row, body: bodies[at] }]));
    const leased: LeasedDelivery[] = [];
    const lost: CountedLease[] = [];
    for (const lease of claimed) {
      const { row, body } = known.get(lease.id) ?? {};
      if (row && typeof body === 'string') {
        leased.push({ ...lease, delivery: this.toQueued(row, body) });
      } else lost.push(lease);
    }
    if (lost.length > 0) await this.endWithoutBody(lost, known);
    return leased;
  }

  private toQueued(row: DeliveryRow, body: string): QueuedDelivery {
    const webhook = Number(row.webhook_id);
    return {
      id: Number(row.id),
      deliveryId: row.document_id,
      webhook,
      event: row.event,
      body,
      status: row.status,
      tries: Number(row.tries),
      extraTries: Number(row.extra_tries),
      nextAttemptAt: row.next_attempt_at === null ? null : Number(row.next_attempt_at),
      pausedMs: Number(row.paused_ms),
      error: row.error,
      isTest: Boolean(row.is_test),
      isOrdered: this.limits.get(webhook).isOrdered && row.subject_type !== null,
      replayed: Boolean(row.replayed),
      createdAt: Number(row.created_at),
    };
  }

  /** Ends what nothing is left of to send: else it would be taken again and again. */
  private async endWithoutBody(
    lost: readonly LeasedRow[],
    known: ReadonlyMap<number, { row: DeliveryRow }>
  ): Promise<void> {
    const there = lost.filter(({ id }) => known.has(id));
    const ids = there.map(({ id }) => id).join(', ');
    if (ids) this.app.log.error(`switchboard: the message of these deliveries is gone: ${ids}`);
    await this.app.db.retrying(async (tx) => {
      const held = await this.queue.settle(
        tx,
        lost.map((lease) => ({ lease, next: null }))
      );
      const rows = there.flatMap(({ id }) => (held.has(id) ? (known.get(id)?.row ?? []) : []));
      await this.end(tx, rows, CAUSES.bodyMissing);
    });
  }

  /** Ends deliveries whose places the transaction has locked, or that have none. */
  private async end(tx: Tx, rows: readonly PlacedRow[], error: string): Promise<void> {
    if (rows.length === 0) return;
    const ids = rows.map(({ id }) => Number(id));
    const ended = { status: 'failed' as const, error, next_attempt_at: null };
    await this.rows(tx)
      .whereIn('id', ids)
      .update({ ...ended, finished_at: this.now() });
    await this.queue.requeue(
      tx,
      rows.map((row) => this.queued({ ...row, ...ended }))
    );
    await this.queue.letPass(tx, ids);
  }

  /** @returns how many of these ended. */
  private async endFound(
    tx: Tx,
    found: Knex.QueryBuilder,
    limit: number,
    error: string
  ): Promise<number> {
    const ids = (await found
      .orderBy(['error', 'created_at', 'id'])
      .limit(limit)
      .forUpdate()
      .pluck('id')) as (number | string)[];
    const rows = (await this.rows(tx).select(PLACED_COLUMNS).whereIn('id', ids)) as PlacedRow[];
    await this.end(tx, rows, error);
    // Rows that the log has no more need no place.
    const known = new Set(rows.map(({ id }) => Number(id)));
    const stray = ids.map(Number).filter((id) => !known.has(id));
    if (stray.length > 0) await this.queue.move(tx, stray, null);
    return ids.length;
  }

  /** Ends what waits without a place in the queue, as an import leaves it, or that is of another site. */
  private async endUnqueued(
    tx: Tx,
    found: Knex.QueryBuilder,
    limit: number,
    error: string
  ): Promise<number> {
    const rows = (await found
      .select(PLACED_COLUMNS)
      .andWhere((any) => {
        any
          .where({ status: 'pending' })
          .whereNot('site_instance', this.app.site.instance)
          .orWhere((unqueued) => {
            // The log finds failed ones and tests by the queue.
            unqueued.whereNotIn('id', this.places(tx).select('id')).andWhere((kept) => {
              kept.whereIn('status', ['pending', 'failed']).orWhere({ is_test: true });
            });
          });
      })
      .limit(limit)) as PlacedRow[];
    const pending = rows.filter(({ status }) => status === 'pending');
    await this.queue.requeue(
      tx,
      rows.filter((row) => !pending.includes(row)).map((row) => this.queued(row))
    );
    await this.end(tx, pending, error);
    return rows.length;
  }

  /** Changes a delivery that waits, unless an attempt of it is under way. */
  private byHand(
    id: number,
    change: (tx: Tx, row: PlacedRow) => Promise<void>
  ): Promise<HandRefusal | null> {
    return this.app.db.retrying(async (tx) => {
      const place = (await this.queue.lock(tx, [id])).get(id);
      const row = await this.find(tx, id);
      if (!row) return 'absent';
      if (place?.isHeld) return 'held';
      if (!place || row.status !== 'pending' || row.is_test) return 'finished';
      await change(tx, row);
      tx.onCommit(() => announceDeliveries(this.app, Number(row.webhook_id)));
      return null;
    });
  }

  /** Keys of deliveries about a record that nobody has said need not be waited for. */
  private keyed(db: Db): Knex.QueryBuilder {
    const key = db.dialect.joined(['subject_type', "':'", 'subject_id']);
    return this.rows(db)
      .select('id', db.raw(`${key} AS ordering_key`))
      .whereNotNull('subject_type')
      .whereNotNull('subject_id')
      .whereNull('released_at')
      .where({ status: 'pending', is_test: false });
  }

  private async keysOf(tx: Tx, ids: readonly number[]): Promise<Map<number, string>> {
    const found = (await this.keyed(tx).whereIn('id', [...ids])) as {
      id: number | string;
      ordering_key: string;
    }[];
    return new Map(found.map(({ id, ordering_key: key }) => [Number(id), key]));
  }
}

const columnsAfter = ({ lease: { delivery }, next, attempt, endedAt }: DeliveryOutcome) => ({
  status: next.status,
  tries: next.tries,
  extra_tries: next.extraTries ?? 0,
  next_attempt_at: next.nextAttemptAt,
  finished_at: next.nextAttemptAt === null ? endedAt : null,
  error: next.pausedMs ? delivery.error : attempt.error,
  paused_ms: delivery.pausedMs + (next.pausedMs ?? 0),
});

const createDeliveryStore = (app: App): DeliveryStore => new DeliveryStore(app);

export const getDeliveryStore = (app: App): DeliveryStore => app.part(createDeliveryStore);

/** The kind of work that deliveries are, as the scheduler and its log lines name it. */
export const DELIVERIES = 'switchboard deliveries';

/**
 * Says that deliveries of a webhook, or of any (`null`), may be due: now, or from a time of the
 * database's clock on (epoch milliseconds). For the moment after a commit: cheap, never throws.
 */
export const announceDeliveries = (
  app: App,
  webhook: number | null,
  at = getDeliveryStore(app).now()
): void => app.scheduler.announce(DELIVERIES, webhook, at);
