import type { Context } from 'koa';
import type { PosEventDetail } from '../../../../shared/contracts/pos';
import { adminApi } from '../../access/admin-actions';
import { maySee, nameOfAdminUser } from '../../access/current-admin-user';
import type { App } from '../../app';
import type { FeatureRoutes } from '../../feature';
import { endpoint } from '../../http/endpoint';
import { type ControllerFactory, forbidStoring } from '../../http/guarded-route';
import { listQuery, viewedListQuery } from '../../http/pagination';
import { Refused } from '../../runtime/refusal';
import { getRefusals } from '../intake/refusals';
import { tills } from '../intake/requests';
import { TILL_ROUTES } from '../intake/wire';
import { readSales, readTotals, salesCsv, shopDay } from '../sales-figures';
import { PUBLISHED_SCHEMAS } from '../rules/schemas';
import { ConnectionsService } from './connections-service';
import { PosEventsService } from './events-service';
import {
  createConnectionInput,
  posEventsQuery,
  refusalsQuery,
  salesDaysQuery,
  salesSummaryQuery,
  updateConnectionInput,
} from './inputs';
import { inboxQuery, MappingInboxService, resolveInput, undoInput } from './mapping-inbox';

/** The very documents that validate; a copy could come apart from them. */
const schemas: ControllerFactory = () =>
  Object.fromEntries(
    Object.entries(PUBLISHED_SCHEMAS).map(([kind, schema]) => [
      kind,
      async (ctx: Context) => {
        ctx.body = JSON.stringify(schema);
        ctx.type = 'application/schema+json';
        ctx.set('Cache-Control', 'public, max-age=300');
      },
    ])
  );

const READ = { may: 'connections.read' } as const;
const LIST = { ...READ, whole: true } as const;
const MANAGE = { may: 'connections.manage' } as const;
const CREATE = { ...MANAGE, body: createConnectionInput, status: 201 } as const;

const connections = {
  find: endpoint('GET /connections', { ...LIST, query: viewedListQuery }, ({ app, query }) =>
    new ConnectionsService(app).list(query())
  ),
  create: endpoint('POST /connections', CREATE, ({ app, ctx, body }) => {
    const input = body();
    forbidStoring(ctx);
    return new ConnectionsService(app).create(input);
  }),
  findOne: endpoint('GET /connections/:id', READ, ({ app, id }) =>
    new ConnectionsService(app).get(id('Connection'))
  ),
  update: endpoint('PUT /connections/:id', { ...MANAGE, body: updateConnectionInput }, (request) =>
    new ConnectionsService(request.app).update(request.id('Connection'), request.body())
  ),
  delete: endpoint('DELETE /connections/:id', MANAGE, ({ app, id }) =>
    new ConnectionsService(app).remove(id('Connection'))
  ),
  rotateSecret: endpoint('POST /connections/:id/secret', MANAGE, ({ app, ctx, id }) => {
    forbidStoring(ctx);
    return new ConnectionsService(app).rotateSecret(id('Connection'));
  }),
  revoke: endpoint('POST /connections/:id/revoke', MANAGE, ({ app, id }) =>
    new ConnectionsService(app).revoke(id('Connection'))
  ),
};

const refusals = {
  find: endpoint('GET /connections/:id/refusals', READ, async ({ app, id }) => {
    const connection = await new ConnectionsService(app).get(id('Connection'));
    return getRefusals(app).latest(connection.id);
  }),
  list: endpoint('GET /pos-refusals', { ...LIST, query: refusalsQuery }, ({ app, query }) =>
    getRefusals(app).list(query())
  ),
};

const SALES = { may: 'sales.read' } as const;
const SUMMARY = { ...SALES, query: salesSummaryQuery };
const DAYS = { ...SALES, query: salesDaysQuery, whole: true };

const sales = {
  findOne: endpoint('GET /connections/:id/summary', SUMMARY, async ({ app, id, query }) => {
    const connection = await new ConnectionsService(app).get(id('Connection'));
    return { totals: await readTotals(app, { ...query(), connection: connection.id }) };
  }),
  find: endpoint('GET /sales-days', DAYS, async (request) => {
    const { format, ...query } = request.query();
    const { data, meta } = await readSales(request.app, query);
    if (format !== 'csv') return { data, meta };
    const { group, from, to, pieces } = query;
    request.ctx.type = 'text/csv; charset=utf-8';
    const name = `sales-by-${group}-${from}-${to}.csv`;
    request.ctx.set('Content-Disposition', `attachment; filename="${name}"`);
    return salesCsv(group, data, meta, pieces);
  }),
  shopDay: endpoint('GET /shop-day', SALES, ({ app }) => shopDay(app)),
};

const MAP = { may: 'mapping.manage' } as const;
const MAPPED = { ...MAP, whole: true } as const;

const mappingInbox = {
  find: endpoint('GET /mapping-inbox', { ...MAPPED, query: inboxQuery }, ({ app, query }) =>
    new MappingInboxService(app).list(query())
  ),
  mappings: endpoint('GET /mapping-inbox/resolved', { ...MAPPED, query: listQuery }, (request) =>
    new MappingInboxService(request.app).mappings(request.query())
  ),
  resolve: endpoint('POST /mapping-inbox/resolve', { ...MAP, body: resolveInput }, (request) =>
    new MappingInboxService(request.app).resolve(request.body(), nameOfAdminUser(request.ctx))
  ),
  undo: endpoint('POST /mapping-inbox/undo', { ...MAP, body: undoInput }, ({ app, body }) =>
    new MappingInboxService(app).undo(body().id)
  ),
};

/** A record as the caller may see it: a user who may have it processed again need not be allowed to read it. */
const shownTo = async (
  app: App,
  ctx: Context,
  record: PosEventDetail
): Promise<PosEventDetail | Pick<PosEventDetail, 'id' | 'event_id' | 'kind' | 'state'>> => {
  if (await maySee(app, ctx, 'posEvents')) return record;
  const { id, event_id, kind, state } = record;
  return { id, event_id, kind, state };
};

const NOT_HELD_TEXT = 'Only a refund that is held can be accepted without its sale.';
const NOT_HELD = new Refused(NOT_HELD_TEXT, 'not_held');

const LOG = { may: 'pos-events.read' } as const;
const LOGGED = { ...LOG, query: posEventsQuery, whole: true } as const;
const WORK = { may: 'pos-events.manage' } as const;

const events = {
  find: endpoint('GET /pos-events', LOGGED, ({ app, query }) =>
    new PosEventsService(app).list(query())
  ),
  findOne: endpoint('GET /pos-events/:id', LOG, ({ app, id }) =>
    new PosEventsService(app).get(id('Event'))
  ),
  reprocess: endpoint('POST /pos-events/:id/reprocess', WORK, async ({ app, ctx, id }) => {
    const record = await new PosEventsService(app).reprocess(id('Event'), nameOfAdminUser(ctx));
    return shownTo(app, ctx, record);
  }),
  acceptWithoutSale: endpoint('POST /pos-events/:id/accept-without-sale', WORK, async (request) => {
    const { app, ctx, id } = request;
    const service = new PosEventsService(app);
    const record = await service.acceptWithoutSale(id('Event'), nameOfAdminUser(ctx));
    return record ? shownTo(app, ctx, record) : NOT_HELD;
  }),
};

const api = adminApi({
  'pos-connections': connections,
  'pos-refusals': refusals,
  'pos-sales': sales,
  'mapping-inbox': mappingInbox,
  'pos-events': events,
});

export const routes: FeatureRoutes = {
  // Tills bring their own authentication; the host's must not stand before it.
  pos: TILL_ROUTES.map(([method, path, handler]) => ({
    method,
    path,
    handler,
    config: { auth: false },
  })),
  admin: api.routes,
};

export const controllers = { tills, 'pos-schemas': schemas, ...api.controllers };
