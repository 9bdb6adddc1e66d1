import { errorText } from '../error-text';
import type { Core } from '@strapi/strapi';
import { getOptions } from '../config';
import { createDetached } from '../database/connection';
import type { Worker } from '../queue/worker';
import { createDispatcher } from './dispatcher';
import { getOutbox } from './outbox';
import { removeOldDeliveries } from './retention';
import { createSender, type Sender } from './sender';

interface Running {
  sender: Sender;
  dispatcher: Worker | null;
}

const running = new WeakMap<Core.Strapi, Running>();

export const getSender = (strapi: Core.Strapi): Sender => {
  const now = running.get(strapi);
  if (!now) throw new Error('The plugin switchboard is not running.');
  return now.sender;
};

const everySeconds = (seconds: number): string =>
  seconds < 60 ? `*/${seconds} * * * * *` : `0 */${Math.max(1, Math.round(seconds / 60))} * * * *`;

/** Starts sending from this node: woken by commits, by a timer for due retries, and by cron. */
export const startSending = (strapi: Core.Strapi): void => {
  const options = getOptions(strapi).webhooks;
  const detached = createDetached();
  const sender = createSender(strapi);
  const dispatcher = options.dispatch ? createDispatcher(strapi, sender, detached) : null;
  running.set(strapi, { sender, dispatcher });
  if (!dispatcher) return;
  getOutbox(strapi).onWake(dispatcher.wake);
  strapi.cron.add({
    // The backstop: other nodes' rows, and those of a node that died.
    switchboardDeliveries: {
      task: async () => dispatcher.wake(),
      options: { rule: everySeconds(options.pollSeconds) },
    },
    // A minute of its own each site, so that not all of a host's sites clean up at once.
    switchboardDeliveryRetention: {
      task: () =>
        detached(async () => {
          try {
            const removed = await removeOldDeliveries(strapi);
            if (removed > 0) strapi.log.info(`switchboard: ${removed} old deliveries removed`);
          } catch (error) {
            strapi.log.error(
              `switchboard: old deliveries could not be removed: ${errorText(error)}`
            );
          }
        }),
      options: {
        rule: `${Math.floor(Math.random() * 60)} ${Math.floor(Math.random() * 60)} 3 * * *`,
      },
    },
  });
  dispatcher.wake();
};

/** Lets attempts that are under way end and be recorded, then closes the connections. */
export const stopSending = async (strapi: Core.Strapi): Promise<void> => {
  const now = running.get(strapi);
  if (!now) return;
  getOutbox(strapi).onWake(null);
  await now.dispatcher?.stop();
  now.sender.close();
};
