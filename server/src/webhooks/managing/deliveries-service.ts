import type { Core } from '@strapi/strapi';
import { errors } from '@strapi/utils';
import type { Delivery, Page, TestResult } from '../../../../shared/contracts/webhooks';
import { getOptions } from '../../config';
import { fieldError } from '../../http/validation';
import { askAnotherProcess, type Unanswered } from '../delivering/by-hand/ask-another-process';
import type { ManualAnswer, ManualRequest } from '../delivering/by-hand/request-store';
import {
  judgeRetry,
  retryNow,
  type RetryRefusal,
  testNow,
  webhookRow,
} from '../delivering/by-hand/send-now';
import { getSender } from '../delivering/running';
import { listDeliveries, showDelivery } from '../delivering/store/delivery-log';
import { PING } from '../subscriptions/catalogue';
import type { DeliveriesQuery } from './inputs';
import { webhookRules } from './webhook-rules';

/** On a node that does not send, where no other process answered in time. */
export interface Unsent {
  unsent: Unanswered;
}

/** The log of deliveries, and sending by hand; docs/contract-webhooks.md#management-routes. */
export interface DeliveriesService {
  /** Newest first. NotFoundError (404) where there is no such webhook. */
  list(webhookId: number, query: DeliveriesQuery): Promise<Page<Delivery>>;
  get(id: number): Promise<Delivery>;
  /**
   * Sends a delivery again now and answers with it as it is afterwards; a node that does not send has
   * another process do it. NotFoundError (404) for an unknown id.
   */
  retry(id: number): Promise<Delivery | RetryRefusal | Unsent>;
  /**
   * Sends a `ping`, or an event's example, now; logged, never retried, also while inactive. A node
   * that does not send has another process do it.
   */
  test(webhookId: number, event?: string): Promise<TestResult | Unsent>;
}

export const createDeliveriesService = ({ strapi }: { strapi: Core.Strapi }): DeliveriesService => {
  const sendsHere = () => getOptions(strapi).webhooks.dispatch;

  const shown = async (id: number): Promise<Delivery> => {
    const delivery = await showDelivery(strapi, id);
    if (!delivery) throw new errors.NotFoundError('Delivery not found');
    return delivery;
  };

  /** @throws what the other process met: NotFoundError (404) for what is gone by now. */
  const askElsewhere = async (
    request: ManualRequest
  ): Promise<Extract<ManualAnswer, { kind: 'retry' | 'test' }> | Unsent> => {
    const answer = await askAnotherProcess(strapi, request);
    if (typeof answer === 'string') return { unsent: answer };
    if (answer.kind === 'missing') throw new errors.NotFoundError(answer.message);
    if (answer.kind === 'failed') throw new Error(answer.message);
    return answer;
  };

  return {
    async list(webhookId, { status, event, ...page }) {
      await webhookRow(strapi, webhookId);
      return listDeliveries(strapi, { webhook: webhookId, status, event }, page);
    },

    get: shown,

    async retry(id) {
      if (sendsHere()) return (await retryNow(strapi, getSender(strapi), id)) ?? shown(id);
      const refusal = await judgeRetry(strapi, id);
      if (refusal) return refusal;
      const answer = await askElsewhere({ kind: 'retry', delivery: id });
      if ('unsent' in answer) return answer;
      return (answer.kind === 'retry' ? answer.refusal : null) ?? shown(id);
    },

    async test(webhookId, event = PING) {
      await webhookRow(strapi, webhookId);
      const wrong = await webhookRules(strapi).events?.([event]);
      if (wrong) throw fieldError('event', wrong);
      if (sendsHere()) return testNow(strapi, getSender(strapi), webhookId, event);
      const answer = await askElsewhere({ kind: 'test', webhook: webhookId, event });
      if ('unsent' in answer) return answer;
      if (answer.kind !== 'test') throw new Error('The answer to a test was another one.');
      return answer.result;
    },
  };
};
