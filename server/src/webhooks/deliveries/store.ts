import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { getOptions } from '../../config';
import { currentExecutor, type Executor, table } from '../../database/connection';
import { inRetriedTransaction } from '../../database/retry';
import { createLeasedRows } from '../../database/leases';
import type { LeasedRow } from '../../database/lease-types';
import {
  DELIVERIES_TABLE,
  type DeliveryRow,
  LINE_ENDS_TABLE,
  PACES_TABLE,
  WEBHOOKS_TABLE,
} from '../tables';
import { createClaiming } from '../delivering/store/claiming';
import type { DeliveryStore } from '../delivering/store/delivery-store-types';
import { createEnding } from '../delivering/store/ended-by-hand';
import { createLapsedSweep } from '../delivering/store/lapsed';
import { type LeasedDelivery, toLeasedDeliveries } from '../delivering/store/leased-deliveries';
import { LEASE_MS, leaseTimes } from '../delivering/store/lease-times';
import { createKnownManners, isCareful } from './limits';
import { createPuttingAside } from '../delivering/store/put-aside';
import { insertDeliveries, queueDeliveries } from '../delivering/store/queueing';
import { createReordering } from '../delivering/store/reordering';
import { seenOf } from '../delivering/store/seen-webhooks';
import { createSettling } from '../delivering/store/settling';

export type {
  DeliveryStore,
  Freed,
  HandRefusal,
  NewDelivery,
} from '../delivering/store/delivery-store-types';
export {
  DISCARDED,
  IMPORTED,
  SKIPPED,
  WEBHOOK_DELETED,
} from '../delivering/store/delivery-store-types';
export type { LeasedDelivery, QueuedDelivery } from '../delivering/store/leased-deliveries';
export type { DeliveryOutcome } from '../delivering/store/settling';

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

  const withBodies = (claimed: readonly LeasedRow[]): Promise<LeasedDelivery[]> =>
    toLeasedDeliveries(strapi, leased, claimed);

  const reordering = createReordering(strapi, leased);
  const sweepLapsed = createLapsedSweep(leased);
  const settling = createSettling(strapi, leased, known);
  let hearsAgain: (webhook: number, at: number) => void = () => {};
  const claiming = createClaiming(strapi, leased, known, (webhook, at) => hearsAgain(webhook, at));

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
    insert: (executor, deliveries) => queueDeliveries(strapi, leased, executor, deliveries),

    async insertLeased(delivery) {
      await inRetriedTransaction(strapi, ({ trx }) =>
        insertDeliveries(strapi, leased, trx, [delivery], byHandMs)
      );
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
    ...createPuttingAside(strapi, leased, (lease) => settling.lineOf(lease)),
    ...createEnding(strapi, leased),

    reorder: (webhook) => reordering.reorder(webhook),
    reorderLeft: () => reordering.reorderLeft(),

    async forget(webhook) {
      const executor = await currentExecutor(strapi);
      for (const name of [PACES_TABLE, LINE_ENDS_TABLE]) {
        await table(strapi, executor, name).where({ webhook_id: webhook }).delete();
      }
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
