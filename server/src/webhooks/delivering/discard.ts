import type { Core } from '@strapi/strapi';
import { getOptions } from '../../config';
import { nextTurn } from '../../runtime/event-loop';
import { getDeliveryStore } from '../deliveries/store';
import { leaseTimes } from './store/lease-times';

const AT_ONCE = 500;
const LOOK_AGAIN_MS = 100;

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));

/**
 * Ends every pending delivery of a webhook that is off, a batch a transaction: failed, with the cause
 * `discarded`. Attempts that were under way when it was switched off end first, so that what came of
 * them is in the log.
 */
export const discardWaiting = async (strapi: Core.Strapi, webhook: number): Promise<void> => {
  const store = getDeliveryStore(strapi);
  const { byHandMs } = leaseTimes(getOptions(strapi).webhooks.timeoutMs);
  const until = performance.now() + byHandMs;
  for (;;) {
    const force = performance.now() > until;
    const { ended, isLeft } = await store.discard(webhook, AT_ONCE, force);
    if (!isLeft) return;
    await (ended > 0 ? nextTurn() : pause());
  }
};
