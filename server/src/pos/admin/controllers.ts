import { tills } from '../intake/requests';
import type { Core } from '@strapi/strapi';
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
} from '../mapping/inbox';
import { getRefusals } from '../intake/refusals';
import { PUBLISHED_SCHEMAS } from '../rules/schemas';
import { codeOf, refusal } from '../../runtime/refusal';

const connectionsOf = (strapi: Core.Strapi): ConnectionsService =>
  strapi.service('plugin::switchboard.pos-connections') as unknown as ConnectionsService;
const eventsOf = (strapi: Core.Strapi): PosEventsService =>
  strapi.service('plugin::switchboard.pos-events') as unknown as PosEventsService;
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

const connections: ControllerFactory = ({ strapi }) => ({
  async find(ctx) {
    ctx.body = await connectionsOf(strapi).list(parseInput(connectionsQuery, ctx.query));
  },
  async findOne(ctx) {
    ctx.body = { data: await connectionsOf(strapi).get(connectionId(ctx)) };
  },
  async create(ctx) {
    const input = parseInput(createConnectionInput, ctx.request.body);
    forbidStoring(ctx);
    ctx.body = { data: await connectionsOf(strapi).create(input) };
    ctx.status = 201;
  },
  async update(ctx) {
    const id = connectionId(ctx);
    const input = parseInput(updateConnectionInput, ctx.request.body);
    ctx.body = { data: await connectionsOf(strapi).update(id, input) };
  },
  async delete(ctx) {
    await connectionsOf(strapi).remove(connectionId(ctx));
    ctx.status = 204;
  },
  async rotateSecret(ctx) {
    forbidStoring(ctx);
    ctx.body = { data: await connectionsOf(strapi).rotateSecret(connectionId(ctx)) };
  },
  async revoke(ctx) {
    ctx.body = { data: await connectionsOf(strapi).revoke(connectionId(ctx)) };
  },
});

const refusals: ControllerFactory = ({ strapi }) => ({
  async find(ctx) {
    const { id } = await connectionsOf(strapi).get(connectionId(ctx));
    ctx.body = { data: await getRefusals(strapi).latest(id) };
  },
  async list(ctx) {
    ctx.body = await getRefusals(strapi).list(parseInput(refusalsQuery, ctx.query));
  },
});

/** A record as whoever asks may see it: who may have it processed again need not be allowed to read it. */
const shownTo = async (
  strapi: Core.Strapi,
  ctx: Context,
  record: PosEventDetail
): Promise<PosEventDetail | Pick<PosEventDetail, 'id' | 'event_id' | 'kind' | 'state'>> => {
  if (await mayReadPosEvents(strapi, ctx)) return record;
  const { id, event_id, kind, state } = record;
  return { id, event_id, kind, state };
};

const events: ControllerFactory = ({ strapi }) => ({
  async find(ctx) {
    ctx.body = await eventsOf(strapi).list(parseInput(posEventsQuery, ctx.query));
  },
  async findOne(ctx) {
    ctx.body = { data: await eventsOf(strapi).get(eventId(ctx)) };
  },
  async reprocess(ctx) {
    const data = await eventsOf(strapi).reprocess(eventId(ctx), nameOfAdminUser(ctx));
    ctx.body = { data: await shownTo(strapi, ctx, data) };
  },
  async acceptWithoutSale(ctx) {
    const data = await eventsOf(strapi).acceptWithoutSale(eventId(ctx), nameOfAdminUser(ctx));
    if (data) ctx.body = { data: await shownTo(strapi, ctx, data) };
    else ctx.conflict(NOT_HELD.message, codeOf(NOT_HELD));
  },
});

const sales: ControllerFactory = ({ strapi }) => ({
  async find(ctx) {
    const { format, ...query } = parseInput(salesDaysQuery, ctx.query);
    const sales = await readSales(strapi, query);
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
    ctx.body = { data: shopDay(strapi) };
  },
  async findOne(ctx) {
    const { id } = await connectionsOf(strapi).get(connectionId(ctx));
    const range = parseInput(salesSummaryQuery, ctx.query);
    ctx.body = { data: { totals: await readTotals(strapi, { ...range, connection: id }) } };
  },
});

const inboxOf = (strapi: Core.Strapi): MappingInboxService =>
  strapi.service('plugin::switchboard.mapping-inbox') as unknown as MappingInboxService;

const mappingInbox: ControllerFactory = ({ strapi }) => ({
  async find(ctx) {
    ctx.body = await inboxOf(strapi).list(parseInput(inboxQuery, ctx.query));
  },
  async mappings(ctx) {
    ctx.body = await inboxOf(strapi).mappings(parseInput(mappingsQuery, ctx.query));
  },
  async resolve(ctx) {
    const input = parseInput(resolveInput, ctx.request.body);
    ctx.body = { data: await inboxOf(strapi).resolve(input, nameOfAdminUser(ctx)) };
  },
  async undo(ctx) {
    const { id } = parseInput(undoInput, ctx.request.body);
    ctx.body = { data: await inboxOf(strapi).undo(id) };
  },
});

export const controllers = {
  tills,
  'pos-schemas': schemas,
  'pos-connections': connections,
  'pos-refusals': refusals,
  'pos-events': events,
  'pos-sales': sales,
  'mapping-inbox': mappingInbox,
};
