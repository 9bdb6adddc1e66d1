import type { Core } from '@strapi/strapi';
import { getOptions } from '../config';
import { createDetached } from '../database/connection';
import { siteInstance } from '../database/site-instance';
import { createBullmqScheduler, loadBullmq } from './bullmq/scheduler';
import { createEmbeddedScheduler } from './embedded-scheduler';
import type { Scheduler } from './types';

const schedulers = new WeakMap<Core.Strapi, Scheduler>();

/**
 * To be called at boot, outside any request: what is looked at is then no part of a write's transaction.
 * @throws Error that says what to install where the packages of the site's engine are missing
 */
export const prepareScheduler = async (strapi: Core.Strapi): Promise<void> => {
  const { engine, redis, prefix } = getOptions(strapi).scheduler;
  if (engine === 'database') {
    getScheduler(strapi);
    return;
  }
  const detached = createDetached();
  const packages = await loadBullmq();
  const site = () => siteInstance(strapi);
  schedulers.set(
    strapi,
    createBullmqScheduler({ packages, redis, prefix, site, log: strapi.log, detached })
  );
};

/** The scheduler of this process; the embedded one where no other was prepared. */
export const getScheduler = (strapi: Core.Strapi): Scheduler => {
  let scheduler = schedulers.get(strapi);
  if (!scheduler) {
    scheduler = createEmbeddedScheduler(strapi.log, createDetached());
    schedulers.set(strapi, scheduler);
  }
  return scheduler;
};

/** Ends what the scheduler holds open, once nothing can be announced any more. */
export const closeScheduler = async (strapi: Core.Strapi): Promise<void> =>
  schedulers.get(strapi)?.close();
