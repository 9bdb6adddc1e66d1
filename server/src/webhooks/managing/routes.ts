import { errors, z } from '@strapi/utils';
import type { Context } from 'koa';
import type { Delivery, Recovery } from '../../../../shared/contracts/webhooks';
import { adminPolicies, inData } from '../../access/admin-actions';
import { maySee } from '../../access/current-admin-user';
import type { App } from '../../app';
import type { FeatureRoutes } from '../../feature';
import { conflict, controllersOf, endpoint, type Endpoints, handledBy } from '../../http/endpoint';
import { forbidStoring } from '../../http/guarded-route';
import { listQuery } from '../../http/pagination';
import { idFromPath, parseInput, parseWithRules } from '../../http/validation';
import { requireModule } from '../../modules';
import { moduleName } from '../../modules/modules';
import { codeOf, type Refusal, refusal } from '../../runtime/refusal';
import { chooseableEvents } from '../catalogue';
import { isDeliveryId } from '../deliveries/log-filter';
import { readJournal } from '../journal';
import type { Unsent } from './by-hand';
import {
  DeliveriesService,
  judgeTriedEvent,
  previewFilter,
  type Unmoved,
} from './deliveries-service';
import {
  causesQuery,
  createWebhookInput,
  deliveriesQuery,
  filterPreviewInput,
  journalQuery,
  logQuery,
  recoveryInput,
  recoveryPreviewInput,
  replayInput,
  rotateInput,
  testInput,
  updateWebhookInput,
  webhooksQuery,
} from './inputs';
import {
  causesOutput,
  deliveryOutput,
  eventOutput,
  filterPreviewOutput,
  journalOutput,
  logOutput,
  pageOf,
  recoveryOutput,
  recoveryPreviewOutput,
  replayOutput,
  revealedSecretOutput,
  secretOutput,
  testOutput,
  webhookOutput,
  webhookWithSecretOutput,
} from './outputs';
import { RecoveriesService, type RecoveryRefusal, replay } from './recoveries-service';
import { webhookRules, WebhooksService } from './webhooks-service';

/** The table of docs/contract-webhooks.md#management-routes: what each route takes, answers and does. */

const UNSENT: Readonly<Record<Unsent['unsent'], Refusal>> = {
  'nobody sends': refusal(
    'This process does not send, and no other one took this over: nothing was sent. Start "switchboard worker", or set webhooks.dispatch on one of the nodes.',
    'nobody_sends'
  ),
  'no answer': refusal(
    'Another process took this over and has not said what came of it; the log of deliveries will.',
    'no_answer'
  ),
};
const UNDER_WAY = refusal(
  'An attempt of this delivery is under way. Try again when it has ended.',
  'under_way'
);
const FOREIGN = refusal(
  'This delivery came from another site, and is not sent from here.',
  'foreign'
);
const UNMOVED: Readonly<Record<Unmoved, Refusal>> = {
  finished: refusal('This delivery is finished: nothing waits for it.', 'finished'),
  held: UNDER_WAY,
};
const RECOVERY_REFUSALS: Readonly<Record<RecoveryRefusal, Refusal>> = {
  used: refusal('This preview was started before. Make another one.', 'preview_used'),
  ended: refusal('This recovery has ended.', 'recovery_ended'),
};
const JOURNAL_NEEDED =
  'A replay sends what the journal holds, so it needs the action journal.find.';
const NO_JOURNAL = refusal(
  'The journal is off: set webhooks.journalDays in the options of the plugin to the days for which events are to be kept.',
  'no_journal'
);

/** Answers 503: it was not sent, or nobody says what came of it. */
const unsent = (ctx: Context, { unsent: why }: Unsent): void =>
  ctx.serviceUnavailable(UNSENT[why].message, codeOf(UNSENT[why]));

/** A delivery as the caller may see it: a user who may send it again need not be allowed to read it. */
const shownTo = async (app: App, ctx: Context, delivery: Delivery): Promise<Delivery> => {
  if (await maySee(app, ctx, 'deliveries')) return delivery;
  const request = { url: '', headers: {}, body: '' };
  return { ...delivery, subject: null, request, answer: null, attempts: [] };
};

const byId = { params: { id: z.string().regex(/^[1-9]\d*$/) } };

const webhooks = {
  findOne: endpoint(
    'GET /webhooks/:id',
    { ...byId, response: webhookWithSecretOutput },
    async ({ app, ctx, id }) => {
      const webhook = id('Webhook');
      if (!(await maySee(app, ctx, 'secrets'))) return new WebhooksService(app).get(webhook);
      forbidStoring(ctx);
      return new WebhooksService(app).reveal(webhook);
    }
  ),
  update: ['PUT', 'PATCH'].map((method) =>
    endpoint(
      `${method} /webhooks/:id`,
      { ...byId, body: updateWebhookInput, response: webhookOutput },
      async ({ app, ctx, id }) => {
        const service = new WebhooksService(app);
        const before = await service.get(id('Webhook'));
        const rules = webhookRules(app, before);
        const input = await parseWithRules(updateWebhookInput, ctx.request.body, rules);
        const mayMoveHeaders = await maySee(app, ctx, 'secrets');
        return service.update(before.id, input, { mayMoveHeaders });
      }
    )
  ),
  delete: endpoint('DELETE /webhooks/:id', { ...byId, response: z.null() }, ({ app, id }) =>
    new WebhooksService(app).remove(id('Webhook'))
  ),
  test: endpoint(
    'POST /webhooks/:id/test',
    { ...byId, body: testInput, response: testOutput },
    async ({ app, ctx, id, body }) => {
      const { event } = body();
      const result = await new DeliveriesService(app).test(id('Webhook'), event);
      return 'unsent' in result ? unsent(ctx, result) : result;
    }
  ),
  revealSecret: endpoint(
    'GET /webhooks/:id/secret',
    { ...byId, may: 'webhooks.reveal', response: revealedSecretOutput },
    async ({ app, ctx, id }) => {
      const { secret } = await new WebhooksService(app).reveal(id('Webhook'));
      forbidStoring(ctx);
      return { secret };
    }
  ),
  rotateSecret: endpoint(
    'POST /webhooks/:id/secret',
    { ...byId, body: rotateInput, response: secretOutput },
    async ({ app, ctx, id, body }) => {
      const [webhook, overlap] = [id('Webhook'), body()];
      forbidStoring(ctx);
      return new WebhooksService(app).rotateSecret(webhook, overlap);
    }
  ),
  previewFilter: endpoint(
    'POST /webhooks/:id/filter/preview',
    { ...byId, body: filterPreviewInput, response: filterPreviewOutput },
    async ({ app, ctx, id }) => {
      const webhook = await new WebhooksService(app).get(id('Webhook'));
      const mayRead = await maySee(app, ctx, 'deliveries');
      const input = await parseWithRules(filterPreviewInput, ctx.request.body, {
        filter: webhookRules(app).filter,
        event: (name) => judgeTriedEvent(app, webhook, name, mayRead),
      });
      return previewFilter(app, webhook, input, mayRead);
    }
  ),
  replay: endpoint(
    'POST /webhooks/:id/replay',
    // It sends what is in the journal.
    {
      ...byId,
      may: ['webhooks.update', 'journal.read'],
      body: replayInput,
      response: replayOutput,
    },
    async ({ app, ctx, id }) => {
      if (!(await maySee(app, ctx, 'journal'))) throw new errors.ForbiddenError(JOURNAL_NEEDED);
      const webhook = await new WebhooksService(app).get(id('Webhook'));
      const { events } = webhookRules(app, webhook);
      const input = await parseWithRules(replayInput, ctx.request.body, { events });
      if (app.options.webhooks.journalDays === 0) return conflict(ctx, NO_JOURNAL);
      ctx.status = input.dry_run ? 200 : 201;
      return replay(app, webhook, input);
    }
  ),
};

/** The id of its row, or the one that its receiver knows. */
const deliveryId = (ctx: Context): number | string =>
  isDeliveryId(String(ctx.params.id))
    ? String(ctx.params.id).toLowerCase()
    : idFromPath(ctx.params.id, 'Delivery');

/** Skips a delivery, or has later ones of its record pass it. */
const moving = (action: 'skip' | 'release') =>
  endpoint(
    `POST /webhook-deliveries/:id/${action}`,
    { ...byId, response: deliveryOutput },
    async ({ app, ctx, id }) => {
      const result = await new DeliveriesService(app)[action](id('Delivery'));
      return typeof result === 'string'
        ? conflict(ctx, UNMOVED[result])
        : shownTo(app, ctx, result);
    }
  );

/** One action for both logs: a user who may read that of every webhook may read them together. */
const findDeliveries = ({ app, ctx }: { app: App; ctx: Context }) => {
  const service = new DeliveriesService(app);
  if (ctx.params.id === undefined) return service.read(parseInput(logQuery, ctx.query));
  const webhook = idFromPath(ctx.params.id, 'Webhook');
  return service.list(webhook, parseInput(deliveriesQuery, ctx.query));
};

const deliveries = {
  find: [
    endpoint(
      'GET /webhooks/:id/deliveries',
      { ...byId, query: deliveriesQuery, response: pageOf(deliveryOutput), whole: true },
      findDeliveries
    ),
    endpoint(
      'GET /webhook-deliveries',
      { query: logQuery, response: logOutput, whole: true },
      findDeliveries
    ),
  ],
};

const oneDelivery = {
  findOne: endpoint(
    'GET /webhook-deliveries/:id',
    { params: { id: z.string() }, response: deliveryOutput },
    ({ app, ctx }) => new DeliveriesService(app).get(deliveryId(ctx))
  ),
  retry: endpoint(
    'POST /webhook-deliveries/:id/retry',
    { ...byId, response: deliveryOutput },
    async ({ app, ctx, id }) => {
      const result = await new DeliveriesService(app).retry(id('Delivery'));
      if (result === 'held') return conflict(ctx, UNDER_WAY);
      if (result === 'foreign') return conflict(ctx, FOREIGN);
      if ('unsent' in result) return unsent(ctx, result);
      if (!('off' in result)) return shownTo(app, ctx, result);
      const message = `The module ${moduleName(result.off)} is switched off: its events are not sent until it is on again.`;
      return conflict(ctx, refusal(message, 'module_off', { module: result.off }));
    }
  ),
  skip: moving('skip'),
  release: moving('release'),
};

const startedOr = (ctx: Context, recovery: Recovery | RecoveryRefusal) =>
  typeof recovery === 'string' ? conflict(ctx, RECOVERY_REFUSALS[recovery]) : recovery;

const changing = (action: 'pause' | 'resume' | 'cancel') =>
  endpoint(
    `POST /webhook-recoveries/:id/${action}`,
    { ...byId, response: recoveryOutput },
    async ({ app, ctx, id }) =>
      startedOr(ctx, await new RecoveriesService(app)[action](id('Recovery')))
  );

const recoveries = {
  find: endpoint(
    'GET /webhook-recoveries',
    { query: listQuery, response: pageOf(recoveryOutput), whole: true },
    ({ app, query }) => new RecoveriesService(app).list(query())
  ),
  create: endpoint(
    'POST /webhook-recoveries',
    { body: recoveryInput, response: recoveryOutput, status: 201 },
    async ({ app, ctx, body }) => {
      const { filter, preview_id: preview } = body();
      const service = new RecoveriesService(app);
      return startedOr(
        ctx,
        filter ? await service.start(filter) : await service.startPreview(preview!)
      );
    }
  ),
  preview: endpoint(
    'POST /webhook-recoveries/preview',
    { body: recoveryPreviewInput, response: recoveryPreviewOutput },
    async ({ app, ctx, body }) => {
      const preview = await new RecoveriesService(app).preview(body().filter);
      return (await maySee(app, ctx, 'deliveries')) ? preview : { ...preview, sample: [] };
    }
  ),
  findOne: endpoint(
    'GET /webhook-recoveries/:id',
    { ...byId, response: recoveryOutput },
    ({ app, id }) => new RecoveriesService(app).get(id('Recovery'))
  ),
  pause: changing('pause'),
  resume: changing('resume'),
  cancel: changing('cancel'),
};

const table: Endpoints[] = [
  {
    webhooks: {
      find: endpoint(
        'GET /webhooks',
        { query: webhooksQuery, response: pageOf(webhookOutput), whole: true },
        ({ app, query }) => new WebhooksService(app).list(query())
      ),
      create: endpoint(
        'POST /webhooks',
        {
          may: 'webhooks.create',
          body: createWebhookInput,
          response: webhookWithSecretOutput,
          status: 201,
        },
        async ({ app, ctx }) => {
          const input = await parseWithRules(
            createWebhookInput,
            ctx.request.body,
            webhookRules(app)
          );
          forbidStoring(ctx);
          return new WebhooksService(app).create(input);
        }
      ),
    },
    // These before `/webhooks/:id`, which would take "events" for an id.
    'webhook-events': {
      find: endpoint(
        'GET /webhooks/events',
        { response: z.object({ data: z.array(eventOutput) }), whole: true },
        async ({ app }) => ({ data: await chooseableEvents(app) })
      ),
    },
    journal: {
      find: endpoint(
        'GET /webhooks/journal',
        { may: 'journal.read', query: journalQuery, response: journalOutput, whole: true },
        async ({ app, ctx, query }) => {
          const input = query();
          if (app.options.webhooks.journalDays === 0) return conflict(ctx, NO_JOURNAL);
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
        { query: causesQuery, response: causesOutput, whole: true },
        ({ app, query }) => new DeliveriesService(app).causes(query())
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
  crm: handledBy(table).map(([handler, { method, path, request, response }]) => ({
    ...{ method, path, handler, request, response },
    config: { policies: [requireModule('webhooks')] },
  })),
  admin: handledBy(table).map(([handler, { method, path, request, may }]) => {
    const actions = may.length > 0 ? may : [ACTION_OF[method]];
    return {
      ...{ method, path, handler: adminName(handler), request },
      config: { policies: [...adminPolicies(...actions), requireModule('webhooks')] },
    };
  }),
};

/** Routes that answer alike in both APIs have one name in both. */
export const controllers = {
  ...controllersOf(table, inData, adminName),
  ...controllersOf(table, (value) => value),
};
