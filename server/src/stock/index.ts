import type { Feature } from '../feature';
import { offerStockTools } from './assistant-tools';
import { controllers } from './controllers';
import { createStocktakesService, createStockTransfersService } from './by-hand';
import { createStockExplanationService } from './explanation';
import { createStockGridService } from './grid';
import { keepNumbering, markUnnumbered } from './catalogue';
import {
  catalogueHeadTable,
  catalogueTable,
  changesTable,
  documentTable,
  epochsTable,
  itemTable,
  levelTable,
  locationTable,
  movementTable,
  retiredSkusTable,
} from './tables';
import { createItemImport } from './import';
import { createItemsService } from './items-service';
import { createLevelsService } from './levels-service';
import { ensureDefaultLocation } from './locations';
import { checkProductMapping } from './product-mapping';
import { watchProductWrites } from './product-writes';
import { createRebuildService } from './check-levels';
import { routes } from './routes';
import { declareStockEvents } from './events';

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
  register(app) {
    declareStockEvents(app);
    offerStockTools(app);
  },
  async bootstrap(app) {
    checkProductMapping(app);
    await ensureDefaultLocation(app);
    await markUnnumbered(app);
    keepNumbering(app);
    watchProductWrites(app);
  },
};
