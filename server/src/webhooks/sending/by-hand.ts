import type { Core } from '@strapi/strapi';
import { errors } from '@strapi/utils';
import type { ModuleId } from '../../../../shared/contracts/modules';
import type { TestResult } from '../../../../shared/contracts/webhooks';
import { currentExecutor, table } from '../../database/connection';
import { getModules } from '../../modules';
import { debugLog } from '../../runtime/debug-log';
import { claimedLine, queuedLine } from '../debug-lines';
import { freezeEnvelope } from '../publish';
import { thinEvent } from '../rules/thin';
import { uuidV7 } from '../rules/uuid-v7';
import { declaredEvents, PING } from '../catalogue';
import { type WebhookRow, WEBHOOKS_TABLE } from '../tables';
import { moduleHolding } from './modules-off';
import { recordAttempts, tellDelivered } from './record';
import type { AttemptResult, Sender } from './send';
import { findDelivery } from '../deliveries/log';
import { getDeliveryStore, type LeasedDelivery } from '../deliveries/store';

/**
 * Why a delivery is not sent again: an attempt of it is under way, it belongs to another site, which
 * alone may send it, or the module of its event, named here, is switched off.
 */
export type RetryRefusal = 'held' | 'foreign' | { off: ModuleId };

const missing = () => new errors.NotFoundError('Delivery not found');

/** NotFoundError (404) where there is no such webhook. */
export const webhookRow = async (strapi: Core.Strapi, id: number): Promise<WebhookRow> => {
  const executor = await currentExecutor(strapi);
  const row = (await table(strapi, executor, WEBHOOKS_TABLE).where({ id }).first()) as
    WebhookRow | undefined;
  if (!row) throw new errors.NotFoundError('Webhook not found');
  return row;
};

/**
 * Whether a delivery may be sent by hand, whichever process would do it.
 * @returns null where it may. NotFoundError (404) for an unknown id.
 */
export const judgeRetry = async (strapi: Core.Strapi, id: number): Promise<RetryRefusal | null> => {
  const delivery = await findDelivery(strapi, id);
  if (!delivery) throw missing();
  if (delivery.foreign) return 'foreign';
  const enabled = await getModules(strapi).enabled();
  const module = await moduleHolding(strapi, delivery.event, enabled);
  return module ? { off: module } : null;
};

const attemptNow = async (
  strapi: Core.Strapi,
  sender: Sender,
  lease: LeasedDelivery
): Promise<AttemptResult> => {
  const webhook = await webhookRow(strapi, lease.group);
  const result = await sender.attempt(lease.delivery, webhook, true);
  await recordAttempts(strapi, [{ lease, webhook, result }], (recorded) =>
    tellDelivered(strapi, recorded)
  );
  return result;
};

/**
 * Makes one attempt of a delivery, now and from this process, and records it.
 * @returns null once the attempt is recorded. NotFoundError (404) for an unknown id.
 */
export const retryNow = async (
  strapi: Core.Strapi,
  sender: Sender,
  id: number
): Promise<RetryRefusal | null> => {
  const refusal = await judgeRetry(strapi, id);
  if (refusal) return refusal;
  const lease = await getDeliveryStore(strapi).claimOne(id);
  if (lease === 'absent') throw missing();
  if (lease === 'held') return 'held';
  debugLog(strapi)?.(claimedLine(lease));
  await attemptNow(strapi, sender, lease);
  return null;
};

const exampleOf = async (strapi: Core.Strapi, { id, payload }: WebhookRow, event: string) => {
  if (event === PING) {
    return { webhook_id: Number(id), message: 'This is a test from Switchboard.' };
  }
  const example = (await declaredEvents(strapi))[event]?.example ?? {};
  return payload === 'thin' ? thinEvent(event, example) : example;
};

/**
 * Sends a `ping`, or an event's example, now and from this process; logged, never tried again, also
 * while the webhook is inactive. NotFoundError (404) where there is no such webhook.
 */
export const testNow = async (
  strapi: Core.Strapi,
  sender: Sender,
  webhookId: number,
  event: string
): Promise<TestResult> => {
  const webhook = await webhookRow(strapi, webhookId);
  const data = await exampleOf(strapi, webhook, event);
  const store = getDeliveryStore(strapi);
  const at = store.now();
  const deliveryId = uuidV7(at);
  const delivery = {
    deliveryId,
    webhook: Number(webhook.id),
    url: webhook.url,
    event,
    body: freezeEnvelope(strapi, { deliveryId, event, at, data }),
    at,
    isTest: true,
  };
  const lease = await store.insertLeased(delivery);
  debugLog(strapi)?.(queuedLine(delivery));
  const { ok, attempt } = await attemptNow(strapi, sender, lease);
  return {
    ok,
    response_code: attempt.answer?.status ?? null,
    error: attempt.error,
    duration_ms: attempt.duration_ms,
    delivery_id: deliveryId,
  };
};
