import { getClock } from '../database/clock';
import { followInternalRows, prepareInternalTypes } from '../database/tables/internal-types';
import { registerHooks } from '../hooks';
import type { Feature } from '../feature';
import { hasEncryptionKey, MISSING_KEY_HELP } from '../secrets/secret-box';
import { settleArrivedWebhooks } from './delivering/arrivals';
import { manualRequestsTable } from './delivering/by-hand/requests-table';
import { controllers } from './managing/controllers';
import { createDeliveriesService } from './managing/deliveries-service';
import { createEventsService, sendForPlugin } from './publishing/events-service';
import { createPublisher, prepareTelling } from './publishing/publisher';
import { routes } from './managing/routes';
import { announcePrivateAddresses } from './delivering/site-guard';
import { closeSender, startSending, stopSending } from './delivering/running';
import {
  attemptsTable,
  deliveryTable,
  deliveryType,
  messageType,
  WEBHOOK,
  webhookTable,
  WEBHOOKS_TABLE,
  webhookType,
} from './tables';
import { keepSubscriptionIndex, subscriptionsTable } from './subscriptions/subscription-index';
import { createWebhooksService } from './managing/webhooks-service';

let giveUpAnnouncing: (() => void) | undefined;

export const webhooks: Feature = {
  contentTypes: { webhook: webhookType, message: messageType, delivery: deliveryType },
  internalTables: [webhookTable, deliveryTable],
  tables: [attemptsTable, manualRequestsTable, subscriptionsTable],
  services: {
    webhooks: createWebhooksService,
    deliveries: createDeliveriesService,
    publisher: createPublisher,
    events: createEventsService,
  },
  controllers,
  routes,
  register({ strapi }) {
    registerHooks(strapi, (event, data) => sendForPlugin(strapi, event, data));
    prepareTelling(strapi);
    prepareInternalTypes(strapi, ['webhook', 'message', 'delivery']);
    followInternalRows(strapi, WEBHOOK, WEBHOOKS_TABLE);
    keepSubscriptionIndex(strapi);
  },
  async bootstrap({ strapi }) {
    await getClock(strapi).sync();
    await settleArrivedWebhooks(strapi);
    if (!hasEncryptionKey(strapi)) {
      strapi.log.error(`switchboard: secrets cannot be stored: ${MISSING_KEY_HELP}.`);
    }
    giveUpAnnouncing = announcePrivateAddresses(strapi);
    startSending(strapi);
  },
  stop({ strapi }) {
    giveUpAnnouncing?.();
    return stopSending(strapi);
  },
  destroy: ({ strapi }) => closeSender(strapi),
};
