import type { Core } from '@strapi/strapi';
import type { Context } from 'koa';
import type { CodedRefusal } from '../../../../shared/contracts/refusals';
import type { Recovery } from '../../../../shared/contracts/webhooks';
import { mayReadDeliveries } from '../../access/may-reveal';
import type { ControllerFactory } from '../../http/controller';
import { idFromPath, parseInput } from '../../http/validation';
import { codeOf, type Refusal, refusal } from '../../runtime/refusal';
import { listQuery, recoveryInput, recoveryPreviewInput } from './inputs';
import type { RecoveriesService, RecoveryRefusal } from './recoveries-service';

/** The host adds a method for each HTTP error to koa's context. */
type HostContext = Context & { conflict(message: string, details: CodedRefusal): void };

const REFUSALS: Readonly<Record<RecoveryRefusal, Refusal>> = {
  used: refusal('This preview was started before. Make another one.', 'preview_used'),
  ended: refusal('This recovery has ended.', 'recovery_ended'),
};

const recoveriesOf = (strapi: Core.Strapi): RecoveriesService =>
  strapi.service('plugin::switchboard.recoveries') as unknown as RecoveriesService;

/** @param shape how a single object is put into an answer */
export const createRecoveriesController =
  (shape: (value: unknown) => unknown): ControllerFactory<HostContext> =>
  ({ strapi }) => {
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
        ctx.body = await recoveriesOf(strapi).list(parseInput(listQuery, ctx.query));
      },
      async findOne(ctx) {
        ctx.body = shape(await recoveriesOf(strapi).get(recoveryId(ctx)));
      },
      async preview(ctx) {
        const { filter } = parseInput(recoveryPreviewInput, ctx.request.body);
        const preview = await recoveriesOf(strapi).preview(filter);
        const mayRead = await mayReadDeliveries(strapi, ctx);
        ctx.body = shape(mayRead ? preview : { ...preview, sample: [] });
      },
      async create(ctx) {
        const { filter, preview_id: id } = parseInput(recoveryInput, ctx.request.body);
        const service = recoveriesOf(strapi);
        answer(ctx, filter ? await service.start(filter) : await service.startPreview(id!), 201);
      },
      async pause(ctx) {
        answer(ctx, await recoveriesOf(strapi).pause(recoveryId(ctx)));
      },
      async resume(ctx) {
        answer(ctx, await recoveriesOf(strapi).resume(recoveryId(ctx)));
      },
      async cancel(ctx) {
        answer(ctx, await recoveriesOf(strapi).cancel(recoveryId(ctx)));
      },
    };
  };
