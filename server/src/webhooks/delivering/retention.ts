import type { Core } from '@strapi/strapi';
import { getOptions } from '../../config';
import { getHook } from '../../hooks';
import { removeOldestHour } from '../figures/rollups';
import { removeOldEntries } from '../journal';
import { removeOldRecoveries } from '../recovering/running';
import { removeFinishedDeliveries } from '../deliveries/log';

const BATCH = 500;
const DAY_MS = 86_400_000;
/** What screens look back to at most, and a day for the hour that it begins in. */
const FIGURES_DAYS = 31;

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 10));

const logDays = async (strapi: Core.Strapi): Promise<number> => {
  const configured = getOptions(strapi).webhooks.logDays;
  const said = await getHook(strapi, 'service_crm_webhook_log_days').call(configured);
  return typeof said === 'number' && Number.isFinite(said) && said > 0 ? said : configured;
};

/**
 * Removes finished deliveries older than the log's days (30, or what `service_crm_webhook_log_days`
 * says), in small batches so that no lock lasts. docs/contract-webhooks.md#limits.
 * @returns how many were removed. Pending deliveries never are.
 */
export const removeOldDeliveries = async (
  strapi: Core.Strapi,
  now = Date.now()
): Promise<number> => {
  const days = await logDays(strapi);
  let total = 0;
  for (;;) {
    const { found, removed } = await removeFinishedDeliveries(strapi, now - days * DAY_MS, BATCH);
    total += removed;
    if (found < BATCH) return total;
    await pause();
  }
};

/** Removes recoveries that ended before the log's days, and previews of yesterday. */
export const removeEndedRecoveries = async (strapi: Core.Strapi): Promise<void> =>
  removeOldRecoveries(strapi, await logDays(strapi), pause);

/** Removes hourly figures older than the log's days, or than 31 days where those are fewer; an hour at a time. */
export const removeOldRollups = async (strapi: Core.Strapi, now = Date.now()): Promise<void> => {
  const days = Math.max(await logDays(strapi), FIGURES_DAYS);
  while (await removeOldestHour(strapi, now - days * DAY_MS)) await pause();
};

/** Removes what is older than the journal's days, in small batches; docs/management-api.md#the-journal. */
export const removeOldJournal = async (strapi: Core.Strapi, now = Date.now()): Promise<void> => {
  while (await removeOldEntries(strapi, now)) await pause();
};
