import type { Core } from '@strapi/strapi';
import type { Webhook } from '../../../../../shared/contracts/webhooks';
import { currentExecutor, type Executor, table } from '../../../database/connection';
import { withTransientRetry } from '../../../database/retry';
import type { LeasedRows } from '../../../database/lease-types';
import { nextTurn } from '../../../runtime/event-loop';
import { DELIVERIES_TABLE, type WebhookRow, WEBHOOKS_TABLE } from '../../tables';
import { inTurnOf } from './careful-claims';
import { HELD_UNTIL } from './far-times';
import { dissolveLines, forgetEnds, noteHeld, standInLine } from '../../deliveries/ordering';
import { pendingPages } from './pending-pages';

const AT_ONCE = 500;

/** Webhooks with deliveries that are due at that time. */
export const webhooksDueAt = async (
  strapi: Core.Strapi,
  executor: Executor,
  dueAt: number
): Promise<Pick<WebhookRow, 'id' | 'active' | 'ordering'>[]> => {
  const due = table(strapi, executor, `${DELIVERIES_TABLE} as d`)
    .select('d.id')
    .whereRaw('?? = ??', ['d.webhook_id', 'w.id'])
    .where('d.due_at', dueAt);
  return (await table(strapi, executor, `${WEBHOOKS_TABLE} as w`)
    .whereExists(due)
    .select('w.id', 'w.active', 'w.ordering')) as Pick<WebhookRow, 'id' | 'active' | 'ordering'>[];
};

/** Brings what waits into line with the order of its webhook. */
export interface Reordering {
  /** When it answers, what had been queued before goes by the webhook's new order. */
  reorder(webhook: Webhook): Promise<void>;
  /** What a process left that died, and what was ended without a word, of all webhooks. */
  reorderLeft(): Promise<void>;
}

export const createReordering = (strapi: Core.Strapi, leased: LeasedRows): Reordering => {
  const form = async (webhook: number): Promise<void> => {
    for await (const page of pendingPages(strapi, webhook)) {
      const outside = page.filter(({ line }) => line === null);
      await withTransientRetry(async () =>
        standInLine(strapi, await currentExecutor(strapi), outside)
      );
    }
  };

  const dissolve = async (webhook: number): Promise<void> => {
    for (;;) {
      const gone = await inTurnOf(strapi, webhook, async (trx) =>
        dissolveLines(strapi, trx, { webhook, now: leased.now(), limit: AT_ONCE })
      );
      if (gone < AT_ONCE) return;
      await nextTurn();
    }
  };

  return {
    reorder: ({ id, ordering }) => (ordering === 'by_record' ? form(id) : dissolve(id)),

    async reorderLeft() {
      const executor = await currentExecutor(strapi);
      const ordered = (await table(strapi, executor, WEBHOOKS_TABLE)
        .where({ ordering: 'by_record' })
        .orderBy('id')
        .pluck('id')) as number[];
      for (const id of ordered) await form(Number(id));
      for (const row of await webhooksDueAt(strapi, executor, HELD_UNTIL)) {
        const id = Number(row.id);
        if (row.ordering !== 'by_record') await dissolve(id);
        // One that is off is looked at again once it is on.
        else if (row.active) await withTransientRetry(() => noteHeld(strapi, executor, id));
      }
      await withTransientRetry(() => forgetEnds(strapi, executor));
    },
  };
};
