import type { Feature } from '../feature';
import { offerStockTools } from './assistant-tools';
import { controllers } from './controllers';
import { createStocktakesService } from './by-hand';
import { createStockTransfersService } from './by-hand/transfers-service';
import { createStockExplanationService } from './explanation';
import { createStockGridService } from './grid';
import { keepNumbering } from './catalogue/keep-numbering';
import { markUnnumbered } from './catalogue/numbering';
import {
  catalogueHeadTable,
  catalogueTable,
  changesTable,
  epochsTable,
  retiredSkusTable,
} from './catalogue/tables';
import { createItemImport } from './import';
import { createItemsService } from './items-service';
import { createLevelsService } from './levels-service';
import { ensureDefaultLocation } from './locations';
import { checkProductMapping } from './product-mapping';
import { watchProductWrites } from './product-writes';
import { createRebuildService } from './rebuild';
import { routes } from './routes';
import { declareStockEvents } from './events';
import { documentTable, itemTable, levelTable, locationTable, movementTable } from './tables';

export const stock: Feature = {
  option: 'pos',
  tables: [
    itemTable,
    locationTable,
    levelTable,
    movementTable,
    documentTable,
    changesTable,
    catalogueTable,
    catalogueHeadTable,
    retiredSkusTable,
    epochsTable,
  ],
  services: {
    'stock-items': createItemsService,
    'stock-levels': createLevelsService,
    'stock-grid': createStockGridService,
    'stock-transfers': createStockTransfersService,
    stocktakes: createStocktakesService,
    'item-import': createItemImport,
    'stock-explanations': createStockExplanationService,
    'stock-rebuild': createRebuildService,
  },
  controllers,
  routes,
  register({ strapi }) {
    declareStockEvents(strapi);
    offerStockTools(strapi);
  },
  async bootstrap({ strapi }) {
    checkProductMapping(strapi);
    await ensureDefaultLocation(strapi);
    await markUnnumbered(strapi);
    keepNumbering(strapi);
    watchProductWrites(strapi);
  },
};
