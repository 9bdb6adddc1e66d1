import type { Core } from '@strapi/strapi';
import type { ItemDetail, StockClock } from '../../../shared/contracts/stock';
import { adminApi } from '../access/admin-actions';
import { nameOfAdminUser } from '../access/current-admin-user';
import { appOf, serviceOf } from '../app';
import type { Feature } from '../feature';
import { endpoint } from '../http/endpoint';
import { listQuery } from '../http/pagination';
import { answerUpload, uploadQuery } from '../imports/upload';
import { isoTime } from '../runtime/text';
import { offerStockTools } from './assistant-tools';
import { StocktakesService, StockTransfersService } from './by-hand';
import { ensureCatalogueHead, keepNumbering } from './catalogue';
import { type RebuildOptions, rebuildLevels, startLevelCheck } from './check-levels';
import { importItems } from './import';
import {
  adjustInput,
  createItemInput,
  createLocationInput,
  gridQuery,
  itemsQuery,
  levelMovementsQuery,
  levelsQuery,
  rebuildInput,
  searchQuery,
  stocktakeInput,
  transferInput,
  updateItemInput,
  updateLevelInput,
  updateLocationInput,
} from './inputs';
import { ItemsService } from './items-service';
import { explainLevel, LevelsService, listGrid } from './levels-service';
import { declareStockEvents } from './ledger';
import { ensureDefaultLocation } from './locations';
import { watchProductWrites } from './product-writes';
import { checkProductMapping, linkedProduct } from './products';
import { stockTables } from './tables';

const READ = { may: 'stock.read' } as const;
const MANAGE = { may: 'stock.manage' } as const;
const LIST = { ...READ, whole: true } as const;
const MADE = { ...MANAGE, status: 201 } as const;
const CHECK = { ...MANAGE, body: rebuildInput, status: 202 } as const;

const locations = {
  find: endpoint('GET /locations', { ...LIST, query: searchQuery }, ({ app, query }) =>
    new ItemsService(app).listLocations(query())
  ),
  create: endpoint('POST /locations', { ...MADE, body: createLocationInput }, ({ app, body }) =>
    new ItemsService(app).createLocation(body())
  ),
  findOne: endpoint('GET /locations/:id', READ, ({ app, id }) =>
    new ItemsService(app).getLocation(id('Location'))
  ),
  update: endpoint('PUT /locations/:id', { ...MANAGE, body: updateLocationInput }, (request) =>
    new ItemsService(request.app).updateLocation(request.id('Location'), request.body())
  ),
};

const items = {
  find: endpoint('GET /items', { ...LIST, query: itemsQuery }, ({ app, query }) =>
    new ItemsService(app).listItems(query())
  ),
  create: endpoint('POST /items', { ...MADE, body: createItemInput }, ({ app, body }) =>
    new ItemsService(app).createItem(body())
  ),
  import: endpoint('POST /items/import', { may: 'stock.import', query: uploadQuery }, (request) =>
    answerUpload(request.app, request.ctx, 'items', (file, options) =>
      importItems(request.app, file, options)
    )
  ),
  findOne: endpoint('GET /items/:id', READ, async ({ app, id }): Promise<ItemDetail> => {
    const item = await new ItemsService(app).getItem(id('Item'));
    return { ...item, product: await linkedProduct(app, item.sku) };
  }),
  update: endpoint('PUT /items/:id', { ...MANAGE, body: updateItemInput }, ({ app, id, body }) =>
    new ItemsService(app).updateItem(id('Item'), body())
  ),
  delete: endpoint('DELETE /items/:id', MANAGE, ({ app, id }) =>
    new ItemsService(app).archiveItem(id('Item'))
  ),
  adjust: endpoint('POST /items/:id/adjust', { ...MANAGE, body: adjustInput }, async (request) => {
    const { app, ctx } = request;
    const id = request.id('Item');
    const input = request.body();
    if (input.preview) return new StocktakesService(app).preview(id, input);
    const madeBy = nameOfAdminUser(ctx);
    if (input.counted !== undefined) await new StocktakesService(app).setTo(id, input, madeBy);
    else await new LevelsService(app).adjust(id, input, madeBy);
    ctx.status = 201;
    return new LevelsService(app).at(id, input.location);
  }),
};

const levels = {
  grid: endpoint('GET /stock-grid', { ...LIST, query: gridQuery }, ({ app, query }) =>
    listGrid(app, query())
  ),
  find: endpoint('GET /levels', { ...LIST, query: levelsQuery }, ({ app, query }) =>
    new LevelsService(app).list(query())
  ),
  check: endpoint('POST /levels/check', CHECK, ({ app, ctx, body }) =>
    startLevelCheck(app, { mend: body().mend, madeBy: nameOfAdminUser(ctx) })
  ),
  rebuild: endpoint('POST /levels/rebuild', { ...MANAGE, body: rebuildInput }, ({ app, body }) =>
    rebuildLevels(app, body())
  ),
  findOne: endpoint('GET /levels/:id', READ, ({ app, id }) =>
    new LevelsService(app).get(id('Level'))
  ),
  update: endpoint('PUT /levels/:id', { ...MANAGE, body: updateLevelInput }, ({ app, id, body }) =>
    new LevelsService(app).update(id('Level'), body())
  ),
  explain: endpoint('GET /levels/:id/explanation', READ, ({ app, id }) =>
    explainLevel(app, id('Level'))
  ),
  movements: endpoint(
    'GET /levels/:id/movements',
    { ...LIST, query: levelMovementsQuery },
    ({ app, id, query }) => new LevelsService(app).movements(id('Level'), query())
  ),
};

const transfers = {
  find: endpoint('GET /transfers', { ...LIST, query: listQuery }, ({ app, query }) =>
    new StockTransfersService(app).list(query())
  ),
  create: endpoint('POST /transfers', { ...MANAGE, body: transferInput }, async (request) => {
    const { app, ctx, body } = request;
    const made = await new StockTransfersService(app).transfer(body(), nameOfAdminUser(ctx));
    ctx.status = made.duplicate ? 200 : 201;
    return made;
  }),
  findOne: endpoint('GET /transfers/:id', READ, ({ app, id }) =>
    new StockTransfersService(app).get(id('Transfer'))
  ),
};

const stocktakes = {
  find: endpoint('GET /stocktakes', { ...LIST, query: listQuery }, ({ app, query }) =>
    new StocktakesService(app).list(query())
  ),
  create: endpoint('POST /stocktakes', { ...MANAGE, body: stocktakeInput }, (request) => {
    const input = request.body();
    request.ctx.status = input.preview ? 200 : 201;
    return new StocktakesService(request.app).stocktake(input, nameOfAdminUser(request.ctx));
  }),
  /** The server's time: a browser's clock must not decide when counting begins. */
  clock: endpoint('GET /stocktakes/clock', MANAGE, (): StockClock => ({
    now: isoTime(Date.now()),
  })),
  findOne: endpoint('GET /stocktakes/:id', READ, ({ app, id }) =>
    new StocktakesService(app).get(id('Stocktake'))
  ),
};

const api = adminApi({
  'stock-locations': locations,
  'stock-items': items,
  'stock-levels': levels,
  'stock-transfers': transfers,
  stocktakes,
});

export const stock: Feature = {
  option: 'pos',
  tables: stockTables,
  services: {
    'stock-items': serviceOf(ItemsService),
    'stock-levels': serviceOf(LevelsService),
    'stock-transfers': serviceOf(StockTransfersService),
    stocktakes: serviceOf(StocktakesService),
    'stock-rebuild': ({ strapi }: { strapi: Core.Strapi }) => ({
      rebuild: (options?: RebuildOptions) => rebuildLevels(appOf(strapi), options),
    }),
  },
  controllers: api.controllers,
  routes: { admin: api.routes },
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
