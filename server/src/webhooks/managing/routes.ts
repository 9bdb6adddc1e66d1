import { errors, z } from '@strapi/utils';
import type { Context } from 'koa';
import type { Delivery } from '../../../../shared/contracts/webhooks';
import { adminPolicies, inData } from '../../access/admin-actions';
import { maySee, nameOfAdminUser } from '../../access/current-admin-user';
import type { App } from '../../app';
import type { FeatureRoutes } from '../../feature';
import { controllersOf, endpoint, type Endpoints, handledBy } from '../../http/endpoint';
import { forbidStoring } from '../../http/guarded-route';
import { listQuery, viewQuery } from '../../http/pagination';
import { idFromPath, parseInput, parseWithRules } from '../../http/validation';
import { contentRoutes, requireModule } from '../../modules';
import { Refused } from '../../runtime/refusal';
import { chooseableEvents, summaryOfEvent } from '../catalogue';
import { readJournal } from '../journal';
import * as deliveryLog from './deliveries';
import * as inputs from './inputs';
import * as outputs from './outputs';
import * as sendingAgain from './recoveries';
import { webhookRules, WebhooksService } from './webhooks-service';

/** The table of docs/contract-webhooks.md#management-routes: what each route takes, answers and does. */

const JOURNAL_NEEDED =
  'A replay sends what the journal holds, so it needs the action journal.find.';
const NO_JOURNAL = new Refused(
  'The event journal is off. To keep events, set the option webhooks.journalDays.',
  'no_journal'
);

/** A delivery as the caller may see it: a user who may send it again need not be allowed to read it. */
const shownTo = async (app: App, ctx: Context, delivery: Delivery | Refused) => {
  if (delivery instanceof Refused || (await maySee(app, ctx, 'deliveries'))) return delivery;
  const request = { url: '', headers: {}, body: '' };
  return { ...delivery, webhook_name: null, subject: null, request, answer: null, attempts: [] };
};

const byId = { params: { id: z.string().regex(/^[1-9]\d*$/) } };
const ofDelivery = { ...byId, response: outputs.deliveryOutput };
const ofRecovery = { ...byId, response: outputs.recoveryOutput };

const webhooks = {
  findOne: endpoint(
    'GET /webhooks/:id',
    { ...byId, query: inputs.webhookQuery, response: outputs.webhookWithSecretOutput },
    async ({ app, ctx, id, query }) => {
      const webhook = id('Webhook');
      const isShown = query().secrets === 'true' && (await maySee(app, ctx, 'secrets'));
      if (!isShown) return new WebhooksService(app).get(webhook);
      forbidStoring(ctx);
      return new WebhooksService(app).reveal(webhook);
    }
  ),
  update: ['PUT', 'PATCH'].map((method) =>
    endpoint(
      `${method} /webhooks/:id`,
      { ...byId, body: inputs.updateWebhookInput, response: outputs.webhookOutput },
      async ({ app, ctx, id }) => {
        const service = new WebhooksService(app);
        const before = await service.get(id('Webhook'));
        const rules = webhookRules(app, before);
        const input = await parseWithRules(inputs.updateWebhookInput, ctx.request.body, rules);
        const mayMoveHeaders = await maySee(app, ctx, 'secrets');
        return service.update(before.id, input, { mayMoveHeaders, by: nameOfAdminUser(ctx) });
      }
    )
  ),
  delete: endpoint('DELETE /webhooks/:id', { ...byId, response: z.null() }, ({ app, id }) =>
    new WebhooksService(app).remove(id('Webhook'))
  ),
  test: endpoint(
    'POST /webhooks/:id/test',
    { ...byId, body: inputs.testInput, response: outputs.testOutput },
    ({ app, id, body }) => {
      const { event } = body();
      return deliveryLog.testNow(app, id('Webhook'), event);
    }
  ),
  revealSecret: endpoint(
    'GET /webhooks/:id/secret',
    { ...byId, may: 'webhooks.reveal', response: outputs.revealedSecretOutput },
    async ({ app, ctx, id }) => {
      const { secret } = await new WebhooksService(app).reveal(id('Webhook'));
      forbidStoring(ctx);
      return { secret };
    }
  ),
  rotateSecret: endpoint(
    'POST /webhooks/:id/secret',
    { ...byId, body: inputs.rotateInput, response: outputs.secretOutput },
    async ({ app, ctx, id, body }) => {
      const [webhook, overlap] = [id('Webhook'), body()];
      forbidStoring(ctx);
      return new WebhooksService(app).rotateSecret(webhook, overlap, nameOfAdminUser(ctx));
    }
  ),
  previewFilter: endpoint(
    'POST /webhooks/:id/filter/preview',
    { ...byId, body: inputs.filterPreviewInput, response: outputs.filterPreviewOutput },
    async ({ app, ctx, id }) => {
      const webhook = await new WebhooksService(app).get(id('Webhook'));
      const mayRead = await maySee(app, ctx, 'deliveries');
      const input = await parseWithRules(inputs.filterPreviewInput, ctx.request.body, {
        filter: webhookRules(app).filter,
        event: (name) => deliveryLog.judgeTriedEvent(app, webhook, name, mayRead),
      });
      return deliveryLog.previewFilter(app, webhook, input, mayRead);
    }
  ),
  replay: endpoint(
    'POST /webhooks/:id/replay',
    // It sends what is in the journal.
    {
      ...byId,
      may: ['webhooks.update', 'journal.read'],
      body: inputs.replayInput,
      response: outputs.replayOutput,
    },
    async ({ app, ctx, id }) => {
      if (!(await maySee(app, ctx, 'journal'))) throw new errors.ForbiddenError(JOURNAL_NEEDED);
      const webhook = await new WebhooksService(app).get(id('Webhook'));
      const { events } = webhookRules(app, webhook);
      const input = await parseWithRules(inputs.replayInput, ctx.request.body, { events });
      if (app.options.webhooks.journalDays === 0) return NO_JOURNAL;
      ctx.status = input.dry_run ? 200 : 201;
      return sendingAgain.replay(app, webhook, input);
    }
  ),
};

/** Skips a delivery, or has later ones of its record pass it. */
const moving = (action: 'skip' | 'release') =>
  endpoint(`POST /webhook-deliveries/:id/${action}`, ofDelivery, async ({ app, ctx, id }) =>
    shownTo(app, ctx, await deliveryLog.moveDelivery(app, id('Delivery'), action))
  );

/** One action for both logs: a user who may read that of every webhook may read them together. */
const findDeliveries = ({ app, ctx }: { app: App; ctx: Context }) => {
  if (ctx.params.id === undefined) {
    const { view, ...query } = parseInput(inputs.logQuery, ctx.query);
    return deliveryLog[view === 'summary' ? 'readLogSummary' : 'readLog'](app, query);
  }
  const webhook = idFromPath(ctx.params.id, 'Webhook');
  return deliveryLog.listDeliveriesOf(app, webhook, parseInput(inputs.deliveriesQuery, ctx.query));
};

const deliveries = {
  find: [
    endpoint(
      'GET /webhooks/:id/deliveries',
      {
        ...byId,
        query: inputs.deliveriesQuery,
        response: outputs.pageOf(outputs.deliveryOutput),
        whole: true,
      },
      findDeliveries
    ),
    endpoint(
      'GET /webhook-deliveries',
      { query: inputs.logQuery, response: outputs.logOutput, whole: true },
      findDeliveries
    ),
  ],
};

const oneDelivery = {
  findOne: endpoint(
    'GET /webhook-deliveries/:id',
    { params: { id: z.string() }, response: outputs.deliveryOutput },
    ({ app, ctx }) => deliveryLog.getDelivery(app, String(ctx.params.id))
  ),
  retry: endpoint('POST /webhook-deliveries/:id/retry', ofDelivery, async ({ app, ctx, id }) =>
    shownTo(app, ctx, await deliveryLog.retryNow(app, id('Delivery')))
  ),
  skip: moving('skip'),
  release: moving('release'),
};

const changing = (action: string, state: 'paused' | 'running' | 'cancelled') =>
  endpoint(`POST /webhook-recoveries/:id/${action}`, ofRecovery, ({ app, id }) =>
    sendingAgain.changeRecovery(app, id('Recovery'), state)
  );

const recoveries = {
  find: endpoint(
    'GET /webhook-recoveries',
    { query: listQuery, response: outputs.pageOf(outputs.recoveryOutput), whole: true },
    ({ app, query }) => sendingAgain.listRecoveries(app, query())
  ),
  create: endpoint(
    'POST /webhook-recoveries',
    { body: inputs.recoveryInput, response: outputs.recoveryOutput, status: 201 },
    ({ app, body }) => {
      const { filter, preview_id: preview } = body();
      return filter
        ? sendingAgain.startRecovery(app, filter)
        : sendingAgain.startPreview(app, preview!);
    }
  ),
  preview: endpoint(
    'POST /webhook-recoveries/preview',
    { body: inputs.recoveryPreviewInput, response: outputs.recoveryPreviewOutput },
    async ({ app, ctx, body }) => {
      const preview = await sendingAgain.previewRecovery(app, body().filter);
      return (await maySee(app, ctx, 'deliveries')) ? preview : { ...preview, sample: [] };
    }
  ),
  findOne: endpoint('GET /webhook-recoveries/:id', ofRecovery, ({ app, id }) =>
    sendingAgain.getRecovery(app, id('Recovery'))
  ),
  pause: changing('pause', 'paused'),
  resume: changing('resume', 'running'),
  cancel: changing('cancel', 'cancelled'),
};

const table: Endpoints[] = [
  {
    webhooks: {
      find: endpoint(
        'GET /webhooks',
        {
          query: inputs.webhooksQuery,
          response: outputs.pageOf(outputs.listedWebhookOutput),
          whole: true,
        },
        ({ app, query }) => new WebhooksService(app).list(query())
      ),
      create: endpoint(
        'POST /webhooks',
        {
          may: 'webhooks.create',
          body: inputs.createWebhookInput,
          response: outputs.webhookWithSecretOutput,
          status: 201,
        },
        async ({ app, ctx }) => {
          const rules = webhookRules(app);
          const input = await parseWithRules(inputs.createWebhookInput, ctx.request.body, rules);
          forbidStoring(ctx);
          return new WebhooksService(app).create(input);
        }
      ),
    },
    // These before `/webhooks/:id`, which would take "events" for an id.
    'webhook-events': {
      find: endpoint(
        'GET /webhooks/events',
        {
          query: z.object(viewQuery),
          response: z.object({ data: z.array(outputs.eventOutput) }),
          whole: true,
        },
        async ({ app, query }) => {
          const events = await chooseableEvents(app);
          return { data: query().view === 'summary' ? events.map(summaryOfEvent) : events };
        }
      ),
    },
    journal: {
      find: endpoint(
        'GET /webhooks/journal',
        {
          may: 'journal.read',
          query: inputs.journalQuery,
          response: outputs.journalOutput,
          whole: true,
        },
        async ({ app, ctx, query }) => {
          const input = query();
          if (app.options.webhooks.journalDays === 0) return NO_JOURNAL;
          const { envelopes, last } = await readJournal(app, input);
          // Envelopes are kept as text; reading them only to write them again would hold the event loop.
          ctx.type = 'application/json';
          return `{"data":[${envelopes.join(',')}],"next_cursor":"${last}"}`;
        }
      ),
    },
  },
  { webhooks, deliveries },
  {
    // Before `/webhook-deliveries/:id`, which would take "causes" for an id.
    'delivery-causes': {
      find: endpoint(
        'GET /webhook-deliveries/causes',
        { query: inputs.causesQuery, response: outputs.causesOutput, whole: true },
        ({ app, query }) => deliveryLog.readCauses(app, query())
      ),
    },
    deliveries: oneDelivery,
    recoveries,
  },
];

/** The action that a route of the panel needs if it does not name one itself. */
const ACTION_OF = {
  GET: 'webhooks.read',
  POST: 'webhooks.update',
  PUT: 'webhooks.update',
  PATCH: 'webhooks.update',
  DELETE: 'webhooks.delete',
} as const;

const adminName = (name: string): string =>
  name.replace(/^(webhooks|deliveries|recoveries)(?=\.|$)/, '$1-admin');

export const routes: FeatureRoutes = {
  crm: contentRoutes(table, 'webhooks'),
  admin: handledBy(table).map(([handler, { method, path, request, may }]) => {
    const actions = may.length > 0 ? may : [ACTION_OF[method]];
    return {
      method,
      path,
      handler: adminName(handler),
      request,
      config: { policies: [...adminPolicies(...actions), requireModule('webhooks')] },
    };
  }),
};

/** Routes that answer alike in both APIs have one name in both. */
export const controllers = {
  ...controllersOf(table, inData, adminName),
  ...controllersOf(table, (value) => value),
};
