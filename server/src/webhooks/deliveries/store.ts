import type { Knex } from 'knex';
import type {
  Attempt,
  DeliveryStatus,
  Subject,
  Webhook,
} from '../../../../shared/contracts/webhooks';
import type {
  CappedClaim,
  Lease,
  LeaseCap,
  LeasedRow,
  LeasedRows,
  Settlement,
} from '../../database/lease-types';
import { createLeasedRows } from '../../database/leases';
import type { CappedWorkStore, GroupLimits } from '../../scheduling/types';
import type { GroupRoom } from '../../database/dialects/types';
import type { NextState } from '../rules/transition';
import {
  DELIVERIES_TABLE,
  type DeliveryRow,
  LINE_ENDS_TABLE,
  PACES_TABLE,
  WEBHOOKS_TABLE,
} from '../tables';
import { appendAttempts, mayHaveMany } from './attempts';
import { isCareful, KnownManners, type Manners, seenOf } from './limits';
import { insertMessages, readBodies, type SharedMessage } from './messages';
import {
  ASIDE_UNTIL,
  createCarefulClaims,
  createReordering,
  type Line,
  lineOf,
  lineOfRow,
  noteEnds,
  webhooksDueAt,
} from './ordering';
import type { App } from '../../app';
import type { Db } from '../../database/db';

/** For so long webhooks with manners are claimed of that were not known to have any, before others. */
const CAREFUL_TOGETHER_MS = 100;

interface Claiming {
  /** Claims of several webhooks, each as it wants it. */
  claim(rooms: readonly GroupRoom[]): Promise<LeasedRow[]>;
  /** Claims of one as long as all nodes together stay within its cap. */
  claimWithin(webhook: number, limit: number, cap: LeaseCap): Promise<CappedClaim<LeasedRow>>;
}

/**
 * Claims deliveries of webhooks: of those with manners (an order, a rate, a pause) with care.
 * @param hearsAgain is told when more of a webhook may be claimed that its rate held back
 */
const createClaiming = (
  app: App,
  leased: LeasedRows,
  known: KnownManners,
  hearsAgain: (webhook: number, at: number) => void
): Claiming => {
  const carefully = createCarefulClaims(app, leased, known);

  const claimCarefully = async (
    webhook: number,
    limit: number,
    cap: LeaseCap | null = null
  ): Promise<CappedClaim<LeasedRow>> => {
    const { leases, isFull, againAt } = await carefully({ webhook, limit, cap });
    if (againAt !== null) hearsAgain(webhook, againAt);
    return { leases, isFull };
  };

  /** Nothing is claimed of a webhook that is left alone for now: it would only be given back. */
  const isPaused = (manners: Manners | undefined): boolean =>
    manners !== undefined && manners.pausedUntil > leased.now();

  /** Of several webhooks those that are claimed of with care, and the rest. */
  const apart = async (
    rooms: readonly GroupRoom[]
  ): Promise<{ plain: GroupRoom[]; careful: GroupRoom[] }> => {
    const manners = await known.of(rooms.map(({ group }) => group));
    const needsCare = ({ group }: GroupRoom): boolean => {
      const own = manners.get(group);
      return own !== undefined && isCareful(own);
    };
    const served = rooms.filter(({ group }) => !isPaused(manners.get(group)));
    return {
      plain: served.filter((room) => !needsCare(room)),
      careful: served.filter(needsCare),
    };
  };

  const claim = async (rooms: readonly GroupRoom[]): Promise<LeasedRow[]> => {
    const { plain, careful } = await apart(rooms);
    const claimed: LeasedRow[] = [];
    // What is leased waits until all is claimed: so what may take long comes first, and only for a while.
    const until = performance.now() + CAREFUL_TOGETHER_MS;
    for (const { group, limit } of careful) {
      if (performance.now() < until) claimed.push(...(await claimCarefully(group, limit)).leases);
      else hearsAgain(group, leased.now());
    }
    const [only, ...others] = plain;
    if (others.length > 0) claimed.push(...(await leased.claimGroups(plain)));
    else if (only) claimed.push(...(await leased.claim(only.group, only.limit)));
    return claimed;
  };

  return {
    claim,
    async claimWithin(webhook, limit, cap) {
      const manners = (await known.of([webhook])).get(webhook);
      if (isPaused(manners)) return { leases: [], isFull: false };
      const own = { ...cap, atOnce: manners?.concurrency ?? cap.atOnce };
      return manners && isCareful(manners)
        ? claimCarefully(webhook, limit, cap)
        : leased.claimWithin(webhook, limit, own);
    },
  };
};

/** A delivery, as an attempt has to know it. */
export interface QueuedDelivery {
  id: number;
  deliveryId: string;
  event: string;
  body: string;
  status: DeliveryStatus;
  /** Attempts made so far. */
  tries: number;
  /** Those of them that used up nothing of the schedule. */
  extraTries: number;
  /** When its next try is due by the schedule, epoch milliseconds; null: it has none. */
  nextAttemptAt: number | null;
  /** By how much its receiver has put it off so far, in milliseconds. */
  pausedMs: number;
  /** Why the last attempt that counts failed. */
  error: string | null;
  isTest: boolean;
  /** Of the record whose deliveries go one after the other; null: it waits for none. */
  line: string | null;
  /** The line that it would stand in, had its webhook an order; null: it is about no record. */
  ownLine: string | null;
  /** It is an event of the journal, sent later. */
  replayed: boolean;
}

export interface LeasedDelivery extends Lease {
  delivery: QueuedDelivery;
}

/** The cause of a delivery whose message somebody has deleted. */
const BODY_MISSING = 'body_missing';

const toLeased = ({ row, ...lease }: LeasedRow, body: string): LeasedDelivery => {
  const { document_id, event, status, tries, is_test, ...found } = row as unknown as DeliveryRow;
  return {
    ...lease,
    delivery: {
      id: lease.id,
      deliveryId: document_id,
      event,
      body,
      status,
      tries: Number(tries),
      extraTries: Number(found.extra_tries),
      nextAttemptAt: found.next_attempt_at === null ? null : Number(found.next_attempt_at),
      pausedMs: Number(found.paused_ms),
      error: found.error,
      isTest: Boolean(is_test),
      line: found.line,
      ownLine: lineOfRow({ status, is_test, ...found }),
      replayed: Boolean(found.replayed),
    },
  };
};

/** Ends what nothing is left of to send: else it would be taken again and again. */
const endWithoutBody = async (
  app: App,
  rows: LeasedRows,
  lost: readonly LeasedRow[]
): Promise<void> => {
  const ids = lost.map(({ id }) => id).join(', ');
  app.log.error(`switchboard: the message of these deliveries is gone: ${ids}`);
  const columns = {
    status: 'failed',
    next_attempt_at: null,
    finished_at: rows.now(),
    error: BODY_MISSING,
    line: null,
  };
  await app.db.retrying(async (tx) => {
    await rows.settle(
      tx,
      lost.map(({ id, owner }) => ({ id, owner, dueAt: null, columns }))
    );
    const lines = lost.map(({ group, row }) => ({
      webhook: group,
      line: (row as unknown as DeliveryRow).line,
    }));
    await noteEnds(tx, lines);
  });
};

/** Rows that were claimed, with what they send. Those whose message is gone end as failed. */
const toLeasedDeliveries = async (
  app: App,
  rows: LeasedRows,
  claimed: readonly LeasedRow[]
): Promise<LeasedDelivery[]> => {
  const found = claimed.map(({ row }) => row as unknown as DeliveryRow);
  const bodies = await readBodies(await app.db.current(), app, found);
  const lost = claimed.filter((_row, at) => bodies[at] === null);
  if (lost.length > 0) await endWithoutBody(app, rows, lost);
  return claimed.flatMap((row, at) => {
    const body = bodies[at];
    return typeof body === 'string' ? [toLeased(row, body)] : [];
  });
};

/** What an attempt made of a delivery; `attempt` is appended to its log. */
export interface DeliveryOutcome {
  lease: LeasedDelivery;
  next: NextState;
  attempt: Attempt;
  /** When the attempt ended, epoch milliseconds. */
  endedAt: number;
}

/** What becomes of deliveries under a lease. */
interface Settling {
  /** The line of a delivery, also where its webhook was given an order after the claim; null: it stands in none. */
  lineOf(lease: LeasedDelivery): Line | null;
  /**
   * Records attempts, each delivery only while its lease holds.
   * @returns the ids whose lease held; of the others nothing was written.
   */
  settle(db: Db, outcomes: readonly DeliveryOutcome[]): Promise<Set<number>>;
}

const toSettlement = ({ lease, next, attempt, endedAt }: DeliveryOutcome): Settlement => ({
  id: lease.id,
  owner: lease.owner,
  dueAt: next.nextAttemptAt,
  columns: {
    status: next.status,
    tries: next.tries,
    extra_tries: next.extraTries ?? 0,
    next_attempt_at: next.nextAttemptAt,
    finished_at: next.nextAttemptAt === null ? endedAt : null,
    error: next.pausedMs ? lease.delivery.error : attempt.error,
    paused_ms: lease.delivery.pausedMs + (next.pausedMs ?? 0),
  },
});

const hasMany = ({ lease: { delivery }, next, attempt }: DeliveryOutcome): boolean =>
  mayHaveMany({
    tries: next.tries,
    pausedMs: delivery.pausedMs + (next.pausedMs ?? 0),
    manual: attempt.manual,
  });

const createSettling = (
  app: App,
  leased: LeasedRows,
  known: Pick<KnownManners, 'get'>
): Settling => {
  const isOrdered = ({ group }: LeasedDelivery): boolean => known.get(group)?.isOrdered ?? false;

  const lineOf = (lease: LeasedDelivery): Line | null =>
    lease.delivery.line ?? (isOrdered(lease) ? lease.delivery.ownLine : null);

  /**
   * The line that is written; undefined: it stays as it is. It may have been put into one since the claim,
   * which is nothing to those whose webhook has no order.
   */
  const newLine = ({ lease, next }: DeliveryOutcome): Line | null | undefined => {
    const line = lineOf(lease);
    if (line === null) return undefined;
    if (next.nextAttemptAt === null) return null;
    return isOrdered(lease) ? line : undefined;
  };

  return {
    lineOf,
    async settle(db, outcomes) {
      const plain: Settlement[] = [];
      const ofLines: Settlement[] = [];
      const left = new Map<number, Line | null>();
      for (const outcome of outcomes) {
        const settlement = toSettlement(outcome);
        const line = newLine(outcome);
        if (line === undefined) plain.push(settlement);
        else ofLines.push({ ...settlement, columns: { ...settlement.columns, line } });
        if (line === null) left.set(outcome.lease.id, lineOf(outcome.lease));
      }
      const held = await leased.settle(db, plain);
      for (const id of await leased.settle(db, ofLines)) held.add(id);
      const written = outcomes.filter(({ lease }) => held.has(lease.id));
      await noteEnds(
        db,
        written.map(({ lease }) => ({ webhook: lease.group, line: left.get(lease.id) ?? null }))
      );
      await appendAttempts(
        db,
        written.map(({ lease, attempt }) => ({
          delivery: lease.id,
          webhook: lease.group,
          attempt,
        })),
        written.filter(hasMany).map(({ lease }) => lease.id)
      );
      return held;
    },
  };
};

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
  /** Whether it waits for the earlier ones of its record. */
  isOrdered?: boolean;
  /** It is an event of the journal, sent later. */
  replayed?: boolean;
}

/** The cause of a delivery that an import brought as pending. */
const IMPORTED = 'imported';
/** The cause of one that somebody has ended. */
const SKIPPED = 'skipped';

/** Why nothing was done with a delivery by hand. */
export type HandRefusal = 'absent' | 'finished' | 'held';
export interface Freed {
  webhook: number;
}

/** The cause of a delivery that somebody did not want to be sent any more. */
const DISCARDED = 'discarded';

/** The cause of a delivery whose webhook is gone. */
const WEBHOOK_DELETED = 'webhook_deleted';

/**
 * The queue of deliveries: with `log.ts` the only code that knows their rows. Groups are
 * webhooks; those that are switched off have nothing due.
 */
interface DeliveryStore extends CappedWorkStore<LeasedDelivery> {
  /**
   * Queues deliveries in `tx`'s transaction: they exist if and only if it commits. A message that
   * they share is stored with the first of them.
   */
  insert(db: Db, deliveries: readonly NewDelivery[]): Promise<void>;

  /** Logs a test, under a lease from the start, so that nobody sends it a second time. */
  insertLeased(delivery: NewDelivery): Promise<LeasedDelivery>;

  /** Takes one, due or not, finished or not; `held` while an attempt of it is under way. */
  claimOne(id: number): Promise<LeasedDelivery | 'held' | 'absent'>;

  /**
   * Records attempts, each delivery only while its lease holds.
   * @returns the ids whose lease held; of the others nothing was written.
   */
  settle(db: Db, outcomes: readonly DeliveryOutcome[]): Promise<Set<number>>;

  /** The line of a delivery that was claimed, also where its webhook was given an order since; null: it stands in none. */
  lineOf(lease: LeasedDelivery): string | null;

  /** What a webhook has of its own, as this process last heard. */
  limitsOf(webhook: number): GroupLimits;

  /** Says how a webhook is now that was changed, after the commit: this process then claims of it as it wants it. */
  heard(webhook: Webhook): void;

  /** Says how a webhook was when it was read (`performance.now()`), however long ago. */
  mentioned(webhook: Webhook, readAt: number): void;

  /** Says that a webhook is to be left alone until then (epoch milliseconds), after the commit. */
  paused(webhook: number, until: number): void;

  /** Has a listener told when more of a webhook may be claimed that its rate held back; epoch milliseconds. */
  onAgain(listener: (webhook: number, at: number) => void): void;

  /**
   * Ends a delivery that waits, as `failed` by hand, for which nothing counts.
   * @returns why it cannot be; NotFoundError (404) is the caller's
   */
  skip(id: number): Promise<HandRefusal | Freed>;

  /** Has later deliveries of its record no longer wait for it; its schedule stays. */
  letPass(id: number): Promise<HandRefusal | Freed>;

  /**
   * Brings what waits into line with a webhook's new order: when it answers, what had been queued
   * before goes by it.
   */
  reorder(webhook: Webhook): Promise<void>;

  /** The same for what a process left that died, of all webhooks. */
  reorderLeft(): Promise<void>;

  /** Removes what is kept of a webhook that is gone, but for its log. */
  forget(webhook: number): Promise<void>;

  /** Puts leased deliveries aside until `bringBack`: due for nobody, their schedule as it was. */
  putAside(leases: readonly LeasedDelivery[]): Promise<void>;

  /** Webhooks with deliveries that are put aside. */
  webhooksAside(): Promise<number[]>;

  /** The events of a webhook's deliveries that are put aside. */
  eventsAside(webhook: number): Promise<string[]>;

  /** Makes up to `limit` deliveries of these events due again. @returns how many there were. */
  bringBack(webhook: number, events: readonly string[], limit: number): Promise<number>;

  /**
   * Ends up to `limit` pending deliveries of these webhooks that an import brought, or that belong to
   * another site: the original did, or will. @returns how many there were.
   */
  endImported(webhooks: readonly number[], limit: number): Promise<number>;

  /** Webhooks that are gone and of which deliveries wait, as the queue sees it at little cost. */
  lostWebhooks(): Promise<number[]>;

  /** The same by the whole log, those included that are due for nobody; null: the delivery names no webhook. */
  allLostWebhooks(): Promise<(number | null)[]>;

  /**
   * Ends up to `limit` pending deliveries of a webhook that is gone, tests too, but for those whose attempt
   * is under way. @returns how many there were.
   */
  endLost(webhook: number | null, limit: number): Promise<number>;

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
  ): Promise<{ ended: number; isLeft: boolean }>;
}

type Ending = Pick<
  DeliveryStore,
  'skip' | 'letPass' | 'discard' | 'endImported' | 'lostWebhooks' | 'allLostWebhooks' | 'endLost'
>;

/** What ends deliveries without an attempt, or takes them out of their line. */
const createEnding = (app: App, leased: LeasedRows): Ending => {
  const rows = (db: Db): Knex.QueryBuilder => db.table(DELIVERIES_TABLE);

  /** The values of one that has failed without an attempt, for `error`. */
  const ended = (error: string): Record<string, string | number | null> => ({
    status: 'failed',
    due_at: null,
    owner: null,
    error,
    next_attempt_at: null,
    finished_at: leased.now(),
  });

  /** Changes a delivery that waits; those after it in its line need not wait for it any more. */
  const byHand = (
    id: number,
    changes: () => Record<string, string | number | null>
  ): Promise<HandRefusal | Freed> =>
    app.db.retrying(async (tx) => {
      const row = (await rows(tx)
        .select('webhook_id', 'status', 'is_test', 'owner', 'due_at', 'line')
        .where({ id })
        .forUpdate()
        .first()) as DeliveryRow | undefined;
      if (!row) return 'absent';
      if (row.owner !== null && Number(row.due_at) > leased.now()) return 'held';
      if (row.status !== 'pending' || row.is_test) return 'finished';
      const unchanged = { id, status: 'pending', owner: row.owner, due_at: row.due_at };
      if ((await rows(tx).where(unchanged).update(changes())) === 0) return 'held';
      const webhook = Number(row.webhook_id);
      await noteEnds(tx, [{ webhook, line: row.line }]);
      return { webhook };
    });

  /** Those of which no attempt is under way. */
  const isFree = (query: Knex.QueryBuilder): Knex.QueryBuilder =>
    query.andWhere((any) => {
      any.whereNull('owner').orWhere('due_at', '<=', leased.now());
    });

  /** @returns how many of these ended. */
  const end = async (
    db: Db,
    found: Knex.QueryBuilder,
    limit: number,
    error: string
  ): Promise<number> => {
    // As the log's index has them: by their ids all that wait would be sorted.
    const ids = (await found
      .orderBy(['error', 'created_at', 'id'])
      .limit(limit)
      .forUpdate()
      .pluck('id')) as number[];
    if (ids.length > 0) {
      await rows(db)
        .whereIn('id', ids)
        .update({ ...ended(error), line: null });
    }
    return ids.length;
  };

  return {
    skip: (id) => byHand(id, () => ({ ...ended(SKIPPED), line: null })),

    letPass: (id) => byHand(id, () => ({ released_at: leased.now() })),

    discard: (webhook, limit, force) =>
      app.db.retrying(async (tx) => {
        const pending = () =>
          rows(tx).where({ webhook_id: webhook, status: 'pending', is_test: false });
        const found = force ? pending() : isFree(pending());
        const count = await end(tx, found, limit, DISCARDED);
        return { ended: count, isLeft: Boolean(await pending().first('id')) };
      }),

    lostWebhooks: () => leased.lostGroups(),

    async allLostWebhooks() {
      const db = await app.db.current();
      const lost: (number | null)[] = [];
      const pending = () => rows(db).where({ status: 'pending' });
      if (await pending().whereNull('webhook_id').first('id')) lost.push(null);
      // Each step goes to the next webhook in an index, however many deliveries there are of one.
      for (let after = 0; ;) {
        const next = await rows(db).where('webhook_id', '>', after).min('webhook_id as id').first();
        const id = Number((next as { id: number | null } | undefined)?.id ?? 0);
        if (id === 0) return lost;
        const webhook = await db.table(WEBHOOKS_TABLE).where({ id }).first('id');
        if (!webhook && (await pending().where({ webhook_id: id }).first('id'))) lost.push(id);
        after = id;
      }
    },

    endLost: (webhook, limit) =>
      app.db.retrying((tx) => {
        const found = rows(tx).where({ webhook_id: webhook, status: 'pending' });
        return end(tx, isFree(found), limit, WEBHOOK_DELETED);
      }),

    async endImported(webhooks, limit) {
      const db = await app.db.current();
      const ids = (await rows(db)
        .whereIn('webhook_id', [...webhooks])
        .andWhere({ status: 'pending' })
        .andWhere((old) => {
          // Rows of an import are due for nobody. Those of another site may be due in a copied
          // database that was given an instance of its own.
          old.whereNull('due_at').orWhereNot('site_instance', app.site.instance);
        })
        .limit(limit)
        .pluck('id')) as number[];
      if (ids.length === 0) return 0;
      await rows(db).whereIn('id', ids).update(ended(IMPORTED));
      return ids.length;
    },
  };
};

/**
 * How long a delivery is held whose process has died. While that lives it prolongs the lease, so this
 * need not be as long as an attempt.
 */
const LEASE_MS = 8_000;
/** What has waited for a slot for so long goes back to its place: another process may have one. */
const LONGEST_WAIT_MS = 15_000;
/** Of an attempt that is made by hand, whose lease nobody prolongs: beyond the deadline. */
const BY_HAND_MARGIN_MS = 20_000;
/** What an attempt may take beyond its deadline: slow hooks, and recording it. */
const ATTEMPT_MARGIN_MS = 5_000;

/**
 * Milliseconds. With less than `reserveMs` left of what the claim gave no attempt is started; every
 * `renewMs` leases are prolonged; `longestMs` is what an attempt may take in all.
 */
export const leaseTimes = (
  timeoutMs: number
): { byHandMs: number; reserveMs: number; renewMs: number; longestMs: number } => ({
  byHandMs: timeoutMs + BY_HAND_MARGIN_MS,
  reserveMs: LEASE_MS - LONGEST_WAIT_MS,
  renewMs: LEASE_MS / 4,
  longestMs: timeoutMs + ATTEMPT_MARGIN_MS,
});

const EVERY_MS = 1000;
/** A lease that ended less long ago may be one that is being prolonged. */
const SLACK_MS = 250;
/** What ended longer ago is as old as what has come since. */
const LONGEST_MS = 30_000;
/** What two processes take for the time differs a little. */
const OVERLAP_MS = 2000;
const WEBHOOKS_AT_ONCE = 50;
const ROWS_AT_ONCE = 1000;

/**
 * What a process held that died is due when its lease ends: behind everything that was queued before. Where
 * a webhook has so much to do that it would wait, it gets back its place. Each sweep reads what became due
 * of such webhooks since the last one.
 */
export const createLapsedSweep = (
  leased: Pick<LeasedRows, 'now' | 'releaseLapsed'>
): ((due: ReadonlyMap<number, number>) => Promise<void>) => {
  let swept = Number.NEGATIVE_INFINITY;
  return async (due) => {
    const now = leased.now();
    const until = now - SLACK_MS;
    // The clock may have gone back.
    if (Math.abs(until - swept) < EVERY_MS) return;
    const since = swept <= until ? swept - OVERLAP_MS : Number.NEGATIVE_INFINITY;
    const from = Math.max(since, now - LONGEST_MS);
    swept = until;
    const behind = [...due].filter(([, at]) => at < now - LEASE_MS).sort((a, b) => a[1] - b[1]);
    for (const [webhook] of behind.slice(0, WEBHOOKS_AT_ONCE)) {
      await leased.releaseLapsed(webhook, { from, until }, ROWS_AT_ONCE);
    }
  };
};

type PuttingAside = Pick<DeliveryStore, 'putAside' | 'webhooksAside' | 'eventsAside' | 'bringBack'>;

/** Deliveries of a module that is off, which are due for nobody until it is on again. */
const createPuttingAside = (
  app: App,
  leased: LeasedRows,
  lineOf: DeliveryStore['lineOf']
): PuttingAside => {
  // Not an async function that returns the builder: a builder is thenable, awaiting it would run it.
  const aside = (db: Db, webhook: number): Knex.QueryBuilder =>
    db.table(DELIVERIES_TABLE).where({ webhook_id: webhook, due_at: ASIDE_UNTIL });

  return {
    async putAside(leases) {
      const settlements = leases.map(({ id, owner, delivery }) => {
        // A finished one that somebody sent again, and whose node died, has nothing to wait for.
        const dueAt = delivery.status === 'pending' ? ASIDE_UNTIL : null;
        return { id, owner, dueAt, columns: {} };
      });
      await app.db.retrying(async (tx) => {
        await leased.settle(tx, settlements);
        // Nobody knows when a module will be on again: later ones of the record do not wait for it.
        const lines = leases.map((lease) => ({
          webhook: lease.group,
          line: lineOf(lease),
        }));
        await noteEnds(tx, lines);
      });
    },

    async webhooksAside() {
      const found = await webhooksDueAt(await app.db.current(), ASIDE_UNTIL);
      return found.map(({ id }) => Number(id));
    },

    async eventsAside(webhook) {
      const found = (await aside(await app.db.current(), webhook).distinct('event')) as {
        event: string;
      }[];
      return found.map(({ event }) => event);
    },

    bringBack: (webhook, events, limit) =>
      app.db.retrying(async (tx) => {
        const ids = (await aside(tx, webhook)
          .whereIn('event', [...events])
          .limit(limit)
          .pluck('id')) as number[];
        if (ids.length === 0) return 0;
        await aside(tx, webhook)
          .whereIn('id', ids)
          .update({ due_at: tx.raw('COALESCE(next_attempt_at, ?)', [leased.now()]) });
        return ids.length;
      }),
  };
};

/** Writes rows of deliveries that are due, or leased, for `dueIn` milliseconds from when they were made. */
const insertDeliveries = (
  app: App,
  leased: LeasedRows,
  db: Db,
  deliveries: readonly NewDelivery[],
  dueIn = 0
): Promise<void> => {
  const site = app.site.instance;
  return leased.insert(
    db,
    deliveries.map((one) => ({
      group: one.webhook,
      dueAt: one.at + dueIn,
      columns: {
        document_id: one.deliveryId,
        site_instance: site,
        event: one.event,
        status: 'pending',
        tries: 0,
        is_test: one.isTest,
        next_attempt_at: one.at,
        created_at: one.at,
        finished_at: null,
        error: null,
        subject_type: one.subject?.type ?? null,
        subject_id: one.subject?.id ?? null,
        subject_label: one.subject?.label ?? null,
        line: one.isOrdered && one.subject ? lineOf(one.subject) : null,
        replayed: one.replayed ?? false,
        url: one.url,
        body: typeof one.body === 'string' ? one.body : null,
        message_id: typeof one.body === 'string' ? null : one.body.id,
        // Attempts of versions before 0.2 are here; those since are rows of their own.
        attempts: '[]',
      },
    }))
  );
};

/** Queues deliveries, and each message that they share with the first of them. */
const queueDeliveries = async (
  app: App,
  leased: LeasedRows,
  db: Db,
  deliveries: readonly NewDelivery[]
): Promise<void> => {
  const messages = new Set<SharedMessage>();
  for (const { body } of deliveries) {
    if (typeof body !== 'string' && body.id === null) messages.add(body);
  }
  await insertMessages(db, [...messages]);
  await insertDeliveries(app, leased, db, deliveries);
};

const createDeliveryStore = (app: App): DeliveryStore => {
  const known = new KnownManners(app);
  const { byHandMs } = leaseTimes(app.options.webhooks.timeoutMs);
  const leased = createLeasedRows(app.db, {
    tableName: DELIVERIES_TABLE,
    groupColumn: 'webhook_id',
    columns: {
      status: 'text',
      tries: 'integer',
      extra_tries: 'integer',
      next_attempt_at: 'bigint',
      finished_at: 'bigint',
      error: 'text',
      paused_ms: 'bigint',
      line: 'text',
    },
    groups: { tableName: WEBHOOKS_TABLE, where: { active: true }, seen: seenOf(app, known) },
    leaseMs: LEASE_MS,
    longestLeaseMs: byHandMs,
  });

  const rows = (db: Db): Knex.QueryBuilder => db.table(DELIVERIES_TABLE);

  const withBodies = (claimed: readonly LeasedRow[]): Promise<LeasedDelivery[]> =>
    toLeasedDeliveries(app, leased, claimed);

  const reordering = createReordering(app, leased);
  const sweepLapsed = createLapsedSweep(leased);
  const settling = createSettling(app, leased, known);
  let hearsAgain: (webhook: number, at: number) => void = () => {};
  const claiming = createClaiming(app, leased, known, (webhook, at) => hearsAgain(webhook, at));

  return {
    now: () => leased.now(),
    async dueTimes() {
      const due = await leased.dueTimes();
      await sweepLapsed(due);
      return due;
    },
    claim: async (webhook, limit) => withBodies(await claiming.claim([{ group: webhook, limit }])),
    claimGroups: async (webhooks) => withBodies(await claiming.claim(webhooks)),
    async claimWithin(webhook, limit, cap) {
      const claimed = await claiming.claimWithin(webhook, limit, cap);
      return { ...claimed, leases: await withBodies(claimed.leases) };
    },
    limitsOf(webhook) {
      const manners = known.get(webhook);
      return {
        cap: manners?.concurrency ?? null,
        ahead: (manners?.ratePerSecond ?? null) === null,
        alone: manners !== undefined && isCareful(manners),
      };
    },
    heard: (webhook) => known.noteWebhook(webhook),
    mentioned: (webhook, readAt) => known.mention(webhook, readAt),
    paused: (webhook, until) => known.notePause(webhook, until),
    onAgain(listener) {
      hearsAgain = listener;
    },
    renew: (leases) => leased.renew(leases),
    release: (leases) => leased.release(leases),
    insert: (db, deliveries) => queueDeliveries(app, leased, db, deliveries),

    async insertLeased(delivery) {
      await app.db.retrying((tx) => insertDeliveries(app, leased, tx, [delivery], byHandMs));
      const row = (await rows(await app.db.current())
        .select('id')
        .where({ document_id: delivery.deliveryId })
        .first()) as Pick<DeliveryRow, 'id'> | undefined;
      const claimed = row ? await leased.claimOne(Number(row.id), byHandMs) : 'absent';
      const lease = typeof claimed === 'string' ? undefined : (await withBodies([claimed]))[0];
      if (!lease) throw new Error('The test could not be started.');
      return lease;
    },

    async claimOne(id) {
      const claimed = await leased.claimOne(id, byHandMs);
      return typeof claimed === 'string' ? claimed : ((await withBodies([claimed]))[0] ?? 'absent');
    },

    lineOf: (lease) => settling.lineOf(lease),
    settle: (db, outcomes) => settling.settle(db, outcomes),
    ...createPuttingAside(app, leased, (lease) => settling.lineOf(lease)),
    ...createEnding(app, leased),

    reorder: (webhook) => reordering.reorder(webhook),
    reorderLeft: () => reordering.reorderLeft(),

    async forget(webhook) {
      const db = await app.db.current();
      for (const name of [PACES_TABLE, LINE_ENDS_TABLE]) {
        await db.table(name).where({ webhook_id: webhook }).delete();
      }
    },
  };
};

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
