import type { Core } from '@strapi/strapi';
import type { Context } from 'koa';
import { idFromPath, parseInput } from '../../validation';
import { chooseableEvents } from '../catalogue';
import type { DeliveriesService } from '../deliveries-service';
import {
  createWebhookInput,
  deliveriesQuery,
  listQuery,
  testInput,
  updateWebhookInput,
} from '../inputs';
import type { WebhooksService } from '../webhooks-service';

/** The host adds a method for each HTTP error to koa's context. */
type HostContext = Context & { conflict(message: string): void };

type Factory = (context: {
  strapi: Core.Strapi;
}) => Record<string, (ctx: HostContext) => Promise<void>>;

/** How a single object is put into an answer: bare for the CRM API, in `data` for the admin. */
type Shape = (value: unknown) => unknown;
const bare: Shape = (value) => value;
const inData: Shape = (data) => ({ data });

const webhooksOf = (strapi: Core.Strapi): WebhooksService =>
  strapi.service('plugin::switchboard.webhooks') as unknown as WebhooksService;
const deliveriesOf = (strapi: Core.Strapi): DeliveriesService =>
  strapi.service('plugin::switchboard.deliveries') as unknown as DeliveriesService;
const webhookId = (ctx: Context): number => idFromPath(ctx.params.id, 'Webhook');

const webhooks =
  (shape: Shape): Factory =>
  ({ strapi }) => ({
    async find(ctx) {
      ctx.body = await webhooksOf(strapi).list(parseInput(listQuery, ctx.query));
    },
    async findOne(ctx) {
      ctx.body = shape(await webhooksOf(strapi).get(webhookId(ctx)));
    },
    async create(ctx) {
      const input = parseInput(createWebhookInput, ctx.request.body);
      ctx.body = shape(await webhooksOf(strapi).create(input));
      ctx.status = 201;
    },
    async update(ctx) {
      const input = parseInput(updateWebhookInput, ctx.request.body);
      ctx.body = shape(await webhooksOf(strapi).update(webhookId(ctx), input));
    },
    async delete(ctx) {
      await webhooksOf(strapi).remove(webhookId(ctx));
      ctx.status = 204;
    },
    async test(ctx) {
      const { event } = parseInput(testInput, ctx.request.body);
      ctx.body = shape(await deliveriesOf(strapi).test(webhookId(ctx), event));
    },
    async rotateSecret(ctx) {
      ctx.body = shape(await webhooksOf(strapi).rotateSecret(webhookId(ctx)));
    },
  });

const deliveries =
  (shape: Shape): Factory =>
  ({ strapi }) => ({
    async find(ctx) {
      const query = parseInput(deliveriesQuery, ctx.query);
      ctx.body = await deliveriesOf(strapi).list(webhookId(ctx), query);
    },
    async findOne(ctx) {
      ctx.body = shape(await deliveriesOf(strapi).get(idFromPath(ctx.params.id, 'Delivery')));
    },
    async retry(ctx) {
      const delivery = await deliveriesOf(strapi).retry(idFromPath(ctx.params.id, 'Delivery'));
      if (delivery === 'held') {
        ctx.conflict('An attempt of this delivery is under way. Try again when it has ended.');
        return;
      }
      ctx.body = shape(delivery);
    },
  });

const events: Factory = ({ strapi }) => ({
  async find(ctx) {
    ctx.body = { data: await chooseableEvents(strapi) };
  },
});

export const controllers = {
  webhooks: webhooks(bare),
  'webhooks-admin': webhooks(inData),
  deliveries: deliveries(bare),
  'deliveries-admin': deliveries(inData),
  'webhook-events': events,
};
