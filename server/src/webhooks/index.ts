import type { Core } from '@strapi/strapi';
import { appOf, serviceOf } from '../app';
import { followInternalRows, prepareInternalTypes } from '../database/tables/internal-types';
import type { Feature } from '../feature';
import { loadUndici } from '../net/undici-transport';
import { offerMetrics } from '../observability/measures';
import { hasEncryptionKey, MISSING_KEY_HELP } from '../secrets/secret-box';
import { moveIntoQueue } from '../database/tables/old-queues';
import { oldDeliveryQueue } from './old-queue';
import { getDeliveryStore } from './deliveries/store';
import { settleArrivedWebhooks } from './imported-webhooks';
import { switchOffUnfitFilters, switchOffUnfitFiltersLater } from './unfit-filters';
import { webhookMetrics } from './figures/health';
import { rollupsTable, totalsTable } from './figures/rollups';
import { journalTable, prepareNumbering, replaysTable } from './journal';
import { offerWebhookTools } from './managing/assistant-tools';
import {
  attemptsTable,
  deliveryOrderTable,
  deliveryOwnColumns,
  deliveryQueueTable,
  deliverySlotsTable,
  deliveryType,
  messageType,
  recoveriesTable,
  recoveryItemsTable,
  WEBHOOK,
  WEBHOOKS_TABLE,
  webhookOwnColumns,
  webhookLocksTable,
  webhookType,
} from './tables';
import { createEventsService, sendForPlugin } from './events-service';
import { onUnfitFilter, prepareTelling, Publisher } from './publish';
import { DeliveriesService } from './managing/deliveries-service';
import { RecoveriesService } from './managing/recoveries-service';
import { controllers, routes } from './managing/routes';
import { copyHostWebhooks } from './managing/host-webhooks';
import { announcePrivateAddresses, leaveNodes, nodesTable, prepareNodes } from './nodes';
import { closeSender, startSending, stopSending } from './lifecycle';
import { keepSubscriptionIndex, subscriptionsTable } from './subscriptions';
import { WebhooksService } from './managing/webhooks-service';

let giveUpAnnouncing: (() => void) | undefined;

export const webhooks: Feature = {
  contentTypes: { webhook: webhookType, message: messageType, delivery: deliveryType },
  tables: [
    webhookOwnColumns,
    deliveryOwnColumns,
    attemptsTable,
    subscriptionsTable,
    rollupsTable,
    deliveryQueueTable,
    deliveryOrderTable,
    deliverySlotsTable,
    webhookLocksTable,
    totalsTable,
    journalTable,
    replaysTable,
    recoveriesTable,
    recoveryItemsTable,
    nodesTable,
  ],
  services: {
    webhooks: serviceOf(WebhooksService),
    'host-webhooks': ({ strapi }: { strapi: Core.Strapi }) => ({
      copy: () => copyHostWebhooks(appOf(strapi)),
    }),
    deliveries: serviceOf(DeliveriesService),
    recoveries: serviceOf(RecoveriesService),
    publisher: serviceOf(Publisher),
    events: createEventsService,
  },
  controllers,
  routes,
  register(app) {
    app.hooks.register((event, data) => sendForPlugin(app, event, data));
    prepareTelling(app);
    onUnfitFilter(app, switchOffUnfitFiltersLater);
    offerMetrics(app, webhookMetrics);
    offerWebhookTools(app);
    prepareInternalTypes(app, ['webhook', 'message', 'delivery']);
    followInternalRows(app, WEBHOOK, WEBHOOKS_TABLE);
    keepSubscriptionIndex(app);
  },
  async bootstrap(app) {
    if (app.options.webhooks.client === 'undici') await loadUndici();
    await app.clock.sync();
    await prepareNodes(app);
    await moveIntoQueue(app, oldDeliveryQueue(getDeliveryStore(app)));
    await settleArrivedWebhooks(app);
    await switchOffUnfitFilters(app);
    await prepareNumbering(app);
    if (!hasEncryptionKey(app)) {
      app.log.error(`switchboard: secrets cannot be stored: ${MISSING_KEY_HELP}.`);
    }
    giveUpAnnouncing = announcePrivateAddresses(app);
    startSending(app);
  },
  stop(app) {
    giveUpAnnouncing?.();
    return stopSending(app);
  },
  async destroy(app) {
    closeSender(app);
    await leaveNodes(app);
  },
};
