import type { Core } from '@strapi/strapi';
import { getOptions } from '../config';
import { currentExecutor, table } from '../database/connection';
import { getHook } from '../hooks';
import { DELIVERIES_TABLE } from './tables';

const BATCH = 500;
const DAY_MS = 86_400_000;

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 10));

/**
 * Removes finished deliveries older than the log's days (30, or what `service_crm_webhook_log_days`
 * says), in small batches so that no lock lasts. Specification 1, Limits, Retention.
 * @returns how many were removed. Pending deliveries never are.
 */
export const removeOldDeliveries = async (
  strapi: Core.Strapi,
  now = Date.now()
): Promise<number> => {
  const configured = getOptions(strapi).webhooks.logDays;
  const said = await getHook(strapi, 'service_crm_webhook_log_days').call(configured);
  const days = typeof said === 'number' && Number.isFinite(said) && said > 0 ? said : configured;
  const before = now - days * DAY_MS;
  let removed = 0;
  for (;;) {
    const executor = await currentExecutor(strapi);
    const old = (await table(strapi, executor, DELIVERIES_TABLE)
      .select('id')
      .where('finished_at', '<', before)
      .whereNull('due_at')
      .orderBy('finished_at')
      .limit(BATCH)) as { id: number }[];
    if (old.length === 0) return removed;
    removed += await table(strapi, executor, DELIVERIES_TABLE)
      .whereIn(
        'id',
        old.map(({ id }) => id)
      )
      .whereNull('due_at')
      .delete();
    if (old.length < BATCH) return removed;
    await pause();
  }
};
