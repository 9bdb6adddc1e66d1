import type { App } from '../app';
import { createDetached } from '../database/connection';
import { createBullmqScheduler, loadBullmq } from './bullmq/scheduler';
import { createEmbeddedScheduler } from './embedded-scheduler';
import type { Scheduler } from './types';

/**
 * The scheduler of the site's engine. To be called at boot, outside any request: what is looked at is
 * then no part of a write's transaction.
 * @throws Error that says what to install if the packages of the site's engine are missing
 */
export const createScheduler = async ({
  log,
  options: {
    scheduler: { engine, redis, prefix },
  },
  site,
}: Pick<App, 'log' | 'options' | 'site'>): Promise<Scheduler> => {
  const detached = createDetached();
  if (engine === 'database') return createEmbeddedScheduler(log, detached);
  const packages = await loadBullmq();
  return createBullmqScheduler({
    packages,
    redis,
    prefix,
    site: () => site.instance,
    log,
    detached,
  });
};
