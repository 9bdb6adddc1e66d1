import { adminRoute as route } from '../access/admin-actions';
import type { FeatureRoutes } from '../feature';
import { jsonBody, queryOf } from '../http/guarded-route';
import { uploadQuery } from '../imports/upload';
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
