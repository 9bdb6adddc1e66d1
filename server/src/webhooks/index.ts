import { getHook, registerHooks } from '../hooks';
import type { Room } from '../room';
import { hasEncryptionKey, MISSING_KEY_HELP } from '../secrets/secret-box';
import { controllers } from './controllers';
import { createDeliveriesService } from './deliveries-service';
import { createEventsService } from './events-service';
import { createPublisher, getPublisher } from './publisher';
import { routes } from './routes';
import { startSending, stopSending } from './running';
import { deliveryTable, webhookTable } from './tables';
import { createWebhooksService } from './webhooks-service';

export const webhooks: Room = {
  tables: [webhookTable, deliveryTable],
  services: {
    webhooks: createWebhooksService,
    deliveries: createDeliveriesService,
    publisher: createPublisher,
    events: createEventsService,
  },
  controllers,
  routes,
  register({ strapi }) {
    registerHooks(strapi);
    getHook(strapi, 'service_crm_webhook').register(async function sendEvent({ event, data }) {
      await getPublisher(strapi).publish([{ event, data }]);
    });
  },
  bootstrap({ strapi }) {
    if (!hasEncryptionKey(strapi)) {
      strapi.log.error(`switchboard: secrets cannot be stored: ${MISSING_KEY_HELP}.`);
    }
    startSending(strapi);
  },
  destroy: ({ strapi }) => stopSending(strapi),
};
