import type { Room } from '../room';
import { controllers } from './controllers';
import { createItemsService } from './items-service';
import { tellItemsLearned } from './learned';
import { createLevelsService } from './levels-service';
import { ensureDefaultLocation } from './locations';
import { checkProductMapping, watchProducts } from './product-mapping';
import { createRebuildService } from './rebuild';
import { routes } from './routes';
import { declareStockEvents } from './stock-events';
import { itemTable, levelTable, locationTable, movementTable } from './tables';

export const stock: Room = {
  tables: [itemTable, locationTable, levelTable, movementTable],
  services: {
    'stock-items': createItemsService,
    'stock-levels': createLevelsService,
    'stock-rebuild': createRebuildService,
  },
  controllers,
  routes,
  register({ strapi }) {
    declareStockEvents(strapi);
  },
  async bootstrap({ strapi }) {
    checkProductMapping(strapi);
    await ensureDefaultLocation(strapi);
    watchProducts(strapi, (products) => tellItemsLearned(strapi, products));
  },
};
