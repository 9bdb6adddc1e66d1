import { followInternalRows, prepareInternalTypes } from '../database/tables/internal-types';
import type { Feature } from '../feature';
import { onItemsKnown } from '../stock/newly-known';
import { settleArrivedConnections } from './processing/arrivals';
import { createConnectionsService } from './admin/connections-service';
import { controllers, openGate } from './admin/controllers';
import { createPosEventsService } from './admin/events-service';
import { declarePosEvents } from './processing/pos-event-publishing';
import { startProcessing, stopProcessing } from './processing/processor';
import { getRecordStore } from './processing/record-store';
import { createRawBodyMiddleware } from './intake/raw-body';
import { getRefusals } from './intake/refusals';
import { routes } from './admin/routes';
import {
  CONNECTION,
  CONNECTIONS_TABLE,
  connectionTable,
  connectionType,
  posEventTable,
  posRefusalTable,
  posWaitTable,
} from './tables';
import { wakeForItems } from './processing/waits';

export const pos: Feature = {
  option: 'pos',
  contentTypes: { 'pos-connection': connectionType },
  internalTables: [connectionTable],
  tables: [posEventTable, posWaitTable, posRefusalTable],
  services: {
    'pos-connections': createConnectionsService,
    'pos-events': createPosEventsService,
  },
  controllers,
  routes,
  register({ strapi }) {
    strapi.server.use(createRawBodyMiddleware(strapi));
    declarePosEvents(strapi);
    prepareInternalTypes(strapi, ['pos-connection']);
    followInternalRows(strapi, CONNECTION, CONNECTIONS_TABLE);
  },
  async bootstrap({ strapi }) {
    await settleArrivedConnections(strapi);
    // Before any request, so that what the queue detaches from requests is detached.
    getRecordStore(strapi);
    getRefusals(strapi);
    onItemsKnown(strapi, (names) => wakeForItems(strapi, names));
    openGate(strapi);
    startProcessing(strapi);
  },
  stop: ({ strapi }) => stopProcessing(strapi),
};
