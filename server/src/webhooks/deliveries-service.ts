import type { Core } from '@strapi/strapi';
import { errors } from '@strapi/utils';
import type { Knex } from 'knex';
import type { Delivery, Page, TestResult } from '../../../shared/contracts/webhooks';
import { getOptions } from '../config';
import { currentExecutor, inTransaction, table } from '../database/connection';
import { countUpToLimit, paginationMeta } from '../pagination';
import type { Claimed } from '../queue/types';
import { fieldError } from '../validation';
import { declaredEvents, PING } from './catalogue';
import type { DeliveriesQuery } from './inputs';
import { getOutbox, leaseTimes } from './outbox';
import { freezeEnvelope, newDelivery } from './publisher';
import { recordAttempts, tellDelivered } from './record';
import { uuidV7 } from './rules/uuid-v7';
import { getSender } from './running';
import type { AttemptResult } from './sender';
import { toDelivery, toWebhook } from './serialize';
import { DELIVERIES_TABLE, type DeliveryRow, type WebhookRow, WEBHOOKS_TABLE } from './tables';

/** The log of deliveries, and sending by hand; specification 1, Endpoints. */
export interface DeliveriesService {
  /** Newest first. NotFoundError (404) where there is no such webhook. */
  list(webhookId: number, query: DeliveriesQuery): Promise<Page<Delivery>>;
  get(id: number): Promise<Delivery>;
  /**
   * Sends a delivery again now and answers with it as it is afterwards; `held` where an attempt of
   * it is under way. NotFoundError (404) for an unknown id.
   */
  retry(id: number): Promise<Delivery | 'held'>;
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

  const deliveryRow = async (where: Partial<DeliveryRow>): Promise<DeliveryRow> => {
    const executor = await currentExecutor(strapi);
    const row = (await table(strapi, executor, DELIVERIES_TABLE).where(where).first()) as
      DeliveryRow | undefined;
    if (!row) throw new errors.NotFoundError('Delivery not found');
    return row;
  };

  const attemptNow = async (claimed: Claimed): Promise<AttemptResult> => {
    const webhook = await webhookRow(claimed.group);
    const row = claimed.row as unknown as DeliveryRow;
    const result = await getSender(strapi).attempt(row, webhook, true);
    await tellDelivered(strapi, await recordAttempts(strapi, [{ claimed, webhook, result }]));
    return result;
  };

  /** Logs a test as under way from the start, so that no dispatcher takes it. */
  const startTest = async (webhook: WebhookRow, event: string, data: unknown): Promise<Claimed> => {
    const at = Date.now();
    const deliveryId = uuidV7(at);
    const body = freezeEnvelope(strapi, { deliveryId, event, at, data });
    const { queue } = getOutbox(strapi);
    const { leaseMs } = leaseTimes(getOptions(strapi).webhooks.timeoutMs);
    const work = newDelivery({
      webhook: toWebhook(webhook),
      event,
      deliveryId,
      body,
      at,
      isTest: true,
    });
    await inTransaction(strapi, ({ trx }) =>
      queue.enqueue(trx, [{ ...work, dueAt: at + leaseMs }])
    );
    const claimed = await queue.claimOne((await deliveryRow({ delivery_id: deliveryId })).id);
    if (claimed === 'held' || claimed === 'absent')
      throw new Error('The test could not be started.');
    return claimed;
  };

  return {
    async list(webhookId, { status, event, ...page }) {
      await webhookRow(webhookId);
      const executor = await currentExecutor(strapi);
      const where = {
        webhook_id: webhookId,
        ...(status && { status }),
        ...(event && { event }),
      };
      const matching = table(strapi, executor, DELIVERIES_TABLE).where(where);
      const counted = await countUpToLimit(executor as Knex, matching);
      const rows = (await matching
        .clone()
        .select('*')
        .orderBy('id', 'desc')
        .limit(page.per_page)
        .offset((page.page - 1) * page.per_page)) as DeliveryRow[];
      return { data: rows.map(toDelivery), meta: paginationMeta(page, counted) };
    },

    async get(id) {
      return toDelivery(await deliveryRow({ id }));
    },

    async retry(id) {
      const claimed = await getOutbox(strapi).queue.claimOne(id);
      if (claimed === 'absent') throw new errors.NotFoundError('Delivery not found');
      if (claimed === 'held') return 'held';
      await attemptNow(claimed);
      return toDelivery(await deliveryRow({ id }));
    },

    async test(webhookId, event = PING) {
      const webhook = await webhookRow(webhookId);
      const declared = (await declaredEvents(strapi))[event];
      if (!declared) throw fieldError('event', `unknown event ${event}`);
      const data =
        event === PING
          ? { webhook_id: webhookId, message: 'This is a test from Switchboard.' }
          : (declared.example ?? {});
      const claimed = await startTest(webhook, event, data);
      const { ok, attempt } = await attemptNow(claimed);
      return {
        ok,
        response_code: attempt.answer?.status ?? null,
        error: attempt.error,
        duration_ms: attempt.duration_ms,
        delivery_id: String(claimed.row.delivery_id),
      };
    },
  };
};
