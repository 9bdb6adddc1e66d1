import type { Core } from '@strapi/strapi';
import type { Webhook } from '../../../shared/contracts/webhooks';
import { currentExecutor, type Executor, table } from '../database/connection';
import { enabledModules, storedModules } from '../modules';
import { declarations, isOffered } from './catalogue';
import { toWebhook } from './serialize';
import { type WebhookRow, WEBHOOKS_TABLE } from './tables';

/** Who asked for what, as one transaction sees it. */
export interface Subscriptions {
  /** Active webhooks that asked for the event, none where its module is off. */
  subscribersOf(event: string): readonly Webhook[];
}

const NOBODY: Subscriptions = { subscribersOf: () => [] };

/** A transaction sees one state of the webhooks, so each reads them once. */
const byTransaction = new WeakMap<object, Promise<Subscriptions>>();

const load = async (strapi: Core.Strapi, executor: Executor): Promise<Subscriptions> => {
  const rows = (await table(strapi, executor, WEBHOOKS_TABLE)
    .select('*', storedModules(strapi, executor).as('modules'))
    .where({ active: true })
    .orderBy('id')) as (WebhookRow & { modules: string | null })[];
  if (!rows[0]) return NOBODY;
  const enabled = enabledModules(rows[0].modules);
  if (!enabled.has('webhooks')) return NOBODY;
  const declared = await declarations(strapi);
  const webhooks = rows.map(toWebhook);
  return {
    subscribersOf(event) {
      if (!isOffered(declared[event], enabled)) return [];
      return webhooks.filter(({ events }) => events.includes(event) || events.includes('*'));
    },
  };
};

/**
 * Reads the active webhooks from the database, in the current transaction where there is one. Never
 * from memory: another node may have changed them a moment ago.
 */
export const currentSubscriptions = async (strapi: Core.Strapi): Promise<Subscriptions> => {
  const executor = await currentExecutor(strapi);
  if (!strapi.db.inTransaction()) return load(strapi, executor);
  let subscriptions = byTransaction.get(executor);
  if (!subscriptions) {
    subscriptions = load(strapi, executor);
    byTransaction.set(executor, subscriptions);
  }
  return subscriptions;
};

/** After a change of webhooks or modules inside a transaction, its later events must see it. */
export const forgetSubscriptions = async (strapi: Core.Strapi): Promise<void> => {
  if (strapi.db.inTransaction()) byTransaction.delete(await currentExecutor(strapi));
};
