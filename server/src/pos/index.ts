import { serviceOf } from '../app';
import { followInternalRows, prepareInternalTypes } from '../database/tables/internal-types';
import type { Feature } from '../feature';
import { offerMetrics } from '../observability/measures';
import { moveIntoQueue } from '../database/tables/old-queues';
import { takeOverRecords } from './processing/old-records';
import { onItemsKnown } from '../stock/items';
import { settleArrivedConnections } from './connections';
import { ConnectionsService } from './admin/connections-service';
import { PosEventsService } from './admin/events-service';
import { MappingInboxService } from './admin/mapping-inbox';
import { controllers, routes } from './admin/routes';
import { declarePosEvents } from './processing/events';
import { getRecordStore, recordMetrics } from './processing/record-store';
import { createPurchasesService, purchasesTable } from './customers';
import { startProcessing, stopProcessing } from './processing/process';
import { createRawBodyMiddleware } from './intake/wire';
import { posRefusalTable } from './intake/refusals';
import {
  CONNECTION,
  CONNECTIONS_TABLE,
  connectionType,
  posClosingTable,
  posEventTable,
  posMappedLineTable,
  posMappingTable,
  posWaitTable,
  recordQueueTable,
} from './tables';
import { itemSalesTable, salesTable } from './sales-figures';
import { wakeForItems } from './processing/waits';

export const pos: Feature = {
  option: 'pos',
  contentTypes: { 'pos-connection': connectionType },
  tables: [
    posEventTable,
    recordQueueTable,
    posWaitTable,
    posMappingTable,
    posMappedLineTable,
    posRefusalTable,
    posClosingTable,
    salesTable,
    itemSalesTable,
    purchasesTable,
  ],
  services: {
    'pos-connections': serviceOf(ConnectionsService),
    'pos-events': serviceOf(PosEventsService),
    'pos-purchases': createPurchasesService,
    'mapping-inbox': serviceOf(MappingInboxService),
  },
  controllers,
  routes,
  register(app) {
    app.strapi.server.use(createRawBodyMiddleware(app));
    declarePosEvents(app);
    offerMetrics(app, recordMetrics);
    prepareInternalTypes(app, ['pos-connection']);
    followInternalRows(app, CONNECTION, CONNECTIONS_TABLE);
  },
  async bootstrap(app) {
    const store = getRecordStore(app);
    await takeOverRecords(app);
    await moveIntoQueue(app, await store.oldQueue());
    await settleArrivedConnections(app);
    onItemsKnown(app, (names) => wakeForItems(app, names));
    startProcessing(app);
  },
  stop: (app) => stopProcessing(app),
};
