import { tills } from '../intake/requests';
import type { Context } from 'koa';
import { type ControllerFactory, forbidStoring } from '../../http/guarded-route';
import { idFromPath, parseInput } from '../../http/validation';
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
import { readSales, readTotals, salesCsv, shopDay } from '../money/sales-figures';
import { mayReadPosEvents, nameOfAdminUser } from '../../access/current-admin-user';
import type { PosEventDetail } from '../../../../shared/contracts/pos';
import {
  inboxQuery,
  type MappingInboxService,
  mappingsQuery,
  resolveInput,
  undoInput,
} from './mapping-inbox';
import { getRefusals } from '../intake/refusals';
import { PUBLISHED_SCHEMAS } from '../rules/schemas';
import { codeOf, refusal } from '../../runtime/refusal';
import { type App, appOf } from '../../app';

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
