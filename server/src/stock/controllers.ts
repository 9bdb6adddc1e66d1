import type { Core } from '@strapi/strapi';
import type { ControllerFactory } from '../http/controller';
import { idFromPath, parseInput } from '../http/validation';
import {
  adjustInput,
  createItemInput,
  createLocationInput,
  levelsQuery,
  listQuery,
  movementsQuery,
  rebuildInput,
  updateItemInput,
  updateLocationInput,
} from './inputs';
import type { StockGridService } from './grid';
import type { ItemsService } from './items-service';
import type { LevelsService } from './levels-service';
import type { RebuildService } from './rebuild';

const service = <S>(strapi: Core.Strapi, name: string): S =>
  strapi.service(`plugin::switchboard.${name}`) as unknown as S;

const itemsOf = (strapi: Core.Strapi) => service<ItemsService>(strapi, 'stock-items');
const levelsOf = (strapi: Core.Strapi) => service<LevelsService>(strapi, 'stock-levels');

const items: ControllerFactory = ({ strapi }) => ({
  async find(ctx) {
    ctx.body = await itemsOf(strapi).listItems(parseInput(listQuery, ctx.query));
  },
  async findOne(ctx) {
    ctx.body = { data: await itemsOf(strapi).getItem(idFromPath(ctx.params.id, 'Item')) };
  },
  async create(ctx) {
    const input = parseInput(createItemInput, ctx.request.body);
    ctx.body = { data: await itemsOf(strapi).createItem(input) };
    ctx.status = 201;
  },
  async update(ctx) {
    const id = idFromPath(ctx.params.id, 'Item');
    const input = parseInput(updateItemInput, ctx.request.body);
    ctx.body = { data: await itemsOf(strapi).updateItem(id, input) };
  },
  async adjust(ctx) {
    const id = idFromPath(ctx.params.id, 'Item');
    const input = parseInput(adjustInput, ctx.request.body);
    ctx.body = { data: await levelsOf(strapi).adjust(id, input) };
    ctx.status = 201;
  },
});

const locations: ControllerFactory = ({ strapi }) => ({
  async find(ctx) {
    ctx.body = await itemsOf(strapi).listLocations(parseInput(listQuery, ctx.query));
  },
  async create(ctx) {
    const input = parseInput(createLocationInput, ctx.request.body);
    ctx.body = { data: await itemsOf(strapi).createLocation(input) };
    ctx.status = 201;
  },
  async update(ctx) {
    const id = idFromPath(ctx.params.id, 'Location');
    const input = parseInput(updateLocationInput, ctx.request.body);
    ctx.body = { data: await itemsOf(strapi).updateLocation(id, input) };
  },
});

const levels: ControllerFactory = ({ strapi }) => ({
  async find(ctx) {
    ctx.body = await levelsOf(strapi).list(parseInput(levelsQuery, ctx.query));
  },
  async findOne(ctx) {
    ctx.body = { data: await levelsOf(strapi).get(idFromPath(ctx.params.id, 'Level')) };
  },
  async movements(ctx) {
    const id = idFromPath(ctx.params.id, 'Level');
    ctx.body = await levelsOf(strapi).movements(id, parseInput(movementsQuery, ctx.query));
  },
  async grid(ctx) {
    const grid = service<StockGridService>(strapi, 'stock-grid');
    ctx.body = await grid.list(parseInput(listQuery, ctx.query));
  },
  async rebuild(ctx) {
    const input = parseInput(rebuildInput, ctx.request.body);
    const rebuildService = service<RebuildService>(strapi, 'stock-rebuild');
    ctx.body = { data: await rebuildService.rebuild(input) };
  },
});

export const controllers = {
  'stock-items': items,
  'stock-locations': locations,
  'stock-levels': levels,
};
