import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import type { Subject, Webhook } from '../../../../../shared/contracts/webhooks';
import { getOptions } from '../../../config';
import { currentExecutor, type Executor, table } from '../../../database/connection';
import { inRetriedTransaction } from '../../../database/errors/retry';
import { createLeasedRows } from '../../../database/leases/leased-rows';
import type { LeasedRow } from '../../../database/leases/types';
import { siteInstance } from '../../../database/site-instance';
import type {
  CappedClaim,
  CappedWorkStore,
  GroupLimits,
  GroupRoom,
  LeaseCap,
} from '../../../scheduling/types';
import {
  DELIVERIES_TABLE,
  type DeliveryRow,
  LINE_ENDS_TABLE,
  PACES_TABLE,
  WEBHOOKS_TABLE,
} from '../../tables';
import { createCarefulClaims } from './careful-claims';
import { ASIDE_UNTIL } from './far-times';
import { createLapsedSweep } from './lapsed';
import { type LeasedDelivery, toLeasedDeliveries } from './leased-deliveries';
import { LEASE_MS, leaseTimes } from './lease-times';
import { lineOf, noteEnds } from './lines';
import { createKnownManners, isCareful, type Manners } from './manners';
import { insertMessages, type SharedMessage } from './messages';
import { createReordering, webhooksDueAt } from './reordering';
import { seenOf } from './seen-webhooks';
import { createSettling, type DeliveryOutcome } from './settling';

export type { LeasedDelivery, QueuedDelivery } from './leased-deliveries';
export type { DeliveryOutcome } from './settling';

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
export const IMPORTED = 'imported';
/** The cause of one that somebody has ended. */
export const SKIPPED = 'skipped';

/** Why nothing was done with a delivery by hand. */
export type HandRefusal = 'absent' | 'finished' | 'held';
export interface Freed {
  webhook: number;
}

/** The cause of a delivery that somebody did not want to be sent any more. */
export const DISCARDED = 'discarded';

/**
 * The queue of deliveries: with `delivery-log.ts` the only code that knows their rows. Groups are
 * webhooks; those that are switched off have nothing due.
 */
export interface DeliveryStore extends CappedWorkStore<LeasedDelivery> {
  /**
   * Queues deliveries in `executor`'s transaction: they exist if and only if it commits. A message that
   * they share is stored with the first of them.
   */
  insert(executor: Executor, deliveries: readonly NewDelivery[]): Promise<void>;

  /** Logs a test, under a lease from the start, so that nobody sends it a second time. */
  insertLeased(delivery: NewDelivery): Promise<LeasedDelivery>;

  /** Takes one, due or not, finished or not; `held` while an attempt of it is under way. */
  claimOne(id: number): Promise<LeasedDelivery | 'held' | 'absent'>;

  /**
   * Records attempts, each delivery only while its lease holds.
   * @returns the ids whose lease held; of the others nothing was written.
   */
  settle(executor: Executor, outcomes: readonly DeliveryOutcome[]): Promise<Set<number>>;

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

/** For so long webhooks with manners are claimed of that were not known to have any, before others. */
const CAREFUL_TOGETHER_MS = 100;

const createDeliveryStore = (strapi: Core.Strapi): DeliveryStore => {
  const known = createKnownManners(strapi);
  const { byHandMs } = leaseTimes(getOptions(strapi).webhooks.timeoutMs);
  const leased = createLeasedRows(strapi, {
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
    groups: { tableName: WEBHOOKS_TABLE, where: { active: true }, seen: seenOf(strapi, known) },
    leaseMs: LEASE_MS,
    longestLeaseMs: byHandMs,
  });

  const rows = (executor: Executor): Knex.QueryBuilder => table(strapi, executor, DELIVERIES_TABLE);

  const insert = (
    executor: Executor,
    deliveries: readonly NewDelivery[],
    dueIn = 0
  ): Promise<void> => {
    const site = siteInstance(strapi);
    return leased.insert(
      executor,
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

  const withBodies = (claimed: readonly LeasedRow[]): Promise<LeasedDelivery[]> =>
    toLeasedDeliveries(strapi, leased, claimed);

  const carefully = createCarefulClaims(strapi, leased, known);
  const reordering = createReordering(strapi, leased);
  const sweepLapsed = createLapsedSweep(leased);
  const settling = createSettling(strapi, leased, known);
  let hearsAgain: (webhook: number, at: number) => void = () => {};

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

  const claimApart = async (rooms: readonly GroupRoom[]): Promise<LeasedRow[]> => {
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

  // Not an async function that returns the builder: a builder is thenable, awaiting it would run it.
  const aside = (executor: Executor, webhook: number): Knex.QueryBuilder =>
    rows(executor).where({ webhook_id: webhook, due_at: ASIDE_UNTIL });

  /** Changes a delivery that waits; those after it in its line need not wait for it any more. */
  const byHand = (
    id: number,
    changes: () => Record<string, string | number | null>
  ): Promise<HandRefusal | Freed> =>
    inRetriedTransaction(strapi, async ({ trx }) => {
      const row = (await rows(trx)
        .select('webhook_id', 'status', 'is_test', 'owner', 'due_at', 'line')
        .where({ id })
        .forUpdate()
        .first()) as DeliveryRow | undefined;
      if (!row) return 'absent';
      if (row.owner !== null && Number(row.due_at) > leased.now()) return 'held';
      if (row.status !== 'pending' || row.is_test) return 'finished';
      const isFree = { id, status: 'pending', owner: row.owner, due_at: row.due_at };
      if ((await rows(trx).where(isFree).update(changes())) === 0) return 'held';
      const webhook = Number(row.webhook_id);
      await noteEnds(strapi, trx, [{ webhook, line: row.line }]);
      return { webhook };
    });

  return {
    now: () => leased.now(),
    async dueTimes() {
      const due = await leased.dueTimes();
      await sweepLapsed(due);
      return due;
    },
    claim: async (webhook, limit) => withBodies(await claimApart([{ group: webhook, limit }])),
    claimGroups: async (webhooks) => withBodies(await claimApart(webhooks)),
    async claimWithin(webhook, limit, cap) {
      const manners = (await known.of([webhook])).get(webhook);
      if (isPaused(manners)) return { leases: [], isFull: false };
      const own = { ...cap, atOnce: manners?.concurrency ?? cap.atOnce };
      const { leases, isFull } =
        manners && isCareful(manners)
          ? await claimCarefully(webhook, limit, cap)
          : await leased.claimWithin(webhook, limit, own);
      return { leases: await withBodies(leases), isFull };
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
    async insert(executor, deliveries) {
      const messages = new Set<SharedMessage>();
      for (const { body } of deliveries) {
        if (typeof body !== 'string' && body.id === null) messages.add(body);
      }
      await insertMessages(strapi, executor, [...messages]);
      await insert(executor, deliveries);
    },

    async insertLeased(delivery) {
      await inRetriedTransaction(strapi, ({ trx }) => insert(trx, [delivery], byHandMs));
      const row = (await rows(await currentExecutor(strapi))
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
    settle: (executor, outcomes) => settling.settle(executor, outcomes),

    async putAside(leases) {
      const settlements = leases.map(({ id, owner, delivery }) => {
        // A finished one that somebody sent again, and whose node died, has nothing to wait for.
        const dueAt = delivery.status === 'pending' ? ASIDE_UNTIL : null;
        return { id, owner, dueAt, columns: {} };
      });
      await inRetriedTransaction(strapi, async ({ trx }) => {
        await leased.settle(trx, settlements);
        // Nobody knows when a module will be on again: later ones of the record do not wait for it.
        const lines = leases.map((lease) => ({
          webhook: lease.group,
          line: settling.lineOf(lease),
        }));
        await noteEnds(strapi, trx, lines);
      });
    },

    skip: (id) =>
      byHand(id, () => ({
        status: 'failed',
        due_at: null,
        owner: null,
        line: null,
        next_attempt_at: null,
        finished_at: leased.now(),
        error: SKIPPED,
      })),

    letPass: (id) => byHand(id, () => ({ released_at: leased.now() })),

    reorder: (webhook) => reordering.reorder(webhook),
    reorderLeft: () => reordering.reorderLeft(),

    async forget(webhook) {
      const executor = await currentExecutor(strapi);
      for (const name of [PACES_TABLE, LINE_ENDS_TABLE]) {
        await table(strapi, executor, name).where({ webhook_id: webhook }).delete();
      }
    },

    async webhooksAside() {
      const found = await webhooksDueAt(strapi, await currentExecutor(strapi), ASIDE_UNTIL);
      return found.map(({ id }) => Number(id));
    },

    async eventsAside(webhook) {
      const found = (await aside(await currentExecutor(strapi), webhook).distinct('event')) as {
        event: string;
      }[];
      return found.map(({ event }) => event);
    },

    bringBack: (webhook, events, limit) =>
      inRetriedTransaction(strapi, async ({ trx }) => {
        const ids = (await aside(trx, webhook)
          .whereIn('event', [...events])
          .limit(limit)
          .pluck('id')) as number[];
        if (ids.length === 0) return 0;
        await aside(trx, webhook)
          .whereIn('id', ids)
          .update({ due_at: trx.raw('COALESCE(next_attempt_at, ?)', [leased.now()]) });
        return ids.length;
      }),

    discard: (webhook, limit, force) =>
      inRetriedTransaction(strapi, async ({ trx }) => {
        const pending = () =>
          rows(trx).where({ webhook_id: webhook, status: 'pending', is_test: false });
        const at = leased.now();
        const free = pending();
        if (!force) {
          free.andWhere((any) => {
            any.whereNull('owner').orWhere('due_at', '<=', at);
          });
        }
        // As the log's index has them: by their ids all that wait would be sorted.
        const ids = (await free
          .orderBy(['error', 'created_at', 'id'])
          .limit(limit)
          .forUpdate()
          .pluck('id')) as number[];
        if (ids.length > 0) {
          await rows(trx).whereIn('id', ids).update({
            status: 'failed',
            due_at: null,
            owner: null,
            line: null,
            error: DISCARDED,
            next_attempt_at: null,
            finished_at: at,
          });
        }
        return { ended: ids.length, isLeft: Boolean(await pending().first('id')) };
      }),

    async endImported(webhooks, limit) {
      const executor = await currentExecutor(strapi);
      const ids = (await rows(executor)
        .whereIn('webhook_id', [...webhooks])
        .andWhere({ status: 'pending' })
        .andWhere((old) => {
          // Rows of an import are due for nobody. Those of another site may be due in a copied
          // database that was given an instance of its own.
          old.whereNull('due_at').orWhereNot('site_instance', siteInstance(strapi));
        })
        .limit(limit)
        .pluck('id')) as number[];
      if (ids.length === 0) return 0;
      await rows(executor).whereIn('id', ids).update({
        status: 'failed',
        due_at: null,
        owner: null,
        error: IMPORTED,
        next_attempt_at: null,
        finished_at: leased.now(),
      });
      return ids.length;
    },
  };
};

const stores = new WeakMap<Core.Strapi, DeliveryStore>();

export const getDeliveryStore = (strapi: Core.Strapi): DeliveryStore => {
  let store = stores.get(strapi);
  if (!store) {
    store = createDeliveryStore(strapi);
    stores.set(strapi, store);
  }
  return store;
};
