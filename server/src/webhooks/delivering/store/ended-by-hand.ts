import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { currentExecutor, type Executor, table } from '../../../database/connection';
import { inRetriedTransaction } from '../../../database/errors/retry';
import type { LeasedRows } from '../../../database/leases/types';
import { siteInstance } from '../../../database/site-instance';
import { DELIVERIES_TABLE, type DeliveryRow } from '../../tables';
import {
  DISCARDED,
  type DeliveryStore,
  type Freed,
  type HandRefusal,
  IMPORTED,
  SKIPPED,
} from './delivery-store-types';
import { noteEnds } from './lines';

type Ending = Pick<DeliveryStore, 'skip' | 'letPass' | 'discard' | 'endImported'>;

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
      const isFree = { id, status: 'pending', owner: row.owner, due_at: row.due_at };
      if ((await rows(trx).where(isFree).update(changes())) === 0) return 'held';
      const webhook = Number(row.webhook_id);
      await noteEnds(strapi, trx, [{ webhook, line: row.line }]);
      return { webhook };
    });

  return {
    skip: (id) => byHand(id, () => ({ ...ended(SKIPPED), line: null })),

    letPass: (id) => byHand(id, () => ({ released_at: leased.now() })),

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
          await rows(trx)
            .whereIn('id', ids)
            .update({ ...ended(DISCARDED), line: null });
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
      await rows(executor).whereIn('id', ids).update(ended(IMPORTED));
      return ids.length;
    },
  };
};
