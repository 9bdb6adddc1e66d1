import type { Context } from 'koa';
import type { PosEventDetail } from '../../../../shared/contracts/pos';
import { adminRoute as admin } from '../../access/admin-actions';
import { mayReadPosEvents, nameOfAdminUser } from '../../access/current-admin-user';
import { type App, appOf } from '../../app';
import type { FeatureRoutes, RouteConfig } from '../../feature';
import { type ControllerFactory, forbidStoring, jsonBody, queryOf } from '../../http/guarded-route';
import { idFromPath, parseInput } from '../../http/validation';
import { codeOf, refusal } from '../../runtime/refusal';
import { getRefusals } from '../intake/refusals';
import { tills } from '../intake/requests';
import { readSales, readTotals, salesCsv, shopDay } from '../money/sales-figures';
import { PUBLISHED_SCHEMAS } from '../rules/schemas';
import { ASKING_KINDS, RECORD_KINDS } from '../rules/states';
import type { ConnectionsService } from './connections-service';
import type { PosEventsService } from './events-service';
import {
  connectionsQuery,
  createConnectionInput,
  posEventsQuery,
  refusalsQuery,
  salesDaysQuery,
  salesSummaryQuery,
  updateConnectionInput,
} from './inputs';
import {
  inboxQuery,
  type MappingInboxService,
  mappingsQuery,
  resolveInput,
  undoInput,
} from './mapping-inbox';

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

const connectionsOf = (app: App): ConnectionsService =>
  app.strapi.service('plugin::switchboard.pos-connections') as unknown as ConnectionsService;
const eventsOf = (app: App): PosEventsService =>
  app.strapi.service('plugin::switchboard.pos-events') as unknown as PosEventsService;
const NOT_HELD = refusal(
  'Only a refund that is held can be accepted without its sale.',
  'not_held'
);

const connectionId = (ctx: Context): number => idFromPath(ctx.params.id, 'Connection');
const eventId = (ctx: Context): number => idFromPath(ctx.params.id, 'Event');

/** The very documents that validate; a copy could come apart from them. */
const schemas: ControllerFactory = () => {
  const publish = (kind: keyof typeof PUBLISHED_SCHEMAS) => async (ctx: Context) => {
    ctx.body = JSON.stringify(PUBLISHED_SCHEMAS[kind]);
    ctx.type = 'application/schema+json';
    ctx.set('Cache-Control', 'public, max-age=300');
  };
  return {
    sale: publish('sale'),
    refund: publish('refund'),
    inventory: publish('inventory'),
    closing: publish('closing'),
    batch: publish('batch'),
  };
};

const connections: ControllerFactory = ({ strapi }) => {
  const app = appOf(strapi);
  return {
    async find(ctx) {
      ctx.body = await connectionsOf(app).list(parseInput(connectionsQuery, ctx.query));
    },
    async findOne(ctx) {
      ctx.body = { data: await connectionsOf(app).get(connectionId(ctx)) };
    },
    async create(ctx) {
      const input = parseInput(createConnectionInput, ctx.request.body);
      forbidStoring(ctx);
      ctx.body = { data: await connectionsOf(app).create(input) };
      ctx.status = 201;
    },
    async update(ctx) {
      const id = connectionId(ctx);
      const input = parseInput(updateConnectionInput, ctx.request.body);
      ctx.body = { data: await connectionsOf(app).update(id, input) };
    },
    async delete(ctx) {
      await connectionsOf(app).remove(connectionId(ctx));
      ctx.status = 204;
    },
    async rotateSecret(ctx) {
      forbidStoring(ctx);
      ctx.body = { data: await connectionsOf(app).rotateSecret(connectionId(ctx)) };
    },
    async revoke(ctx) {
      ctx.body = { data: await connectionsOf(app).revoke(connectionId(ctx)) };
    },
  };
};

const refusals: ControllerFactory = ({ strapi }) => {
  const app = appOf(strapi);
  return {
    async find(ctx) {
      const { id } = await connectionsOf(app).get(connectionId(ctx));
      ctx.body = { data: await getRefusals(app).latest(id) };
    },
    async list(ctx) {
      ctx.body = await getRefusals(app).list(parseInput(refusalsQuery, ctx.query));
    },
  };
};

/** A record as whoever asks may see it: who may have it processed again need not be allowed to read it. */
const shownTo = async (
  app: App,
  ctx: Context,
  record: PosEventDetail
): Promise<PosEventDetail | Pick<PosEventDetail, 'id' | 'event_id' | 'kind' | 'state'>> => {
  if (await mayReadPosEvents(app, ctx)) return record;
  const { id, event_id, kind, state } = record;
  return { id, event_id, kind, state };
};

const events: ControllerFactory = ({ strapi }) => {
  const app = appOf(strapi);
  return {
    async find(ctx) {
      ctx.body = await eventsOf(app).list(parseInput(posEventsQuery, ctx.query));
    },
    async findOne(ctx) {
      ctx.body = { data: await eventsOf(app).get(eventId(ctx)) };
    },
    async reprocess(ctx) {
      const data = await eventsOf(app).reprocess(eventId(ctx), nameOfAdminUser(ctx));
      ctx.body = { data: await shownTo(app, ctx, data) };
    },
    async acceptWithoutSale(ctx) {
      const data = await eventsOf(app).acceptWithoutSale(eventId(ctx), nameOfAdminUser(ctx));
      if (data) ctx.body = { data: await shownTo(app, ctx, data) };
      else ctx.conflict(NOT_HELD.message, codeOf(NOT_HELD));
    },
  };
};

const sales: ControllerFactory = ({ strapi }) => {
  const app = appOf(strapi);
  return {
    async find(ctx) {
      const { format, ...query } = parseInput(salesDaysQuery, ctx.query);
      const sales = await readSales(app, query);
      if (format !== 'csv') {
        ctx.body = sales;
        return;
      }
      ctx.body = salesCsv(query.group, sales.data, {
        pieces: query.pieces,
        names: sales.meta.names,
      });
      ctx.type = 'text/csv; charset=utf-8';
      const name = `sales-by-${query.group}-${query.from}-${query.to}.csv`;
      ctx.set('Content-Disposition', `attachment; filename="${name}"`);
    },
    async shopDay(ctx) {
      ctx.body = { data: shopDay(app) };
    },
    async findOne(ctx) {
      const { id } = await connectionsOf(app).get(connectionId(ctx));
      const range = parseInput(salesSummaryQuery, ctx.query);
      ctx.body = { data: { totals: await readTotals(app, { ...range, connection: id }) } };
    },
  };
};

const inboxOf = (app: App): MappingInboxService =>
  app.strapi.service('plugin::switchboard.mapping-inbox') as unknown as MappingInboxService;

const mappingInbox: ControllerFactory = ({ strapi }) => {
  const app = appOf(strapi);
  return {
    async find(ctx) {
      ctx.body = await inboxOf(app).list(parseInput(inboxQuery, ctx.query));
    },
    async mappings(ctx) {
      ctx.body = await inboxOf(app).mappings(parseInput(mappingsQuery, ctx.query));
    },
    async resolve(ctx) {
      const input = parseInput(resolveInput, ctx.request.body);
      ctx.body = { data: await inboxOf(app).resolve(input, nameOfAdminUser(ctx)) };
    },
    async undo(ctx) {
      const { id } = parseInput(undoInput, ctx.request.body);
      ctx.body = { data: await inboxOf(app).undo(id) };
    },
  };
};

export const controllers = {
  tills,
  'pos-schemas': schemas,
  'pos-connections': connections,
  'pos-refusals': refusals,
  'pos-events': events,
  'pos-sales': sales,
  'mapping-inbox': mappingInbox,
};
