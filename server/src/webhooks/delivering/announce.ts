import type { Core } from '@strapi/strapi';
import { getScheduler } from '../../scheduling';
import { getDeliveryStore } from '../deliveries/store';

/** The kind of work that deliveries are, as the scheduler and its log lines name it. */
export const DELIVERIES = 'switchboard deliveries';

/**
 * Says that deliveries of a webhook, or of any (`null`), may be due: now, or from a time of the
 * database's clock on (epoch milliseconds). For the moment after a commit: cheap, never throws.
 */
export const announceDeliveries = (
  strapi: Core.Strapi,
  webhook: number | null,
  at = getDeliveryStore(strapi).now()
): void => getScheduler(strapi).announce(DELIVERIES, webhook, at);
