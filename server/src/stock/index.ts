import type { Core } from '@strapi/strapi';
import { appOf, serviceOf } from '../app';
import type { Feature } from '../feature';
import { offerStockTools } from './assistant-tools';
import { controllers, routes } from './routes';
import { StocktakesService, StockTransfersService } from './by-hand';
import { ensureCatalogueHead, keepNumbering } from './catalogue';
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
  trialCountTable,
} from './tables';
import { ItemsService } from './items-service';
import { LevelsService } from './levels-service';
import { ensureDefaultLocation } from './locations';
import { checkProductMapping } from './products';
import { watchProductWrites } from './product-writes';
import { type RebuildOptions, rebuildLevels } from './check-levels';
import { declareStockEvents } from './ledger';

export const stock: Feature = {
  option: 'pos',
  tables: [
    itemTable,
    locationTable,
    levelTable,
    movementTable,
    trialCountTable,
    documentTable,
    changesTable,
    catalogueTable,
    catalogueHeadTable,
    retiredSkusTable,
    epochsTable,
  ],
  services: {
    'stock-items': serviceOf(ItemsService),
    'stock-levels': serviceOf(LevelsService),
    'stock-transfers': serviceOf(StockTransfersService),
    stocktakes: serviceOf(StocktakesService),
    'stock-rebuild': ({ strapi }: { strapi: Core.Strapi }) => ({
      rebuild: (options?: RebuildOptions) => rebuildLevels(appOf(strapi), options),
    }),
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
    await ensureCatalogueHead(app);
    keepNumbering(app);
    watchProductWrites(app);
  },
};
