import type { Core } from '@strapi/strapi';
import type { Context } from 'koa';
import { forbidStoring } from '../../secrets/no-store';
import type { ControllerFactory } from '../../http/controller';
import { idFromPath, parseInput } from '../../http/validation';
import type { ConnectionsService } from './connections-service';
import type { PosEventsService } from './events-service';
import { createChecks, type Checks } from '../intake/checks';
import {
  connectionsQuery,
  createConnectionInput,
  posEventsQuery,
  updateConnectionInput,
} from './inputs';
import { getRefusals } from '../intake/refusals';
import { RECORD_SCHEMAS } from '../rules/schemas';

const gates = new WeakMap<Core.Strapi, Checks>();

/** Made at boot, outside any request, so that its loops inherit no request's transaction. */
export const openGate = (strapi: Core.Strapi): void => {
  gates.set(strapi, createChecks(strapi));
};

const gateOf = (strapi: Core.Strapi): Checks => {
  const gate = gates.get(strapi);
  if (!gate) throw new Error('The plugin switchboard is not running.');
  return gate;
};

const connectionsOf = (strapi: Core.Strapi): ConnectionsService =>
  strapi.service('plugin::switchboard.pos-connections') as unknown as ConnectionsService;
const eventsOf = (strapi: Core.Strapi): PosEventsService =>
  strapi.service('plugin::switchboard.pos-events') as unknown as PosEventsService;
const connectionId = (ctx: Context): number => idFromPath(ctx.params.id, 'Connection');
const eventId = (ctx: Context): number => idFromPath(ctx.params.id, 'Event');

const tills: ControllerFactory = ({ strapi }) => ({
  ping: (ctx) => gateOf(strapi).ping(ctx),
  sale: (ctx) => gateOf(strapi).receive(ctx, 'sale'),
  refund: (ctx) => gateOf(strapi).receive(ctx, 'refund'),
  inventory: (ctx) => gateOf(strapi).receive(ctx, 'inventory'),
});

/** The very documents that validate; a copy could come apart from them. */
const schemas: ControllerFactory = () => {
  const publish = (kind: keyof typeof RECORD_SCHEMAS) => async (ctx: Context) => {
    ctx.body = JSON.stringify(RECORD_SCHEMAS[kind]);
    ctx.type = 'application/schema+json';
    ctx.set('Cache-Control', 'public, max-age=300');
  };
  return { sale: publish('sale'), refund: publish('refund'), inventory: publish('inventory') };
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
});

const events: ControllerFactory = ({ strapi }) => ({
  async find(ctx) {
    ctx.body = await eventsOf(strapi).list(parseInput(posEventsQuery, ctx.query));
  },
  async findOne(ctx) {
    ctx.body = { data: await eventsOf(strapi).get(eventId(ctx)) };
  },
  async reprocess(ctx) {
    ctx.body = { data: await eventsOf(strapi).reprocess(eventId(ctx)) };
  },
});

export const controllers = {
  tills,
  'pos-schemas': schemas,
  'pos-connections': connections,
  'pos-refusals': refusals,
  'pos-events': events,
};
