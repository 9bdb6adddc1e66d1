import type { Core } from '@strapi/strapi';
import { getOptions } from '../../config';
import { getHook } from '../../hooks';
import { removeFinishedDeliveries } from './store/delivery-log';

const BATCH = 500;
const DAY_MS = 86_400_000;

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 10));

/**
 * Removes finished deliveries older than the log's days (30, or what `service_crm_webhook_log_days`
 * says), in small batches so that no lock lasts. docs/contract-webhooks.md#limits.
 * @returns how many were removed. Pending deliveries never are.
 */
export const removeOldDeliveries = async (
  strapi: Core.Strapi,
  now = Date.now()
): Promise<number> => {
  const configured = getOptions(strapi).webhooks.logDays;
  const said = await getHook(strapi, 'service_crm_webhook_log_days').call(configured);
  const days = typeof said === 'number' && Number.isFinite(said) && said > 0 ? said : configured;
  let total = 0;
  for (;;) {
    const { found, removed } = await removeFinishedDeliveries(strapi, now - days * DAY_MS, BATCH);
    total += removed;
    if (found < BATCH) return total;
    await pause();
  }
};
