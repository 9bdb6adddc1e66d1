import type { Core } from '@strapi/strapi';
import { errors } from '@strapi/utils';
import type { Delivery, Page, TestResult } from '../../../../shared/contracts/webhooks';
import { currentExecutor, table } from '../../database/connection';
import { debugLog } from '../../runtime/debug-log';
import { getModules, moduleName } from '../../modules';
import { fieldError } from '../../http/validation';
import { moduleHolding } from '../delivering/held-back';
import { recordAttempts, tellDelivered } from '../delivering/record';
import { getSender } from '../delivering/running';
import type { AttemptResult } from '../delivering/sender';
import { findDelivery, listDeliveries, showDelivery } from '../delivering/store/delivery-log';
import { getDeliveryStore, type LeasedDelivery } from '../delivering/store/delivery-store';
import { claimedLine, queuedLine } from '../debug-lines';
import { freezeEnvelope } from '../publishing/publisher';
import { uuidV7 } from '../rules/uuid-v7';
import { declaredEvents, PING } from '../subscriptions/catalogue';
import { type WebhookRow, WEBHOOKS_TABLE } from '../tables';
import type { DeliveriesQuery } from './inputs';
import { webhookRules } from './webhook-rules';

/** The log of deliveries, and sending by hand; docs/contract-webhooks.md#management-routes. */
export interface DeliveriesService {
  /** Newest first. NotFoundError (404) where there is no such webhook. */
  list(webhookId: number, query: DeliveriesQuery): Promise<Page<Delivery>>;
  get(id: number): Promise<Delivery>;
  /**
   * Sends a delivery again now and answers with it as it is afterwards; `held` where an attempt of
   * it is under way, `off` with the module's name where the module of its event is switched off,
   * `foreign` where it belongs to another site, which alone may send it.
   * NotFoundError (404) for an unknown id.
   */
  retry(id: number): Promise<Delivery | 'held' | 'foreign' | { off: string }>;
  /** Sends a `ping`, or an event's example, now; logged, never retried, also while inactive. */
  test(webhookId: number, event?: string): Promise<TestResult>;
}

export const createDeliveriesService = ({ strapi }: { strapi: Core.Strapi }): DeliveriesService => {
  const webhookRow = async (id: number): Promise<WebhookRow> => {
    const executor = await currentExecutor(strapi);
    const row = (await table(strapi, executor, WEBHOOKS_TABLE).where({ id }).first()) as
      WebhookRow | undefined;
    if (!row) throw new errors.NotFoundError('Webhook not found');
    return row;
  };

  const shown = async (id: number): Promise<Delivery> => {
    const delivery = await showDelivery(strapi, id);
    if (!delivery) throw new errors.NotFoundError('Delivery not found');
    return delivery;
  };

  const attemptNow = async (lease: LeasedDelivery): Promise<AttemptResult> => {
    const webhook = await webhookRow(lease.group);
    const result = await getSender(strapi).attempt(lease.delivery, webhook, true);
    await recordAttempts(strapi, [{ lease, webhook, result }], (recorded) =>
      tellDelivered(strapi, recorded)
    );
    return result;
  };

  const startTest = async (
    webhook: WebhookRow,
    event: string,
    data: unknown
  ): Promise<LeasedDelivery> => {
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
    return lease;
  };

  return {
    async list(webhookId, { status, event, ...page }) {
      await webhookRow(webhookId);
      return listDeliveries(strapi, { webhook: webhookId, status, event }, page);
    },

    get: shown,

    async retry(id) {
      const delivery = await findDelivery(strapi, id);
      if (!delivery) throw new errors.NotFoundError('Delivery not found');
      if (delivery.foreign) return 'foreign';
      const module = await moduleHolding(
        strapi,
        delivery.event,
        await getModules(strapi).enabled()
      );
      if (module) return { off: moduleName(module) };
      const lease = await getDeliveryStore(strapi).claimOne(id);
      if (lease === 'absent') throw new errors.NotFoundError('Delivery not found');
      if (lease === 'held') return 'held';
      debugLog(strapi)?.(claimedLine(lease));
      await attemptNow(lease);
      return shown(id);
    },

    async test(webhookId, event = PING) {
      const webhook = await webhookRow(webhookId);
      const wrong = await webhookRules(strapi).events?.([event]);
      if (wrong) throw fieldError('event', wrong);
      const declared = await declaredEvents(strapi);
      const data =
        event === PING
          ? { webhook_id: webhookId, message: 'This is a test from Switchboard.' }
          : (declared[event]?.example ?? {});
      const lease = await startTest(webhook, event, data);
      const { ok, attempt } = await attemptNow(lease);
      return {
        ok,
        response_code: attempt.answer?.status ?? null,
        error: attempt.error,
        duration_ms: attempt.duration_ms,
        delivery_id: lease.delivery.deliveryId,
      };
    },
  };
};
