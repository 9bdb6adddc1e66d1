import type { Core } from '@strapi/strapi';
import { nextTurn } from '../../runtime/event-loop';
import { getDeliveryStore } from '../deliveries/store';

const AT_ONCE = 500;

const endAll = async (
  strapi: Core.Strapi,
  webhooks: readonly (number | null)[]
): Promise<number> => {
  let total = 0;
  for (const webhook of webhooks) {
    for (;;) {
      const ended = await getDeliveryStore(strapi).endLost(webhook, AT_ONCE);
      total += ended;
      if (ended < AT_ONCE) break;
      await nextTurn();
    }
  }
  return total;
};

/**
 * Ends what waits for webhooks that are gone: a write that was open when its webhook was deleted queues for
 * it all the same, for its row is not locked by writes. To be called before somebody looks at what waits. A
 * clock would leave them waiting in the log until its next turn, for webhooks that nobody can look up.
 */
export const endLostDeliveries = async (strapi: Core.Strapi): Promise<void> => {
  await endAll(strapi, await getDeliveryStore(strapi).lostWebhooks());
};

/** The same by the whole log, for the daily retention. @returns how many ended */
export const endAllLostDeliveries = async (strapi: Core.Strapi): Promise<number> =>
  endAll(strapi, await getDeliveryStore(strapi).allLostWebhooks());
