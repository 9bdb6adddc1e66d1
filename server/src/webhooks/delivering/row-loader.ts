import type { Core } from '@strapi/strapi';
import type { ModuleId } from '../../../../shared/contracts/modules';
import { currentExecutor, table } from '../../database/connection';
import { enabledModules, storedModules } from '../../modules';
import { type WebhookRow, WEBHOOKS_TABLE } from '../tables';

/** What an attempt has to know of its webhook, as it is now. */
export interface LoadedWebhook {
  webhook: WebhookRow;
  /** The modules that are on. */
  enabled: ReadonlySet<ModuleId>;
}

type Waiting = (loaded: LoadedWebhook | null) => void;

/**
 * Reads webhooks for attempts. Each attempt must see the secret, the address and the switches as they
 * are now (rotation holds at once, for queued deliveries too), yet a query an attempt would be the
 * dearest part of it: whatever is asked for in one turn of the event loop is one query.
 */
export const createRowLoader = (
  strapi: Core.Strapi
): ((id: number) => Promise<LoadedWebhook | null>) => {
  let waiting = new Map<number, { resolve: Waiting; reject: (error: unknown) => void }[]>();

  const load = async (): Promise<void> => {
    const batch = waiting;
    waiting = new Map();
    try {
      const executor = await currentExecutor(strapi);
      const rows = (await table(strapi, executor, WEBHOOKS_TABLE)
        .select('*', storedModules(strapi, executor).as('modules'))
        .whereIn('id', [...batch.keys()])) as (WebhookRow & { modules: string | null })[];
      const byId = new Map(rows.map((row) => [Number(row.id), row]));
      const enabled = enabledModules(rows[0]?.modules);
      for (const [id, askers] of batch) {
        const webhook = byId.get(id);
        for (const asker of askers) asker.resolve(webhook ? { webhook, enabled } : null);
      }
    } catch (error) {
      for (const askers of batch.values()) for (const asker of askers) asker.reject(error);
    }
  };

  return (id) =>
    new Promise((resolve, reject) => {
      if (waiting.size === 0) setImmediate(() => void load());
      const askers = waiting.get(id) ?? [];
      askers.push({ resolve, reject });
      waiting.set(id, askers);
    });
};
