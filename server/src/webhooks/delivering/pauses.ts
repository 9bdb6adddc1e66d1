import type { Core } from '@strapi/strapi';
import { type Executor, table } from '../../database/connection';
import { WEBHOOKS_TABLE } from '../tables';

/**
 * Webhooks whose receivers asked to be left alone (docs/receivers.md#asking-for-a-pause): nothing of them
 * is due before, on any node. Only ever prolonged: the answers of attempts that were made side by
 * side may come in any order.
 * @param until epoch milliseconds, by webhook
 */
export const pauseWebhooks = async (
  strapi: Core.Strapi,
  executor: Executor,
  until: ReadonlyMap<number, number>
): Promise<void> => {
  // Always in the order of ids: two nodes that lock the same webhooks must not wait for each other.
  for (const [id, time] of [...until].sort(([one], [other]) => one - other)) {
    await table(strapi, executor, WEBHOOKS_TABLE)
      .where({ id })
      .andWhere((shorter) => {
        shorter.whereNull('paused_until').orWhere('paused_until', '<', time);
      })
      .update({ paused_until: time });
  }
};
