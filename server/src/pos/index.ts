import type { Room } from '../room';
import { onItemsLearned } from '../stock/learned';
import { createConnectionsService } from './connections-service';
import { controllers, openGate } from './controllers';
import { createPosEventsService } from './events-service';
import { declarePosEvents } from './pos-event-publishing';
import { startProcessing, stopProcessing } from './processor';
import { getRecordQueue } from './queue';
import { createRawBodyMiddleware } from './raw-body';
import { routes } from './routes';
import { connectionTable, posEventTable, posWaitTable } from './tables';
import { wakeForItems } from './waits';

export const pos: Room = {
  tables: [connectionTable, posEventTable, posWaitTable],
  services: {
    'pos-connections': createConnectionsService,
    'pos-events': createPosEventsService,
  },
  controllers,
  routes,
  register({ strapi }) {
    strapi.server.use(createRawBodyMiddleware(strapi));
    declarePosEvents(strapi);
  },
  bootstrap({ strapi }) {
    // Before any request, so that what the queue detaches from requests is detached.
    getRecordQueue(strapi);
    onItemsLearned(strapi, (names) => wakeForItems(strapi, names));
    openGate(strapi);
    startProcessing(strapi);
  },
  destroy: ({ strapi }) => stopProcessing(strapi),
};
