import type { AdminAction } from '../../../shared/contracts/permissions';
import { adminPolicies } from '../access/admin-policies';
import type { FeatureRoutes, RouteConfig } from '../feature';

const route = (
  method: RouteConfig['method'],
  path: string,
  handler: string,
  action: AdminAction
): RouteConfig => ({ method, path, handler, config: { policies: adminPolicies(action) } });

export const routes: FeatureRoutes = {
  admin: [
    route('GET', '/locations', 'stock-locations.find', 'stock.read'),
    route('POST', '/locations', 'stock-locations.create', 'stock.manage'),
    route('GET', '/locations/:id', 'stock-locations.findOne', 'stock.read'),
    route('PUT', '/locations/:id', 'stock-locations.update', 'stock.manage'),
    route('GET', '/items', 'stock-items.find', 'stock.read'),
    route('POST', '/items', 'stock-items.create', 'stock.manage'),
    route('POST', '/items/import', 'stock-items.import', 'stock.import'),
    route('GET', '/items/:id', 'stock-items.findOne', 'stock.read'),
    route('PUT', '/items/:id', 'stock-items.update', 'stock.manage'),
    route('DELETE', '/items/:id', 'stock-items.delete', 'stock.manage'),
    route('POST', '/items/:id/adjust', 'stock-items.adjust', 'stock.manage'),
    route('GET', '/stock-grid', 'stock-levels.grid', 'stock.read'),
    route('GET', '/levels', 'stock-levels.find', 'stock.read'),
    // Before `/levels/:id`, so that nobody reads "check" or "rebuild" as an id.
    route('POST', '/levels/check', 'stock-levels.check', 'stock.manage'),
    route('POST', '/levels/rebuild', 'stock-levels.rebuild', 'stock.manage'),
    route('GET', '/levels/:id', 'stock-levels.findOne', 'stock.read'),
    route('PUT', '/levels/:id', 'stock-levels.update', 'stock.manage'),
    route('GET', '/levels/:id/explanation', 'stock-levels.explain', 'stock.read'),
    route('GET', '/levels/:id/movements', 'stock-levels.movements', 'stock.read'),
    route('GET', '/transfers', 'stock-transfers.find', 'stock.read'),
    route('POST', '/transfers', 'stock-transfers.create', 'stock.manage'),
    route('GET', '/transfers/:id', 'stock-transfers.findOne', 'stock.read'),
    route('GET', '/stocktakes', 'stocktakes.find', 'stock.read'),
    route('POST', '/stocktakes', 'stocktakes.create', 'stock.manage'),
    // Before `/stocktakes/:id`, so that nobody reads "clock" as an id.
    route('GET', '/stocktakes/clock', 'stocktakes.clock', 'stock.manage'),
    route('GET', '/stocktakes/:id', 'stocktakes.findOne', 'stock.read'),
  ],
};
