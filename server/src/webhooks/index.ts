import { getOptions } from '../config';
import { getClock } from '../database/clock';
import { followInternalRows, prepareInternalTypes } from '../database/tables/internal-types';
import { registerHooks } from '../hooks';
import type { Feature } from '../feature';
import { loadUndici } from '../net/undici-transport';
import { offerMetrics } from '../observability/metric-sources';
import { hasEncryptionKey, MISSING_KEY_HELP } from '../secrets/secret-box';
import { settleArrivedWebhooks } from './sending/arrivals';
import { switchOffUnfitFilters, switchOffUnfitFiltersLater } from './sending/switch-off';
import { prepareRollups } from './figures/fill-rollups';
import { webhookMetrics } from './figures/health';
import { rollupsTable, totalsTable } from './figures/rollups';
import { journalTable, prepareNumbering, replaysTable } from './journal';
import { manualRequestsTable } from './sending/by-hand';
import { offerWebhookTools } from './managing/assistant-tools';
import { controllers } from './managing/controllers';
import { createDeliveriesService } from './managing/deliveries-service';
import { createRecoveriesService } from './managing/recoveries-service';
import {
  attemptsTable,
  deliveryTable,
  deliveryType,
  lineEndsTable,
  messageType,
  pacesTable,
  recoveriesTable,
  recoveryItemsTable,
  WEBHOOK,
  WEBHOOKS_TABLE,
  webhookTable,
  webhookType,
} from './tables';
import { createEventsService, sendForPlugin } from './events-service';
import { createPublisher, onUnfitFilter, prepareTelling } from './publish';
import { routes } from './managing/routes';
import { createHostWebhooksService } from './managing/host-webhooks';
import { leaveNodes, nodesTable, prepareNodes } from './sending/nodes';
import { announcePrivateAddresses } from './sending/send';
import { closeSender, startSending, stopSending } from './lifecycle';
import { keepSubscriptionIndex, subscriptionsTable } from './subscription-index';
import { createWebhooksService } from './managing/webhooks-service';

let giveUpAnnouncing: (() => void) | undefined;

export const webhooks: Feature = {
  contentTypes: { webhook: webhookType, message: messageType, delivery: deliveryType },
  internalTables: [webhookTable, deliveryTable],
  tables: [
    attemptsTable,
    manualRequestsTable,
    subscriptionsTable,
    rollupsTable,
    pacesTable,
    lineEndsTable,
    totalsTable,
    journalTable,
    replaysTable,
    recoveriesTable,
    recoveryItemsTable,
    nodesTable,
  ],
  services: {
    webhooks: createWebhooksService,
    'host-webhooks': createHostWebhooksService,
    deliveries: createDeliveriesService,
    recoveries: createRecoveriesService,
    publisher: createPublisher,
    events: createEventsService,
  },
  controllers,
  routes,
  register({ strapi }) {
    registerHooks(strapi, (event, data) => sendForPlugin(strapi, event, data));
    prepareTelling(strapi);
    onUnfitFilter(strapi, switchOffUnfitFiltersLater);
    offerMetrics(strapi, webhookMetrics);
    offerWebhookTools(strapi);
    prepareInternalTypes(strapi, ['webhook', 'message', 'delivery']);
    followInternalRows(strapi, WEBHOOK, WEBHOOKS_TABLE);
    keepSubscriptionIndex(strapi);
  },
  async bootstrap({ strapi }) {
    if (getOptions(strapi).webhooks.client === 'undici') await loadUndici();
    await getClock(strapi).sync();
    await prepareNodes(strapi);
    await settleArrivedWebhooks(strapi);
    await switchOffUnfitFilters(strapi);
    await prepareRollups(strapi);
    await prepareNumbering(strapi);
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
  async destroy({ strapi }) {
    closeSender(strapi);
    await leaveNodes(strapi);
  },
};
