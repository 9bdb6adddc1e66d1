import type { Core } from '@strapi/strapi';
import { isInfrastructureFault } from '../database/retry';
import { inTurn } from '../database/transactions';
import { logFailure } from '../runtime/text';
import { isEventName } from './catalogue';
import { eventData, getPublisher } from './publish';
import { type App, appOf } from '../app';
import type { EventsService } from '../public';

const isNamed = (app: App, event: unknown): boolean => {
  if (isEventName(event)) return true;
  app.log.error(
    `switchboard: ${JSON.stringify(String(event).slice(0, 80))} is not a valid event name; the event was not sent`
  );
  return false;
};

export const createEventsService = ({ strapi }: { strapi: Core.Strapi }): EventsService => {
  const app = appOf(strapi);
  return {
    async send(event, given) {
      const data = eventData(event, given);
      return isNamed(app, event) ? getPublisher(app).publish([{ event, data }]) : 0;
    },
  };
};

const sendNow = async (app: App, event: string, given: unknown): Promise<void> => {
  const publisher = getPublisher(app);
  const data = eventData(event, given);
  if (!isNamed(app, event)) return;
  if (!app.db.inTransaction()) {
    let calls: Promise<void> | undefined;
    await publisher.publish([{ event, data }], { telling: (promise) => (calls = promise) });
    await calls;
    return;
  }
  // As a whole: a query after a failed statement of the caller would fail with it.
  await inTurn(app.strapi, async () => {
    if ((await publisher.subscribed([event])).size === 0) return;
    // A failure there must not cost the caller the rest of its transaction.
    await app.db.savepoint(() => publisher.publish([{ event, data }]));
  });
};

/**
 * The implementation of `service_crm_webhook`: logs errors, which never break the caller's write.
 * @throws only the error that ended the caller's transaction
 */
export const sendForPlugin = async (app: App, event: unknown, data: unknown): Promise<void> => {
  try {
    await sendNow(app, event as string, data);
  } catch (error) {
    if (app.db.inTransaction() && isInfrastructureFault(error)) throw error;
    logFailure(app, `the event ${JSON.stringify(event)} of another plugin was not sent`)(error);
  }
};
