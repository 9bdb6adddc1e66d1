import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { currentExecutor, type Executor, table } from '../../../database/connection';
import { inRetriedTransaction } from '../../../database/retry';
import type { LeasedRows } from '../../../database/lease-types';
import { DELIVERIES_TABLE } from '../../tables';
import type { DeliveryStore } from './delivery-store-types';
import { ASIDE_UNTIL } from './far-times';
import { noteEnds } from '../../deliveries/ordering';
import { webhooksDueAt } from './reordering';

type PuttingAside = Pick<DeliveryStore, 'putAside' | 'webhooksAside' | 'eventsAside' | 'bringBack'>;

/** Deliveries of a module that is off, which are due for nobody until it is on again. */
export const createPuttingAside = (
  strapi: Core.Strapi,
  leased: LeasedRows,
  lineOf: DeliveryStore['lineOf']
): PuttingAside => {
  // Not an async function that returns the builder: a builder is thenable, awaiting it would run it.
  const aside = (executor: Executor, webhook: number): Knex.QueryBuilder =>
    table(strapi, executor, DELIVERIES_TABLE).where({ webhook_id: webhook, due_at: ASIDE_UNTIL });

  return {
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
          line: lineOf(lease),
        }));
        await noteEnds(strapi, trx, lines);
      });
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
  };
};
