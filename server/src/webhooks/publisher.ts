import { errorText } from '../error-text';
import type { Core } from '@strapi/strapi';
import type { Webhook } from '../../../shared/contracts/webhooks';
import { inTransaction } from '../database/connection';
import { getHook } from '../hooks';
import { isoTime } from '../iso-time';
import type { NewWork } from '../queue/types';
import { isEventName } from './catalogue';
import { getOutbox } from './outbox';
import { uuidV7 } from './rules/uuid-v7';
import { currentSubscriptions, type Subscriptions } from './subscriptions';

export interface EventToPublish {
  event: string;
  /** JSON-serialisable; specification 1, Events. */
  data: unknown;
}

/** Turns what happened into deliveries, in the transaction of what happened. */
export interface Publisher {
  /**
   * Which of these events would reach somebody now: the module is on and an active webhook asked.
   * Asks the database once a transaction, or takes over what was asked just before it
   * (`askAhead`), so a source may ask before it builds any payload.
   */
  wanted(names: readonly string[]): Promise<ReadonlySet<string>>;
  /**
   * Freezes each event for each webhook that asked and queues it in the current transaction (or in
   * one of its own): committed and rolled back with the write. Returns the number of deliveries.
   * An event that cannot be frozen is logged and left out; it never fails the write.
   */
  publish(events: readonly EventToPublish[]): Promise<number>;
}

/** Columns of a delivery that waits for its first try. */
export const newDelivery = (values: {
  webhook: Pick<Webhook, 'id' | 'url'>;
  event: string;
  deliveryId: string;
  body: string;
  at: number;
  isTest?: boolean;
}): NewWork => ({
  group: values.webhook.id,
  dueAt: values.at,
  columns: {
    delivery_id: values.deliveryId,
    event: values.event,
    status: 'pending',
    tries: 0,
    is_test: values.isTest ?? false,
    next_attempt_at: values.at,
    created_at: values.at,
    finished_at: null,
    error: null,
    url: values.webhook.url,
    body: values.body,
    attempts: '[]',
  },
});

/** The request body: the envelope of specification 1, serialised once and never again. */
export const freezeEnvelope = (
  strapi: Core.Strapi,
  values: { deliveryId: string; event: string; at: number; data: unknown }
): string =>
  JSON.stringify({
    id: values.deliveryId,
    event: values.event,
    created_at: isoTime(values.at),
    site: strapi.config.get('server.absoluteUrl') ?? strapi.config.get('server.url') ?? '',
    data: values.data ?? {},
  });

export const createPublisher = ({ strapi }: { strapi: Core.Strapi }): Publisher => {
  /** Each webhook gets a copy of its own, so that a handler's change reaches no other webhook. */
  const filtered = async (event: string, data: unknown, webhook: Webhook): Promise<unknown> => {
    const hook = getHook(strapi, 'service_crm_webhook_payload');
    if (hook.getHandlers().length === 0) return data;
    const value = await hook.call({
      payload: structuredClone(data),
      event,
      webhook: structuredClone(webhook),
    });
    // A handler may skip the webhook by returning null for the whole value or for the payload.
    return value === null || value.payload === null ? null : value.payload;
  };

  const freeze = async (
    { event, data }: EventToPublish,
    subscriptions: Subscriptions,
    at: number
  ): Promise<NewWork[]> => {
    const work: NewWork[] = [];
    for (const webhook of subscriptions.subscribersOf(event)) {
      try {
        const payload = await filtered(event, data ?? {}, webhook);
        if (payload === null) continue;
        const deliveryId = uuidV7(at);
        const body = freezeEnvelope(strapi, { deliveryId, event, at, data: payload });
        work.push(newDelivery({ webhook, event, deliveryId, body, at }));
      } catch (error) {
        strapi.log.error(
          `switchboard: the event ${event} could not be written for webhook ${webhook.id}: ${errorText(error)}`
        );
      }
    }
    return work;
  };

  const queue = async (
    events: readonly EventToPublish[],
    subscriptions: Subscriptions
  ): Promise<number> =>
    inTransaction(strapi, async ({ trx, onCommit }) => {
      const outbox = getOutbox(strapi);
      const at = Date.now();
      let queued = 0;
      // In chunks, so that a bulk write of many thousand rows never holds all bodies at once.
      for (let start = 0; start < events.length; start += 100) {
        const work: NewWork[] = [];
        for (const event of events.slice(start, start + 100)) {
          work.push(...(await freeze(event, subscriptions, at)));
        }
        await outbox.queue.enqueue(trx, work);
        queued += work.length;
      }
      if (queued > 0) onCommit(outbox.wake);
      return queued;
    });

  return {
    async wanted(names) {
      return (await currentSubscriptions(strapi)).wantedOf(names);
    },

    async publish(events) {
      const named = events.filter(({ event }) => {
        if (isEventName(event)) return true;
        strapi.log.error(`switchboard: ${JSON.stringify(event)} is no name of an event; not sent`);
        return false;
      });
      if (named.length === 0) return 0;
      const subscriptions = await currentSubscriptions(strapi);
      if (!named.some(({ event }) => subscriptions.subscribersOf(event).length > 0)) return 0;
      return queue(named, subscriptions);
    },
  };
};

export const getPublisher = (strapi: Core.Strapi): Publisher =>
  strapi.service('plugin::switchboard.publisher') as unknown as Publisher;
