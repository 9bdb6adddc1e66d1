import type { Core } from '@strapi/strapi';
import type { Context } from 'koa';
import { mayRevealSecrets } from '../../access/may-reveal';
import { forbidStoring } from '../../secrets/no-store';
import type { ControllerFactory } from '../../http/controller';
import { idFromPath, parseInput, parseWithRules } from '../../http/validation';
import { chooseableEvents } from '../subscriptions/catalogue';
import type { DeliveriesService, Unsent } from './deliveries-service';
import {
  createWebhookInput,
  deliveriesQuery,
  listQuery,
  testInput,
  updateWebhookInput,
} from './inputs';
import { webhookRules } from './webhook-rules';
import type { WebhooksService } from './webhooks-service';

/** The host adds a method for each HTTP error to koa's context. */
type HostContext = Context & {
  conflict(message: string): void;
  serviceUnavailable(message: string): void;
};

const UNSENT: Readonly<Record<Unsent['unsent'], string>> = {
  'nobody sends':
    'This process does not send, and no other one took this over: nothing was sent. Start "switchboard worker", or set webhooks.dispatch on one of the nodes.',
  'no answer':
    'Another process took this over and has not said what came of it; the log of deliveries will.',
};

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
  (shape: Shape): ControllerFactory<HostContext> =>
  ({ strapi }) => ({
    async find(ctx) {
      ctx.body = await webhooksOf(strapi).list(parseInput(listQuery, ctx.query));
    },
    async findOne(ctx) {
      const id = webhookId(ctx);
      if (!(await mayRevealSecrets(strapi, ctx))) {
        ctx.body = shape(await webhooksOf(strapi).get(id));
        return;
      }
      forbidStoring(ctx);
      ctx.body = shape(await webhooksOf(strapi).reveal(id));
    },
    async revealSecret(ctx) {
      const { secret } = await webhooksOf(strapi).reveal(webhookId(ctx));
      forbidStoring(ctx);
      ctx.body = shape({ secret });
    },
    async create(ctx) {
      const input = await parseWithRules(
        createWebhookInput,
        ctx.request.body,
        webhookRules(strapi)
      );
      forbidStoring(ctx);
      ctx.body = shape(await webhooksOf(strapi).create(input));
      ctx.status = 201;
    },
    async update(ctx) {
      const before = await webhooksOf(strapi).get(webhookId(ctx));
      const input = await parseWithRules(
        updateWebhookInput,
        ctx.request.body,
        webhookRules(strapi, before)
      );
      ctx.body = shape(await webhooksOf(strapi).update(before.id, input));
    },
    async delete(ctx) {
      await webhooksOf(strapi).remove(webhookId(ctx));
      ctx.status = 204;
    },
    async test(ctx) {
      const { event } = parseInput(testInput, ctx.request.body);
      const result = await deliveriesOf(strapi).test(webhookId(ctx), event);
      if ('unsent' in result) ctx.serviceUnavailable(UNSENT[result.unsent]);
      else ctx.body = shape(result);
    },
    async rotateSecret(ctx) {
      forbidStoring(ctx);
      ctx.body = shape(await webhooksOf(strapi).rotateSecret(webhookId(ctx)));
    },
  });

const deliveries =
  (shape: Shape): ControllerFactory<HostContext> =>
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
      if (delivery === 'foreign') {
        ctx.conflict('This delivery came from another site, and is not sent from here.');
        return;
      }
      if ('unsent' in delivery) {
        ctx.serviceUnavailable(UNSENT[delivery.unsent]);
        return;
      }
      if ('off' in delivery) {
        ctx.conflict(
          `The module ${delivery.off} is switched off: its events are not sent until it is on again.`
        );
        return;
      }
      ctx.body = shape(delivery);
    },
  });

const events: ControllerFactory<HostContext> = ({ strapi }) => ({
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
