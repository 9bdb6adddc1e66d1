import type { Core } from '@strapi/strapi';
import { appOf, serviceOf } from '../app';
import { followInternalRows, prepareInternalTypes } from '../database/tables/internal-types';
import type { Feature } from '../feature';
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
import * as tables from './tables';
import { createEventsService, sendForPlugin } from './events-service';
import { onUnfitFilter, Publisher } from './publish';
import { controllers, routes } from './managing/routes';
import { copyHostWebhooks } from './managing/host-webhooks';
import { answerAfterOtherNodes, leaveNodes, nodesTable, prepareNodes } from './nodes';
import { closeSender, startSending, stopSending } from './lifecycle';
import { keepSubscriptionIndex, subscriptionsTable } from './subscriptions';
import { WebhooksService } from './managing/webhooks-service';

export const webhooks: Feature = {
  contentTypes: {
    webhook: tables.webhookType,
    message: tables.messageType,
    delivery: tables.deliveryType,
  },
  tables: [
    tables.webhookOwnColumns,
    tables.deliveryOwnColumns,
    tables.attemptsTable,
    subscriptionsTable,
    rollupsTable,
    tables.deliveryQueueTable,
    tables.deliveryOrderTable,
    tables.deliverySlotsTable,
    tables.webhookLocksTable,
    totalsTable,
    journalTable,
    replaysTable,
    tables.recoveriesTable,
    tables.recoveryItemsTable,
    nodesTable,
  ],
  services: {
    webhooks: serviceOf(WebhooksService),
    'host-webhooks': ({ strapi }: { strapi: Core.Strapi }) => ({
      copy: () => copyHostWebhooks(appOf(strapi)),
    }),
    publisher: serviceOf(Publisher),
    events: createEventsService,
  },
  controllers,
  routes,
  register(app) {
    app.hooks.register((event, data) => sendForPlugin(app, event, data));
    onUnfitFilter(app, switchOffUnfitFiltersLater);
    offerMetrics(app, webhookMetrics);
    offerWebhookTools(app);
    prepareInternalTypes(app, ['webhook', 'message', 'delivery']);
    followInternalRows(app, tables.WEBHOOK, tables.WEBHOOKS_TABLE);
    keepSubscriptionIndex(app);
    answerAfterOtherNodes(app);
  },
  async bootstrap(app) {
    await app.clock.sync();
    await prepareNodes(app);
    await moveIntoQueue(app, oldDeliveryQueue(getDeliveryStore(app)));
    await settleArrivedWebhooks(app);
    await switchOffUnfitFilters(app);
    await prepareNumbering(app);
    if (!hasEncryptionKey(app)) {
      app.log.error(`switchboard: secrets cannot be stored: ${MISSING_KEY_HELP}.`);
    }
    startSending(app);
  },
  stop: stopSending,
  async destroy(app) {
    closeSender(app);
    await leaveNodes(app);
  },
};
