import type { Feature } from '../feature';
import { controllers } from './controllers';
import { createStockGridService } from './grid';
import { createItemsService } from './items-service';
import { notifyItemsKnown } from './newly-known';
import { createLevelsService } from './levels-service';
import { ensureDefaultLocation } from './locations';
import { checkProductMapping, watchProducts } from './product-mapping';
import { createRebuildService } from './rebuild';
import { routes } from './routes';
import { declareStockEvents } from './stock-events';
import { itemTable, levelTable, locationTable, movementTable } from './tables';

export const stock: Feature = {
  option: 'pos',
  tables: [itemTable, locationTable, levelTable, movementTable],
  services: {
    'stock-items': createItemsService,
    'stock-levels': createLevelsService,
    'stock-grid': createStockGridService,
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
    watchProducts(strapi, (products) => notifyItemsKnown(strapi, products));
  },
};
