import type { Context } from 'koa';
import { errors } from '@strapi/utils';
import type { CodedRefusal } from '../../../../shared/contracts/refusals';
import type { Delivery, Recovery } from '../../../../shared/contracts/webhooks';
import {
  mayReadDeliveries,
  mayReadJournal,
  mayRevealSecrets,
} from '../../access/current-admin-user';
import { type ControllerFactory, forbidStoring } from '../../http/guarded-route';
import { idFromPath, parseInput, parseWithRules } from '../../http/validation';
import { moduleName } from '../../modules/modules';
import { codeOf, type Refusal, refusal } from '../../runtime/refusal';
import { chooseableEvents } from '../catalogue';
import { isDeliveryId } from '../deliveries/log-query';
import { hasJournal, readJournal } from '../journal';
import {
  type DeliveriesService,
  judgeTriedEvent,
  previewFilter,
  type Unmoved,
} from './deliveries-service';
import type { Unsent } from '../sending/by-hand';
import {
  causesQuery,
  createWebhookInput,
  deliveriesQuery,
  filterPreviewInput,
  journalQuery,
  listQuery,
  logQuery,
  recoveryInput,
  recoveryPreviewInput,
  replayInput,
  rotateInput,
  testInput,
  updateWebhookInput,
  webhooksQuery,
} from './inputs';
import { type RecoveriesService, type RecoveryRefusal, replay } from './recoveries-service';
import { webhookRules, type WebhooksService } from './webhooks-service';
import { type App, appOf } from '../../app';

const REFUSALS: Readonly<Record<RecoveryRefusal, Refusal>> = {
  used: refusal('This preview was started before. Make another one.', 'preview_used'),
  ended: refusal('This recovery has ended.', 'recovery_ended'),
};

const recoveriesOf = (app: App): RecoveriesService =>
  app.strapi.service('plugin::switchboard.recoveries') as unknown as RecoveriesService;

/** @param shape how a single object is put into an answer */
const createRecoveriesController =
  (shape: (value: unknown) => unknown): ControllerFactory<HostContext> =>
  ({ strapi }) => {
    const app = appOf(strapi);
    const answer = (ctx: HostContext, recovery: Recovery | RecoveryRefusal, status = 200): void => {
      if (typeof recovery === 'string') {
        const wrong = REFUSALS[recovery];
        ctx.conflict(wrong.message, codeOf(wrong));
        return;
      }
      ctx.body = shape(recovery);
      ctx.status = status;
    };
    const recoveryId = (ctx: Context): number => idFromPath(ctx.params.id, 'Recovery');

    return {
      async find(ctx) {
        ctx.body = await recoveriesOf(app).list(parseInput(listQuery, ctx.query));
      },
      async findOne(ctx) {
        ctx.body = shape(await recoveriesOf(app).get(recoveryId(ctx)));
      },
      async preview(ctx) {
        const { filter } = parseInput(recoveryPreviewInput, ctx.request.body);
        const preview = await recoveriesOf(app).preview(filter);
        const mayRead = await mayReadDeliveries(app, ctx);
        ctx.body = shape(mayRead ? preview : { ...preview, sample: [] });
      },
      async create(ctx) {
        const { filter, preview_id: id } = parseInput(recoveryInput, ctx.request.body);
        const service = recoveriesOf(app);
        answer(ctx, filter ? await service.start(filter) : await service.startPreview(id!), 201);
      },
      async pause(ctx) {
        answer(ctx, await recoveriesOf(app).pause(recoveryId(ctx)));
      },
      async resume(ctx) {
        answer(ctx, await recoveriesOf(app).resume(recoveryId(ctx)));
      },
      async cancel(ctx) {
        answer(ctx, await recoveriesOf(app).cancel(recoveryId(ctx)));
      },
    };
  };

/** The host adds a method for each HTTP error to koa's context. */
type HostContext = Context & {
  conflict(message: string, details: CodedRefusal): void;
  serviceUnavailable(message: string, details: CodedRefusal): void;
};

const UNDER_WAY = refusal(
  'An attempt of this delivery is under way. Try again when it has ended.',
  'under_way'
);
const FOREIGN = refusal(
  'This delivery came from another site, and is not sent from here.',
  'foreign'
);

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

const UNMOVED: Readonly<Record<Unmoved, Refusal>> = {
  finished: refusal('This delivery is finished: nothing waits for it.', 'finished'),
  held: UNDER_WAY,
};
const JOURNAL_NEEDED =
  'A replay sends what the journal holds, so it needs the action journal.find.';
const NO_JOURNAL = refusal(
  'The journal is off: set webhooks.journalDays in the options of the plugin to the days for which events are to be kept.',
  'no_journal'
);

const conflict = (ctx: HostContext, wrong: Refusal): void =>
  ctx.conflict(wrong.message, codeOf(wrong));
const unavailable = (ctx: HostContext, wrong: Refusal): void =>
  ctx.serviceUnavailable(wrong.message, codeOf(wrong));

/** How a single object is put into an answer: bare for the CRM API, in `data` for the admin. */
type Shape = (value: unknown) => unknown;
const bare: Shape = (value) => value;
const inData: Shape = (data) => ({ data });

/** A delivery without what was sent, answered and said of its record. */
const withoutData = (delivery: Delivery): Delivery => ({
  ...delivery,
  subject: null,
  request: { url: '', headers: {}, body: '' },
  answer: null,
  attempts: [],
});

/** As whoever asks may see it: who may send it again need not be allowed to read it. */
const shownTo = async (app: App, ctx: Context, delivery: Delivery): Promise<Delivery> =>
  (await mayReadDeliveries(app, ctx)) ? delivery : withoutData(delivery);

const webhooksOf = (app: App): WebhooksService =>
  app.strapi.service('plugin::switchboard.webhooks') as unknown as WebhooksService;
const deliveriesOf = (app: App): DeliveriesService =>
  app.strapi.service('plugin::switchboard.deliveries') as unknown as DeliveriesService;
/** The id of its row, or the one that its receiver knows. */
const deliveryId = (ctx: Context): number | string =>
  isDeliveryId(String(ctx.params.id))
    ? String(ctx.params.id).toLowerCase()
    : idFromPath(ctx.params.id, 'Delivery');
const webhookId = (ctx: Context): number => idFromPath(ctx.params.id, 'Webhook');

const webhooks =
  (shape: Shape): ControllerFactory<HostContext> =>
  ({ strapi }) => {
    const app = appOf(strapi);
    return {
      async find(ctx) {
        ctx.body = await webhooksOf(app).list(parseInput(webhooksQuery, ctx.query));
      },
      async findOne(ctx) {
        const id = webhookId(ctx);
        if (!(await mayRevealSecrets(app, ctx))) {
          ctx.body = shape(await webhooksOf(app).get(id));
          return;
        }
        forbidStoring(ctx);
        ctx.body = shape(await webhooksOf(app).reveal(id));
      },
      async revealSecret(ctx) {
        const { secret } = await webhooksOf(app).reveal(webhookId(ctx));
        forbidStoring(ctx);
        ctx.body = shape({ secret });
      },
      async create(ctx) {
        const input = await parseWithRules(createWebhookInput, ctx.request.body, webhookRules(app));
        forbidStoring(ctx);
        ctx.body = shape(await webhooksOf(app).create(input));
        ctx.status = 201;
      },
      async update(ctx) {
        const before = await webhooksOf(app).get(webhookId(ctx));
        const input = await parseWithRules(
          updateWebhookInput,
          ctx.request.body,
          webhookRules(app, before)
        );
        const mayMoveHeaders = await mayRevealSecrets(app, ctx);
        ctx.body = shape(await webhooksOf(app).update(before.id, input, { mayMoveHeaders }));
      },
      async delete(ctx) {
        await webhooksOf(app).remove(webhookId(ctx));
        ctx.status = 204;
      },
      async test(ctx) {
        const { event } = parseInput(testInput, ctx.request.body);
        const result = await deliveriesOf(app).test(webhookId(ctx), event);
        if ('unsent' in result) unavailable(ctx, UNSENT[result.unsent]);
        else ctx.body = shape(result);
      },
      async rotateSecret(ctx) {
        const id = webhookId(ctx);
        const overlap = parseInput(rotateInput, ctx.request.body);
        forbidStoring(ctx);
        ctx.body = shape(await webhooksOf(app).rotateSecret(id, overlap));
      },
      async previewFilter(ctx) {
        const webhook = await webhooksOf(app).get(webhookId(ctx));
        const mayRead = await mayReadDeliveries(app, ctx);
        const input = await parseWithRules(filterPreviewInput, ctx.request.body, {
          filter: webhookRules(app).filter,
          event: (name) => judgeTriedEvent(app, webhook, name, mayRead),
        });
        ctx.body = shape(await previewFilter(app, webhook, input, mayRead));
      },
      async replay(ctx) {
        if (!(await mayReadJournal(app, ctx))) throw new errors.ForbiddenError(JOURNAL_NEEDED);
        const webhook = await webhooksOf(app).get(webhookId(ctx));
        const { events: known } = webhookRules(app, webhook);
        const input = await parseWithRules(replayInput, ctx.request.body, { events: known });
        if (!hasJournal(app)) {
          conflict(ctx, NO_JOURNAL);
          return;
        }
        ctx.body = shape(await replay(app, webhook, input));
        ctx.status = input.dry_run ? 200 : 201;
      },
    };
  };

const deliveries =
  (shape: Shape): ControllerFactory<HostContext> =>
  ({ strapi }) => {
    const app = appOf(strapi);
    return {
      /** One action for both logs: whoever may read that of every webhook may read them together. */
      async find(ctx) {
        ctx.body =
          ctx.params.id === undefined
            ? await deliveriesOf(app).read(parseInput(logQuery, ctx.query))
            : await deliveriesOf(app).list(webhookId(ctx), parseInput(deliveriesQuery, ctx.query));
      },
      async findOne(ctx) {
        ctx.body = shape(await deliveriesOf(app).get(deliveryId(ctx)));
      },
      async retry(ctx) {
        const delivery = await deliveriesOf(app).retry(idFromPath(ctx.params.id, 'Delivery'));
        if (delivery === 'held') {
          conflict(ctx, UNDER_WAY);
          return;
        }
        if (delivery === 'foreign') {
          conflict(ctx, FOREIGN);
          return;
        }
        if ('unsent' in delivery) {
          unavailable(ctx, UNSENT[delivery.unsent]);
          return;
        }
        if ('off' in delivery) {
          const off = moduleName(delivery.off);
          const message = `The module ${off} is switched off: its events are not sent until it is on again.`;
          conflict(ctx, refusal(message, 'module_off', { module: delivery.off }));
          return;
        }
        ctx.body = shape(await shownTo(app, ctx, delivery));
      },
      async skip(ctx) {
        const id = idFromPath(ctx.params.id, 'Delivery');
        const result = await deliveriesOf(app).skip(id);
        if (typeof result === 'string') conflict(ctx, UNMOVED[result]);
        else ctx.body = shape(await shownTo(app, ctx, result));
      },
      async release(ctx) {
        const id = idFromPath(ctx.params.id, 'Delivery');
        const result = await deliveriesOf(app).release(id);
        if (typeof result === 'string') conflict(ctx, UNMOVED[result]);
        else ctx.body = shape(await shownTo(app, ctx, result));
      },
    };
  };

const causes: ControllerFactory<HostContext> = ({ strapi }) => {
  const app = appOf(strapi);
  return {
    async find(ctx) {
      ctx.body = await deliveriesOf(app).causes(parseInput(causesQuery, ctx.query));
    },
  };
};

const events: ControllerFactory<HostContext> = ({ strapi }) => {
  const app = appOf(strapi);
  return {
    async find(ctx) {
      ctx.body = { data: await chooseableEvents(app) };
    },
  };
};

const journal: ControllerFactory<HostContext> = ({ strapi }) => {
  const app = appOf(strapi);
  return {
    async find(ctx) {
      const query = parseInput(journalQuery, ctx.query);
      if (!hasJournal(app)) {
        conflict(ctx, NO_JOURNAL);
        return;
      }
      const { envelopes, last } = await readJournal(app, query);
      // Envelopes are kept as text; reading them only to write them again would hold the event loop.
      ctx.type = 'application/json';
      ctx.body = `{"data":[${envelopes.join(',')}],"next_cursor":"${last}"}`;
    },
  };
};

export const controllers = {
  webhooks: webhooks(bare),
  'webhooks-admin': webhooks(inData),
  deliveries: deliveries(bare),
  'deliveries-admin': deliveries(inData),
  'delivery-causes': causes,
  recoveries: createRecoveriesController(bare),
  'recoveries-admin': createRecoveriesController(inData),
  'webhook-events': events,
  journal,
};
