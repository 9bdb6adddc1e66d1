import type { Knex } from 'knex';
import { type GroupRoom, type Lease, type LeasedRow, type NextPlace } from '../../queue/queue';
import { type LeaseCap, LimitedQueue } from '../../queue/limited-queue';
import { nextTurn } from '../../runtime/event-loop';
import type { SlotWorker } from '../../scheduling/slot-worker';
import type { CappedWorkStore } from '../../scheduling/types';
import { type NextState, sectionOf } from '../rules/delivery-state';
import {
  DELIVERIES_TABLE,
  DELIVERY_ORDER_TABLE,
  DELIVERY_QUEUE_TABLE,
  DELIVERY_SLOTS_TABLE,
  type DeliveryRow,
  WEBHOOK_LOCKS_TABLE,
  WEBHOOKS_TABLE,
} from '../tables';
import { appendAttempts, type LoggedAttempt } from './attempts';
import { KnownLimits, LimitedClaims, orderingKeysOf, seenOf } from './limits';
import { readBodies } from './messages';
import type { App } from '../../app';
import type { Db, Tx } from '../../database/db';

export type QueuedDelivery = ReturnType<typeof toQueued>;

export interface LeasedDelivery extends Lease {
  delivery: QueuedDelivery;
}

/** The result of an attempt for its delivery; `attempt` is appended to its log. */
export interface DeliveryOutcome {
  lease: LeasedDelivery;
  next: NextState;
  attempt: LoggedAttempt;
  /** When the attempt ended, epoch milliseconds of the database's clock. */
  endedAt: number;
}

/** The group of manual sends, independent of webhook load and state. The largest id, which no webhook has. */
export const BY_HAND = 2_147_483_647;

/** The cause of a delivery that ended without an attempt; `body_missing`: its message was deleted. */
export type EndCause = 'imported' | 'skipped' | 'discarded' | 'webhook_deleted' | 'body_missing';

/** How long a crashed process's deliveries are held. Live ones renew leases, so it may be shorter than an attempt. */
export const LEASE_MS = 8_000;
/** A row that has waited this long for a slot goes back to its place: another process may have one. */
const LONGEST_WAIT_MS = 15_000;
/** The time of an attempt beyond its deadline: slow hooks, and recording it. */
const ATTEMPT_MARGIN_MS = 5_000;

/** Milliseconds: attempts start with `reserveMs` of a lease left, take `longestMs`, and renew it every `renewMs`. */
export const leaseTimes = (timeoutMs: number) => ({
  reserveMs: LEASE_MS - LONGEST_WAIT_MS,
  renewMs: LEASE_MS / 4,
  longestMs: timeoutMs + ATTEMPT_MARGIN_MS,
});

/** How long a manual send waits to begin: one poll and a running attempt; docs/several-nodes.md#nodes. Milliseconds. */
export const patienceOf = ({ options: { webhooks } }: App): number =>
  webhooks.timeoutMs + webhooks.pollSeconds * 1000;

const LEASED_COLUMNS = [
  ...(['id', 'document_id', 'webhook_id', 'event', 'status', 'tries', 'extra_tries'] as const),
  ...(['next_attempt_at', 'paused_ms', 'error', 'is_test', 'replayed', 'subject_type'] as const),
  ...(['body', 'message_id', 'created_at'] as const),
] satisfies readonly (keyof DeliveryRow)[];

type LeasedColumns = Omit<Pick<DeliveryRow, (typeof LEASED_COLUMNS)[number]>, 'id' | 'body'>;

/** The columns from which a delivery's place in the queue follows. */
export const PLACED_COLUMNS = [
  ...(['id', 'webhook_id', 'event', 'status', 'tries', 'is_test'] as const),
  ...(['error', 'created_at', 'next_attempt_at'] as const),
] satisfies readonly (keyof DeliveryRow)[];

export type PlacedRow = Pick<DeliveryRow, (typeof PLACED_COLUMNS)[number]>;

/**
 * Deliveries: log rows and the queue of unfinished ones, grouped by webhook; only `log.ts` also knows the rows. Waiting
 * for a module is parked, for an earlier delivery of the record blocked; failed ones stay in the queue as ended, sent
 * ones leave it. A change of both locks the queue first.
 */
export class DeliveryStore implements CappedWorkStore<LeasedDelivery> {
  readonly limits: KnownLimits;
  readonly claims: LimitedClaims;
  readonly queue: LimitedQueue;
  /** The worker of this process that sends them, for what the process queues itself; none if another one does. */
  worker: Pick<SlotWorker<LeasedDelivery, unknown>, 'keepRoom'> | null = null;

  constructor(private readonly app: App) {
    const announce = (webhook: number): void => announceDeliveries(app, webhook);
    this.limits = new KnownLimits(app);
    this.queue = new LimitedQueue(app.db, {
      tableName: DELIVERY_QUEUE_TABLE,
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
      keysOf: orderingKeysOf,
      freed: (webhooks) => webhooks.forEach(announce),
    });
    this.claims = new LimitedClaims(this.queue, this.limits, announce);
  }

  /** Finds which of these leases the queue has; after a rollback an id may be given again. */
  async stillLeased(leases: readonly LeasedDelivery[]): Promise<LeasedDelivery[]> {
    const ids = leases.map(({ id }) => id);
    const rows = await this.app.db.pool.byIds<Lease>(DELIVERY_QUEUE_TABLE, 'id, owner', ids);
    const owners = new Map(rows.map(({ id, owner }) => [Number(id), owner]));
    return leases.filter(({ id, owner }) => owners.get(id) === owner);
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

  async claimWithin(webhook: number, limit: number, cap: LeaseCap) {
    const claimed = await this.claims.claimLocked(webhook, limit, cap);
    return { ...claimed, leases: await this.withRows(claimed.leases) };
  }

  renew(leases: readonly LeasedDelivery[]): Promise<void> {
    return this.queue.renew(leases);
  }

  release(leases: readonly LeasedDelivery[]): Promise<void> {
    return this.queue.release(leases);
  }

  /** Records attempts of deliveries whose lease holds; returns their ids. Nothing is written for the others. */
  async settle(tx: Tx, outcomes: readonly DeliveryOutcome[]): Promise<Set<number>> {
    const places = outcomes.map((one) => ({ lease: one.lease, next: placeAfter(one) }));
    const held = await this.queue.settle(tx, places);
    // SQLite's driver answers within the same turn; this lets other work run between.
    await nextTurn();
    const written = outcomes.filter(({ lease }) => held.has(lease.id));
    const updates = written.map((one) => ({ id: one.lease.id, set: columnsAfter(one) }));
    await tx.updateRows(DELIVERIES_TABLE, updates);
    await nextTurn();
    await appendAttempts(tx, written);
    return held;
  }

  rows(db: Db): Knex.QueryBuilder {
    return db.table(DELIVERIES_TABLE);
  }

  places(db: Db): Knex.QueryBuilder {
    return db.table(DELIVERY_QUEUE_TABLE);
  }

  async find(db: Db, id: number): Promise<PlacedRow | undefined> {
    return (await this.rows(db).where({ id }).first(PLACED_COLUMNS)) as PlacedRow | undefined;
  }

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

  /** Claimed rows with their bodies. If a message is gone, its deliveries end, or they would come back for ever. */
  private async withRows(claimed: readonly LeasedRow[]): Promise<LeasedDelivery[]> {
    if (claimed.length === 0) return [];
    const db = await this.app.db.current();
    const ids = claimed.map(({ id }) => id);
    const rows = await db.byIds<DeliveryRow>(DELIVERIES_TABLE, LEASED_COLUMNS.join(', '), ids);
    const bodies = await readBodies(db, this.app, rows);
    const found = new Map<number, QueuedDelivery>();
    for (const [at, row] of rows.entries()) {
      const body = bodies[at] ?? null;
      const { isOrdered } = this.limits.get(Number(row.webhook_id));
      if (body !== null) found.set(Number(row.id), toQueued(row, body, isOrdered));
    }
    const lost = claimed.filter(({ id }) => !found.has(id));
    const bodiless = rows.filter(({ id }) => !found.has(Number(id)));
    if (lost.length > 0) await this.endLostRows(lost, bodiless);
    return claimed.flatMap((lease) => {
      const delivery = found.get(lease.id);
      return delivery ? { delivery, ...lease } : [];
    });
  }

  private async endLostRows(lost: readonly LeasedRow[], rows: readonly DeliveryRow[]) {
    const ids = rows.map(({ id }) => id).join(', ');
    if (ids) this.app.log.error(`switchboard: the message of these deliveries is gone: ${ids}`);
    await this.app.db.retrying(async (tx) => {
      const outcomes = lost.map((lease) => ({ lease, next: null }));
      const held = await this.queue.settle(tx, outcomes);
      const ended = rows.filter(({ id }) => held.has(Number(id)));
      await this.end(tx, ended, 'body_missing');
    });
  }

  /** Ends deliveries whose places the transaction has locked, or that have none. */
  async end(tx: Tx, rows: readonly PlacedRow[], error: EndCause): Promise<void> {
    if (rows.length === 0) return;
    const ids = rows.map(({ id }) => Number(id));
    const ended = { status: 'failed' as const, error, next_attempt_at: null };
    await this.rows(tx)
      .whereIn('id', ids)
      .update({ ...ended, finished_at: this.now() });
    const queued = rows.map((row) => this.queued({ ...row, ...ended }));
    await this.queue.insert(tx, queued, 'replace');
    await this.queue.letPass(tx, ids);
  }
}

export const toQueued = (row: LeasedColumns, body: string, isOrdered: boolean) => ({
  deliveryId: row.document_id,
  webhook: Number(row.webhook_id),
  event: row.event,
  body,
  status: row.status,
  tries: Number(row.tries),
  /** Attempts among them that used up none of the schedule. */
  extraTries: Number(row.extra_tries),
  /** When its next attempt is due by the schedule, epoch milliseconds; null: it has none. */
  nextAttemptAt: row.next_attempt_at === null ? null : Number(row.next_attempt_at),
  /** By how much its receiver has put it off so far, in milliseconds. */
  pausedMs: Number(row.paused_ms),
  /** Why the last attempt that counts failed. */
  error: row.error,
  isTest: Boolean(row.is_test),
  /** Later ones of its record may wait for it. */
  isOrdered: isOrdered && row.subject_type !== null,
  /** It is an event of the journal, sent later. */
  replayed: Boolean(row.replayed),
  createdAt: Number(row.created_at),
});

const errorAfter = ({ lease: { delivery }, next, attempt }: DeliveryOutcome): string | null =>
  next.pausedMs ? delivery.error : attempt.error;

const columnsAfter = (outcome: DeliveryOutcome) => {
  const { lease, next, endedAt } = outcome;
  return {
    status: next.status,
    tries: next.tries,
    extra_tries: next.extraTries ?? 0,
    next_attempt_at: next.nextAttemptAt,
    finished_at: next.nextAttemptAt === null ? endedAt : null,
    error: errorAfter(outcome),
    paused_ms: lease.delivery.pausedMs + (next.pausedMs ?? 0),
  };
};

/** null: it is done and leaves the queue. Tests are kept, as what failed, to be found by the log. */
const placeAfter = (outcome: DeliveryOutcome): NextPlace | null => {
  const { endedAt, lease, next } = outcome;
  const { isTest, webhook } = lease.delivery;
  if (next.status === 'sent' && !isTest) return null;
  const section = sectionOf({ ...next, isTest });
  const columns = { group_id: webhook, section, error: errorAfter(outcome) };
  return next.nextAttemptAt === null
    ? { dueAt: endedAt, state: 'ended', columns }
    : { dueAt: next.nextAttemptAt, columns };
};

const createDeliveryStore = (app: App): DeliveryStore => new DeliveryStore(app);

export const getDeliveryStore = (app: App): DeliveryStore => app.part(createDeliveryStore);

/** The kind of work that deliveries are, as the scheduler and its log lines name it. */
export const DELIVERIES = 'switchboard deliveries';

/** Announces that deliveries of a webhook, or of any (null), may be due. For after a commit: cheap, never throws. */
export const announceDeliveries = (app: App, webhook: number | null, at = app.clock.now()): void =>
  app.scheduler.announce(DELIVERIES, webhook, at);
