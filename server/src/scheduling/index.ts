import type { Core } from '@strapi/strapi';
import { createDetached } from '../database/connection';
import { createEmbeddedScheduler } from './embedded-scheduler';
import type { Scheduler } from './types';

const schedulers = new WeakMap<Core.Strapi, Scheduler>();

/** To be called at boot, outside any request: what is looked at is then no part of a write's transaction. */
export const prepareScheduler = (strapi: Core.Strapi): void => {
  schedulers.set(strapi, createEmbeddedScheduler(strapi.log, createDetached()));
};

/** The scheduler of this process. */
export const getScheduler = (strapi: Core.Strapi): Scheduler => {
  let scheduler = schedulers.get(strapi);
  if (!scheduler) {
    prepareScheduler(strapi);
    scheduler = schedulers.get(strapi) as Scheduler;
  }
  return scheduler;
};
