import type { App } from '../app';
import { createBullmqScheduler, loadBullmq } from './bullmq/scheduler';
import { createEmbeddedScheduler } from './embedded-scheduler';
import type { Scheduler } from './types';

/**
 * The scheduler of the configured engine. Create it at boot, outside requests, so that looks join no write's
 * transaction.
 * @throws Error that says what to install if the engine's packages are missing
 */
export const createScheduler = async (
  app: Pick<App, 'detached' | 'log' | 'options' | 'site'>
): Promise<Scheduler> => {
  const { detached, log, site } = app;
  const { engine, redis, prefix } = app.options.scheduler;
  if (engine === 'database') return createEmbeddedScheduler(log, detached);
  const packages = await loadBullmq();
  const siteId = () => site.instance;
  return createBullmqScheduler({ packages, redis, prefix, site: siteId, log, detached });
};
