import type { Core } from '@strapi/strapi';
import { currentExecutor, table } from '../database/connection';
import { type WebhookRow, WEBHOOKS_TABLE } from './tables';

type Waiting = (row: WebhookRow | null) => void;

/**
 * Reads webhooks for attempts. Each attempt must see the secret and the address as they are now
 * (rotation holds at once, for queued deliveries too), yet a query an attempt would be the dearest
 * part of it: whatever is asked for in one turn of the event loop is one query.
 */
export const createRowLoader = (
  strapi: Core.Strapi
): ((id: number) => Promise<WebhookRow | null>) => {
  let waiting = new Map<number, { resolve: Waiting; reject: (error: unknown) => void }[]>();

  const load = async (): Promise<void> => {
    const batch = waiting;
    waiting = new Map();
    try {
      const executor = await currentExecutor(strapi);
      const rows = (await table(strapi, executor, WEBHOOKS_TABLE).whereIn('id', [
        ...batch.keys(),
      ])) as WebhookRow[];
      const byId = new Map(rows.map((row) => [Number(row.id), row]));
      for (const [id, askers] of batch) {
        for (const asker of askers) asker.resolve(byId.get(id) ?? null);
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
