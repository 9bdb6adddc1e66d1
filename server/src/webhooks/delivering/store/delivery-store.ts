import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import type { Attempt, DeliveryStatus } from '../../../../../shared/contracts/webhooks';
import { getOptions } from '../../../config';
import { currentExecutor, type Executor, table } from '../../../database/connection';
import { inRetriedTransaction } from '../../../database/errors/retry';
import { createLeasedRows } from '../../../database/leases/leased-rows';
import type { LeasedRow } from '../../../database/leases/types';
import { siteInstance } from '../../../database/site-instance';
import type { CappedWorkStore, Lease } from '../../../scheduling/types';
import type { NextState } from '../../rules/transition';
import { DELIVERIES_TABLE, type DeliveryRow, WEBHOOKS_TABLE } from '../../tables';
import { appendAttempts } from './attempts-table';
import { insertMessages, readBodies, type SharedMessage } from './messages';

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
}

/** A delivery, as an attempt has to know it. */
export interface QueuedDelivery {
  id: number;
  deliveryId: string;
  event: string;
  body: string;
  status: DeliveryStatus;
  /** Attempts made so far. */
  tries: number;
  isTest: boolean;
}

export interface LeasedDelivery extends Lease {
  delivery: QueuedDelivery;
}

/** What an attempt made of a delivery; `attempt` is appended to its log. */
export interface DeliveryOutcome {
  lease: LeasedDelivery;
  next: NextState;
  attempt: Attempt;
  /** When the attempt ended, epoch milliseconds. */
  endedAt: number;
}

/** The cause of a delivery that an import brought as pending. */
export const IMPORTED = 'imported';

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
}

/** Left of a lease beyond an attempt's deadline: time for slow hooks and for recording. */
const LEASE_MARGIN_MS = 20_000;
/** Less than this beyond the deadline left: the attempt is not started. */
const RESERVE_MARGIN_MS = 5_000;

/** How long a node may hold a delivery, and how much of that an attempt needs, in milliseconds. */
export const leaseTimes = (timeoutMs: number): { leaseMs: number; reserveMs: number } => ({
  leaseMs: timeoutMs + LEASE_MARGIN_MS,
  reserveMs: timeoutMs + RESERVE_MARGIN_MS,
});

/**
 * When a delivery is due that is put aside: not in our time (the end of the year 9999). So it costs
 * the queue nothing, is found by the index the queue has, and `next_attempt_at` stays what it was.
 */
const ASIDE_UNTIL = 253_402_300_799_999;

/** The cause of a delivery whose message somebody has deleted. */
const BODY_MISSING = 'body_missing';

const toLeased = ({ row, ...lease }: LeasedRow, body: string): LeasedDelivery => {
  const { document_id, event, status, tries, is_test } = row as unknown as DeliveryRow;
  return {
    ...lease,
    delivery: {
      id: lease.id,
      deliveryId: document_id,
      event,
      body,
      status,
      tries: Number(tries),
      isTest: Boolean(is_test),
    },
  };
};

const createDeliveryStore = (strapi: Core.Strapi): DeliveryStore => {
  const { leaseMs } = leaseTimes(getOptions(strapi).webhooks.timeoutMs);
  const leased = createLeasedRows(strapi, {
    tableName: DELIVERIES_TABLE,
    groupColumn: 'webhook_id',
    columns: {
      status: 'text',
      tries: 'integer',
      next_attempt_at: 'bigint',
      finished_at: 'bigint',
      error: 'text',
    },
    groups: { tableName: WEBHOOKS_TABLE, where: { active: true } },
    leaseMs,
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
          url: one.url,
          body: typeof one.body === 'string' ? one.body : null,
          message_id: typeof one.body === 'string' ? null : one.body.id,
          // Attempts of versions before 0.2 are here; those since are rows of their own.
          attempts: '[]',
        },
      }))
    );
  };

  /** Ends what nothing is left of to send: else it would be taken again and again. */
  const endWithoutBody = async (lost: readonly LeasedRow[]): Promise<void> => {
    const ids = lost.map(({ id }) => id).join(', ');
    strapi.log.error(`switchboard: the message of these deliveries is gone: ${ids}`);
    const columns = {
      status: 'failed',
      next_attempt_at: null,
      finished_at: leased.now(),
      error: BODY_MISSING,
    };
    await inRetriedTransaction(strapi, ({ trx }) =>
      leased.settle(
        trx,
        lost.map(({ id, owner }) => ({ id, owner, dueAt: null, columns }))
      )
    );
  };

  const withBodies = async (claimed: readonly LeasedRow[]): Promise<LeasedDelivery[]> => {
    const found = claimed.map(({ row }) => row as unknown as DeliveryRow);
    const bodies = await readBodies(strapi, await currentExecutor(strapi), found);
    const lost = claimed.filter((_row, at) => bodies[at] === null);
    if (lost.length > 0) await endWithoutBody(lost);
    return claimed.flatMap((row, at) => {
      const body = bodies[at];
      return typeof body === 'string' ? [toLeased(row, body)] : [];
    });
  };

  // Not an async function that returns the builder: a builder is thenable, awaiting it would run it.
  const aside = (executor: Executor, webhook: number): Knex.QueryBuilder =>
    rows(executor).where({ webhook_id: webhook, due_at: ASIDE_UNTIL });

  return {
    now: () => leased.now(),
    dueTimes: () => leased.dueTimes(),
    claim: async (webhook, limit) => withBodies(await leased.claim(webhook, limit)),
    claimGroups: async (webhooks) => withBodies(await leased.claimGroups(webhooks)),
    async claimWithin(webhook, limit, cap) {
      const { leases, isFull } = await leased.claimWithin(webhook, limit, cap);
      return { leases: await withBodies(leases), isFull };
    },
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
      await inRetriedTransaction(strapi, ({ trx }) => insert(trx, [delivery], leaseMs));
      const row = (await rows(await currentExecutor(strapi))
        .select('id')
        .where({ document_id: delivery.deliveryId })
        .first()) as Pick<DeliveryRow, 'id'> | undefined;
      const claimed = row ? await leased.claimOne(Number(row.id)) : 'absent';
      const lease = typeof claimed === 'string' ? undefined : (await withBodies([claimed]))[0];
      if (!lease) throw new Error('The test could not be started.');
      return lease;
    },

    async claimOne(id) {
      const claimed = await leased.claimOne(id);
      return typeof claimed === 'string' ? claimed : ((await withBodies([claimed]))[0] ?? 'absent');
    },

    async settle(executor, outcomes) {
      const held = await leased.settle(
        executor,
        outcomes.map(({ lease, next, attempt, endedAt }) => ({
          id: lease.id,
          owner: lease.owner,
          dueAt: next.nextAttemptAt,
          columns: {
            status: next.status,
            tries: next.tries,
            next_attempt_at: next.nextAttemptAt,
            finished_at: next.nextAttemptAt === null ? endedAt : null,
            error: attempt.error,
          },
        }))
      );
      await appendAttempts(
        strapi,
        executor,
        outcomes
          .filter(({ lease }) => held.has(lease.id))
          .map(({ lease, attempt }) => ({ delivery: lease.id, webhook: lease.group, attempt }))
      );
      return held;
    },

    async putAside(leases) {
      const settlements = leases.map(({ id, owner, delivery }) => {
        // A finished one that somebody sent again, and whose node died, has nothing to wait for.
        const dueAt = delivery.status === 'pending' ? ASIDE_UNTIL : null;
        return { id, owner, dueAt, columns: {} };
      });
      await inRetriedTransaction(strapi, ({ trx }) => leased.settle(trx, settlements));
    },

    async webhooksAside() {
      const executor = await currentExecutor(strapi);
      const held = table(strapi, executor, `${DELIVERIES_TABLE} as d`)
        .select('d.id')
        .whereRaw('?? = ??', ['d.webhook_id', 'w.id'])
        .where('d.due_at', ASIDE_UNTIL);
      const found = (await table(strapi, executor, `${WEBHOOKS_TABLE} as w`)
        .whereExists(held)
        .pluck('w.id')) as number[];
      return found.map(Number);
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
