import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { currentExecutor, type Executor, inTransaction, table } from '../../database/connection';
import { inRetriedTransaction } from '../../database/errors/retry';
import { insertRows } from '../../database/insert-rows';
import type { PlainTable } from '../../database/tables/plain-tables';
import { nextTurn } from '../../runtime/event-loop';
import { chosenEvents } from '../rules/chosen-events';
import { SUBSCRIPTIONS_TABLE, WEBHOOK, WEBHOOKS_TABLE, type WebhookRow } from '../tables';

/**
 * Which webhooks to look at for an event: a row an event that a webhook chose, `*` among them. What
 * the webhook's own `events` say is what counts; a row too many costs a look and nothing else.
 */
export const subscriptionsTable: PlainTable = {
  tableName: SUBSCRIPTIONS_TABLE,
  attributes: {
    id: { type: 'increments' },
    event: { type: 'string' },
    webhook_id: { type: 'integer' },
  },
  indexes: [
    { name: 'sb_subscription_event', columns: ['event', 'webhook_id'], type: 'unique' },
    { name: 'sb_subscription_webhook', columns: ['webhook_id'] },
  ],
};

const AT_ONCE = 200;
/** Longer than any name of an event may be. */
const LONGEST_NAME = 255;

type Indexed = Pick<WebhookRow, 'id' | 'events'>;

/** Writes the rows of some webhooks anew, in the current transaction. */
const index = async (strapi: Core.Strapi, webhooks: readonly Indexed[]): Promise<void> => {
  const executor = await currentExecutor(strapi);
  const ids = webhooks.map(({ id }) => Number(id));
  await table(strapi, executor, SUBSCRIPTIONS_TABLE).whereIn('webhook_id', ids).delete();
  const rows = webhooks.flatMap(({ id, events }) =>
    [...new Set(chosenEvents(events))]
      .filter((event) => event.length <= LONGEST_NAME)
      .map((event) => ({ event, webhook_id: Number(id) }))
  );
  await insertRows(strapi, executor, SUBSCRIPTIONS_TABLE, rows);
  const column = (name: string): Knex.Ref<string, Record<string, string>> =>
    (executor as Knex).ref(name);
  await table(strapi, executor, WEBHOOKS_TABLE)
    .whereIn('id', ids)
    .update({ indexed_id: column('id'), indexed_events: column('events') });
};

const webhooks = (strapi: Core.Strapi, executor: Executor): Knex.QueryBuilder =>
  table(strapi, executor, WEBHOOKS_TABLE).select('id', 'events').orderBy('id');

/** Webhooks whose events were written by somebody who does not know the index, copies of rows included. */
const stale = (strapi: Core.Strapi, executor: Knex): Knex.QueryBuilder =>
  webhooks(strapi, executor).where((either) => {
    either
      .whereNull('indexed_id')
      .orWhereNot('indexed_id', executor.ref('id'))
      .orWhere((came) => {
        came.whereNull('indexed_events').whereNotNull('events');
      })
      .orWhere((went) => {
        went.whereNotNull('indexed_events').whereNull('events');
      })
      .orWhereNot('indexed_events', executor.ref('events'));
  });

/**
 * Brings the index up to date where a webhook came or changed without a lifecycle: an import, a node
 * of an earlier version, a statement of somebody's own. To be called at boot and by the clock.
 */
export const repairSubscriptionIndex = async (strapi: Core.Strapi): Promise<void> => {
  // Nearly always there is nothing to do, and so no transaction to begin.
  while ((await stale(strapi, (await currentExecutor(strapi)) as Knex).limit(1)).length > 0) {
    await inRetriedTransaction(strapi, async ({ trx }) => {
      const some = (await stale(strapi, trx).limit(AT_ONCE).forUpdate()) as Indexed[];
      if (some.length > 0) await index(strapi, some);
    });
    await nextTurn();
  }
};

const forget = async (strapi: Core.Strapi, id: number): Promise<void> => {
  const executor = await currentExecutor(strapi);
  await table(strapi, executor, SUBSCRIPTIONS_TABLE).where({ webhook_id: id }).delete();
};

/**
 * The webhook that was made just now, and those that came before it without a lifecycle: an event looks
 * for such ones behind the last one of the index alone.
 */
const indexNew = async (strapi: Core.Strapi): Promise<void> => {
  const executor = await currentExecutor(strapi);
  const last = table(strapi, executor, SUBSCRIPTIONS_TABLE).max('webhook_id as last').first();
  const { last: after } = ((await last) ?? {}) as { last?: number | null };
  const found = (await webhooks(strapi, executor).where('id', '>', after ?? 0)) as Indexed[];
  for (let at = 0; at < found.length; at += AT_ONCE) {
    if (at > 0) await nextTurn();
    await index(strapi, found.slice(at, at + AT_ONCE));
  }
};

const indexOne = async (strapi: Core.Strapi, id: number): Promise<void> => {
  const executor = await currentExecutor(strapi);
  await index(strapi, (await webhooks(strapi, executor).where({ id })) as Indexed[]);
};

/** Keeps the index with every write of a webhook, in its transaction. To be called in `register`. */
export const keepSubscriptionIndex = (strapi: Core.Strapi): void => {
  const repair = (): Promise<void> => repairSubscriptionIndex(strapi);
  const idOf = (result: unknown): number => Number((result as { id?: number } | null)?.id ?? 0);
  strapi.db.lifecycles.subscribe({
    models: [WEBHOOK],
    afterCreate: () => inTransaction(strapi, () => indexNew(strapi)),
    async afterUpdate({ params, result }) {
      if ((params.data as { events?: unknown } | undefined)?.events === undefined) return;
      await inTransaction(strapi, () => indexOne(strapi, idOf(result)));
    },
    afterDelete: ({ result }) => forget(strapi, idOf(result)),
    afterCreateMany: repair,
    afterUpdateMany: repair,
  });
};
