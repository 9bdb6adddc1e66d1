import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { currentExecutor, type Executor, table } from '../../../database/connection';
import { inRetriedTransaction } from '../../../database/retry';
import type { LeasedRows } from '../../../database/lease-types';
import { siteInstance } from '../../../database/site-instance';
import { DELIVERIES_TABLE, type DeliveryRow, WEBHOOKS_TABLE } from '../../tables';
import {
  DISCARDED,
  type DeliveryStore,
  type Freed,
  type HandRefusal,
  IMPORTED,
  SKIPPED,
  WEBHOOK_DELETED,
} from './delivery-store-types';
import { noteEnds } from '../../deliveries/ordering';

type Ending = Pick<
  DeliveryStore,
  'skip' | 'letPass' | 'discard' | 'endImported' | 'lostWebhooks' | 'allLostWebhooks' | 'endLost'
>;

/** What ends deliveries without an attempt, or takes them out of their line. */
export const createEnding = (strapi: Core.Strapi, leased: LeasedRows): Ending => {
  const rows = (executor: Executor): Knex.QueryBuilder => table(strapi, executor, DELIVERIES_TABLE);

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
    inRetriedTransaction(strapi, async ({ trx }) => {
      const row = (await rows(trx)
        .select('webhook_id', 'status', 'is_test', 'owner', 'due_at', 'line')
        .where({ id })
        .forUpdate()
        .first()) as DeliveryRow | undefined;
      if (!row) return 'absent';
      if (row.owner !== null && Number(row.due_at) > leased.now()) return 'held';
      if (row.status !== 'pending' || row.is_test) return 'finished';
      const unchanged = { id, status: 'pending', owner: row.owner, due_at: row.due_at };
      if ((await rows(trx).where(unchanged).update(changes())) === 0) return 'held';
      const webhook = Number(row.webhook_id);
      await noteEnds(strapi, trx, [{ webhook, line: row.line }]);
      return { webhook };
    });

  /** Those of which no attempt is under way. */
  const isFree = (query: Knex.QueryBuilder): Knex.QueryBuilder =>
    query.andWhere((any) => {
      any.whereNull('owner').orWhere('due_at', '<=', leased.now());
    });

  /** @returns how many of these ended. */
  const end = async (
    executor: Executor,
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
      await rows(executor)
        .whereIn('id', ids)
        .update({ ...ended(error), line: null });
    }
    return ids.length;
  };

  return {
    skip: (id) => byHand(id, () => ({ ...ended(SKIPPED), line: null })),

    letPass: (id) => byHand(id, () => ({ released_at: leased.now() })),

    discard: (webhook, limit, force) =>
      inRetriedTransaction(strapi, async ({ trx }) => {
        const pending = () =>
          rows(trx).where({ webhook_id: webhook, status: 'pending', is_test: false });
        const found = force ? pending() : isFree(pending());
        const count = await end(trx, found, limit, DISCARDED);
        return { ended: count, isLeft: Boolean(await pending().first('id')) };
      }),

    lostWebhooks: () => leased.lostGroups(),

    async allLostWebhooks() {
      const executor = await currentExecutor(strapi);
      const lost: (number | null)[] = [];
      const pending = () => rows(executor).where({ status: 'pending' });
      if (await pending().whereNull('webhook_id').first('id')) lost.push(null);
      // Each step goes to the next webhook in an index, however many deliveries there are of one.
      for (let after = 0; ;) {
        const next = await rows(executor)
          .where('webhook_id', '>', after)
          .min('webhook_id as id')
          .first();
        const id = Number((next as { id: number | null } | undefined)?.id ?? 0);
        if (id === 0) return lost;
        const webhook = await table(strapi, executor, WEBHOOKS_TABLE).where({ id }).first('id');
        if (!webhook && (await pending().where({ webhook_id: id }).first('id'))) lost.push(id);
        after = id;
      }
    },

    endLost: (webhook, limit) =>
      inRetriedTransaction(strapi, ({ trx }) => {
        const found = rows(trx).where({ webhook_id: webhook, status: 'pending' });
        return end(trx, isFree(found), limit, WEBHOOK_DELETED);
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
      await rows(executor).whereIn('id', ids).update(ended(IMPORTED));
      return ids.length;
    },
  };
};
