import { adminRoute as admin } from '../../access/admin-actions';
import type { FeatureRoutes, RouteConfig } from '../../feature';
import { jsonBody, queryOf } from '../../http/guarded-route';
import { inboxQuery, mappingsQuery, resolveInput, undoInput } from './mapping-inbox';
import { ASKING_KINDS, RECORD_KINDS } from '../rules/states';
import {
  connectionsQuery,
  createConnectionInput,
  posEventsQuery,
  refusalsQuery,
  salesDaysQuery,
  salesSummaryQuery,
  updateConnectionInput,
} from './inputs';

/** Tills bring their own authentication; the host's must not stand before it. */
const open = (method: RouteConfig['method'], path: string, handler: string): RouteConfig => ({
  method,
  path,
  handler,
  config: { auth: false },
});

export const routes: FeatureRoutes = {
  pos: [
    open('GET', '/ping', 'tills.ping'),
    ...RECORD_KINDS.map((kind) => open('POST', `/${kind}`, `tills.${kind}`)),
    ...RECORD_KINDS.map((kind) => open('GET', `/schema/${kind}`, `pos-schemas.${kind}`)),
    ...ASKING_KINDS.map((kind) => open('POST', `/${kind}`, `tills.${kind}`)),
    open('GET', '/schema/batch', 'pos-schemas.batch'),
    open('POST', '/closing', 'tills.closing'),
    open('GET', '/schema/closing', 'pos-schemas.closing'),
  ],
  admin: [
    admin(
      'GET',
      '/connections',
      'pos-connections.find',
      'connections.read',
      queryOf(connectionsQuery)
    ),
    admin(
      'POST',
      '/connections',
      'pos-connections.create',
      'connections.manage',
      jsonBody(createConnectionInput)
    ),
    admin('GET', '/connections/:id', 'pos-connections.findOne', 'connections.read'),
    admin(
      'PUT',
      '/connections/:id',
      'pos-connections.update',
      'connections.manage',
      jsonBody(updateConnectionInput)
    ),
    admin('DELETE', '/connections/:id', 'pos-connections.delete', 'connections.manage'),
    admin('POST', '/connections/:id/secret', 'pos-connections.rotateSecret', 'connections.manage'),
    admin('POST', '/connections/:id/revoke', 'pos-connections.revoke', 'connections.manage'),
    admin('GET', '/connections/:id/refusals', 'pos-refusals.find', 'connections.read'),
    admin(
      'GET',
      '/connections/:id/summary',
      'pos-sales.findOne',
      'sales.read',
      queryOf(salesSummaryQuery)
    ),
    admin('GET', '/sales-days', 'pos-sales.find', 'sales.read', queryOf(salesDaysQuery)),
    admin('GET', '/shop-day', 'pos-sales.shopDay', 'sales.read'),
    admin('GET', '/pos-refusals', 'pos-refusals.list', 'connections.read', queryOf(refusalsQuery)),
    admin('GET', '/mapping-inbox', 'mapping-inbox.find', 'mapping.manage', queryOf(inboxQuery)),
    admin(
      'GET',
      '/mapping-inbox/resolved',
      'mapping-inbox.mappings',
      'mapping.manage',
      queryOf(mappingsQuery)
    ),
    admin(
      'POST',
      '/mapping-inbox/resolve',
      'mapping-inbox.resolve',
      'mapping.manage',
      jsonBody(resolveInput)
    ),
    admin(
      'POST',
      '/mapping-inbox/undo',
      'mapping-inbox.undo',
      'mapping.manage',
      jsonBody(undoInput)
    ),
    admin('GET', '/pos-events', 'pos-events.find', 'pos-events.read', queryOf(posEventsQuery)),
    admin('GET', '/pos-events/:id', 'pos-events.findOne', 'pos-events.read'),
    admin('POST', '/pos-events/:id/reprocess', 'pos-events.reprocess', 'pos-events.manage'),
    admin(
      'POST',
      '/pos-events/:id/accept-without-sale',
      'pos-events.acceptWithoutSale',
      'pos-events.manage'
    ),
  ],
};
