import type { ItemDetail, StockClock } from '../../../shared/contracts/stock';
import { adminRoute as route } from '../access/admin-actions';
import { nameOfAdminUser } from '../access/current-admin-user';
import { type App, appOf } from '../app';
import type { FeatureRoutes } from '../feature';
import { type ControllerFactory, jsonBody, queryOf } from '../http/guarded-route';
import { idFromPath, parseInput } from '../http/validation';
import { answerUpload, uploadQuery } from '../imports/upload';
import { isoTime } from '../runtime/text';
import { type StocktakesService, type StockTransfersService, timeOf } from './by-hand';
import { rebuildLevels, startLevelCheck } from './check-levels';
import { importItems } from './import';
import {
  adjustInput,
  createItemInput,
  createLocationInput,
  gridQuery,
  itemsQuery,
  levelMovementsQuery,
  levelsQuery,
  listQuery,
  movementsQuery,
  rebuildInput,
  stocktakeInput,
  transferInput,
  updateItemInput,
  updateLevelInput,
  updateLocationInput,
} from './inputs';
import type { ItemsService } from './items-service';
import { explainLevel, type LevelsService, listGrid } from './levels-service';
import { linkedProduct } from './products';

export const routes: FeatureRoutes = {
  admin: [
    route('GET', '/locations', 'stock-locations.find', 'stock.read', queryOf(listQuery)),
    route(
      'POST',
      '/locations',
      'stock-locations.create',
      'stock.manage',
      jsonBody(createLocationInput)
    ),
    route('GET', '/locations/:id', 'stock-locations.findOne', 'stock.read'),
    route(
      'PUT',
      '/locations/:id',
      'stock-locations.update',
      'stock.manage',
      jsonBody(updateLocationInput)
    ),
    route('GET', '/items', 'stock-items.find', 'stock.read', queryOf(itemsQuery)),
    route('POST', '/items', 'stock-items.create', 'stock.manage', jsonBody(createItemInput)),
    route('POST', '/items/import', 'stock-items.import', 'stock.import', queryOf(uploadQuery)),
    route('GET', '/items/:id', 'stock-items.findOne', 'stock.read'),
    route('PUT', '/items/:id', 'stock-items.update', 'stock.manage', jsonBody(updateItemInput)),
    route('DELETE', '/items/:id', 'stock-items.delete', 'stock.manage'),
    route('POST', '/items/:id/adjust', 'stock-items.adjust', 'stock.manage', jsonBody(adjustInput)),
    route('GET', '/stock-grid', 'stock-levels.grid', 'stock.read', queryOf(gridQuery)),
    route('GET', '/levels', 'stock-levels.find', 'stock.read', queryOf(levelsQuery)),
    // Before `/levels/:id`, so that nobody reads "check" or "rebuild" as an id.
    route('POST', '/levels/check', 'stock-levels.check', 'stock.manage', jsonBody(rebuildInput)),
    route(
      'POST',
      '/levels/rebuild',
      'stock-levels.rebuild',
      'stock.manage',
      jsonBody(rebuildInput)
    ),
    route('GET', '/levels/:id', 'stock-levels.findOne', 'stock.read'),
    route('PUT', '/levels/:id', 'stock-levels.update', 'stock.manage', jsonBody(updateLevelInput)),
    route('GET', '/levels/:id/explanation', 'stock-levels.explain', 'stock.read'),
    route(
      'GET',
      '/levels/:id/movements',
      'stock-levels.movements',
      'stock.read',
      queryOf(levelMovementsQuery)
    ),
    route('GET', '/transfers', 'stock-transfers.find', 'stock.read', queryOf(movementsQuery)),
    route('POST', '/transfers', 'stock-transfers.create', 'stock.manage', jsonBody(transferInput)),
    route('GET', '/transfers/:id', 'stock-transfers.findOne', 'stock.read'),
    route('GET', '/stocktakes', 'stocktakes.find', 'stock.read', queryOf(movementsQuery)),
    route('POST', '/stocktakes', 'stocktakes.create', 'stock.manage', jsonBody(stocktakeInput)),
    // Before `/stocktakes/:id`, so that nobody reads "clock" as an id.
    route('GET', '/stocktakes/clock', 'stocktakes.clock', 'stock.manage'),
    route('GET', '/stocktakes/:id', 'stocktakes.findOne', 'stock.read'),
  ],
};

const service = <S>(app: App, name: string): S =>
  app.strapi.service(`plugin::switchboard.${name}`) as unknown as S;

const itemsOf = (app: App) => service<ItemsService>(app, 'stock-items');
const levelsOf = (app: App) => service<LevelsService>(app, 'stock-levels');

const stocktakesOf = (app: App) => service<StocktakesService>(app, 'stocktakes');
const transfersOf = (app: App) => service<StockTransfersService>(app, 'stock-transfers');

const items: ControllerFactory = ({ strapi }) => {
  const app = appOf(strapi);
  return {
    async find(ctx) {
      ctx.body = await itemsOf(app).listItems(parseInput(itemsQuery, ctx.query));
    },
    async findOne(ctx) {
      const item = await itemsOf(app).getItem(idFromPath(ctx.params.id, 'Item'));
      const data: ItemDetail = { ...item, product: await linkedProduct(app, item.sku) };
      ctx.body = { data };
    },
    async create(ctx) {
      const input = parseInput(createItemInput, ctx.request.body);
      ctx.body = { data: await itemsOf(app).createItem(input) };
      ctx.status = 201;
    },
    async update(ctx) {
      const id = idFromPath(ctx.params.id, 'Item');
      const input = parseInput(updateItemInput, ctx.request.body);
      ctx.body = { data: await itemsOf(app).updateItem(id, input) };
    },
    async import(ctx) {
      await answerUpload(app, ctx, 'items', (file, options) => importItems(app, file, options));
    },
    async delete(ctx) {
      await itemsOf(app).archiveItem(idFromPath(ctx.params.id, 'Item'));
      ctx.status = 204;
    },
    async adjust(ctx) {
      const id = idFromPath(ctx.params.id, 'Item');
      const input = parseInput(adjustInput, ctx.request.body);
      if (input.preview) {
        ctx.body = { data: await stocktakesOf(app).preview(id, input) };
        return;
      }
      const madeBy = nameOfAdminUser(ctx);
      if (input.counted !== undefined) await stocktakesOf(app).setTo(id, input, madeBy);
      else await levelsOf(app).adjust(id, input, madeBy);
      ctx.body = { data: await levelsOf(app).at(id, input.location) };
      ctx.status = 201;
    },
  };
};

const locations: ControllerFactory = ({ strapi }) => {
  const app = appOf(strapi);
  return {
    async find(ctx) {
      ctx.body = await itemsOf(app).listLocations(parseInput(listQuery, ctx.query));
    },
    async findOne(ctx) {
      ctx.body = { data: await itemsOf(app).getLocation(idFromPath(ctx.params.id, 'Location')) };
    },
    async create(ctx) {
      const input = parseInput(createLocationInput, ctx.request.body);
      ctx.body = { data: await itemsOf(app).createLocation(input) };
      ctx.status = 201;
    },
    async update(ctx) {
      const id = idFromPath(ctx.params.id, 'Location');
      const input = parseInput(updateLocationInput, ctx.request.body);
      ctx.body = { data: await itemsOf(app).updateLocation(id, input) };
    },
  };
};

const levels: ControllerFactory = ({ strapi }) => {
  const app = appOf(strapi);
  return {
    async find(ctx) {
      ctx.body = await levelsOf(app).list(parseInput(levelsQuery, ctx.query));
    },
    async findOne(ctx) {
      ctx.body = { data: await levelsOf(app).get(idFromPath(ctx.params.id, 'Level')) };
    },
    async update(ctx) {
      const id = idFromPath(ctx.params.id, 'Level');
      const input = parseInput(updateLevelInput, ctx.request.body);
      ctx.body = { data: await levelsOf(app).update(id, input) };
    },
    async movements(ctx) {
      const id = idFromPath(ctx.params.id, 'Level');
      ctx.body = await levelsOf(app).movements(id, parseInput(levelMovementsQuery, ctx.query));
    },
    async explain(ctx) {
      ctx.body = { data: await explainLevel(app, idFromPath(ctx.params.id, 'Level')) };
    },
    async grid(ctx) {
      ctx.body = await listGrid(app, parseInput(gridQuery, ctx.query));
    },
    async check(ctx) {
      const { mend } = parseInput(rebuildInput, ctx.request.body);
      ctx.body = { data: await startLevelCheck(app, { mend, madeBy: nameOfAdminUser(ctx) }) };
      ctx.status = 202;
    },
    async rebuild(ctx) {
      ctx.body = { data: await rebuildLevels(app, parseInput(rebuildInput, ctx.request.body)) };
    },
  };
};

const transfers: ControllerFactory = ({ strapi }) => {
  const app = appOf(strapi);
  return {
    async find(ctx) {
      ctx.body = await transfersOf(app).list(parseInput(movementsQuery, ctx.query));
    },
    async findOne(ctx) {
      ctx.body = { data: await transfersOf(app).get(idFromPath(ctx.params.id, 'Transfer')) };
    },
    async create(ctx) {
      const input = parseInput(transferInput, ctx.request.body);
      const made = await transfersOf(app).transfer(input, nameOfAdminUser(ctx));
      ctx.body = { data: made };
      ctx.status = made.duplicate ? 200 : 201;
    },
  };
};

const stocktakes: ControllerFactory = ({ strapi }) => {
  const app = appOf(strapi);
  return {
    /** What time it is here: when counting begins is not for a browser's clock to say. */
    async clock(ctx) {
      ctx.body = { data: { now: isoTime(timeOf(undefined)) } satisfies StockClock };
    },
    async find(ctx) {
      ctx.body = await stocktakesOf(app).list(parseInput(movementsQuery, ctx.query));
    },
    async findOne(ctx) {
      ctx.body = { data: await stocktakesOf(app).get(idFromPath(ctx.params.id, 'Stocktake')) };
    },
    async create(ctx) {
      const input = parseInput(stocktakeInput, ctx.request.body);
      ctx.body = { data: await stocktakesOf(app).stocktake(input, nameOfAdminUser(ctx)) };
      ctx.status = input.preview ? 200 : 201;
    },
  };
};

export const controllers = {
  'stock-items': items,
  'stock-locations': locations,
  'stock-levels': levels,
  'stock-transfers': transfers,
  stocktakes,
};
