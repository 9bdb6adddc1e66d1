import { errorText } from '../../runtime/error-text';
import type { Core } from '@strapi/strapi';
import type { Webhook } from '../../../../shared/contracts/webhooks';
import {
  afterCommit,
  createDetached,
  type Detached,
  inTransaction,
} from '../../database/connection';
import { bytesInStatement, statementSize } from '../../database/statement-size';
import { debugLog } from '../../runtime/debug-log';
import { createTimeSlice } from '../../runtime/event-loop';
import { getEventHook, getHook, type ToldEvent } from '../../hooks';
import { isoTime } from '../../runtime/iso-time';
import { isEventName } from '../subscriptions/catalogue';
import { queuedLine } from '../debug-lines';
import { announceDeliveries } from '../delivering/announce';
import { getDeliveryStore, type NewDelivery } from '../delivering/store/delivery-store';
import { bodyOf, type FrozenMessage, type SharedMessage } from '../delivering/store/messages';
import { jsonOf } from '../rules/event-data';
import { uuidV7 } from '../rules/uuid-v7';
import { currentSubscriptions } from '../subscriptions/current-subscriptions';
import type { Subscriptions } from '../subscriptions/subscriptions';

export interface EventToPublish {
  event: string;
  /** An object that JSON can say; docs/contract-webhooks.md#events. */
  data: unknown;
}

/** Turns what happened into deliveries, in the transaction of what happened. */
export interface Publisher {
  /**
   * Which of these events would reach somebody now: the module is on, and an active webhook asked
   * or a handler of `service_crm_webhook` listens.
   * Asks the database once a transaction, so a source may ask before it builds any payload.
   */
  subscribed(names: readonly string[]): Promise<ReadonlySet<string>>;
  /**
   * Freezes each event for each webhook that asked and queues it in the current transaction (or in
   * one of its own): committed and rolled back with the write. Returns the number of deliveries.
   * An event that cannot be frozen is logged and left out; it never fails the write. A delivery
   * that cannot be stored does: no write without its event. Handlers of `service_crm_webhook` hear
   * of it after the commit.
   * @param subscriptions who subscribed, of a caller that has asked in this transaction
   * @throws the database's error
   */
  publish(events: readonly EventToPublish[], subscriptions?: Subscriptions): Promise<number>;
  /** The same; resolves once handlers have heard of it too, outside of any transaction. */
  publishAndTell(events: readonly EventToPublish[]): Promise<number>;
}

/** Freezes an event: its envelope but for the delivery's id (docs/contract-webhooks.md#envelope). */
const freezeMessage = (
  strapi: Core.Strapi,
  { event, at, text }: { event: string; at: number; text: string }
): FrozenMessage => {
  const head = JSON.stringify({
    event,
    created_at: isoTime(at),
    site: strapi.config.get('server.absoluteUrl') ?? strapi.config.get('server.url') ?? '',
  });
  return { event, at, frame: head.slice(1, -1), data: text };
};

/**
 * The request body: the envelope (docs/contract-webhooks.md#envelope), serialised once and never again.
 * @throws TypeError where `data` is no object in JSON
 */
export const freezeEnvelope = (
  strapi: Core.Strapi,
  { deliveryId, data, ...values }: { deliveryId: string; event: string; at: number; data: unknown }
): string => bodyOf(deliveryId, freezeMessage(strapi, { ...values, text: jsonOf(data ?? {}) }));

/** Deliveries that are written together at most; what is frozen beyond that many bytes is written at once. */
const ROWS_AT_ONCE = 100;

const detachments = new WeakMap<Core.Strapi, Detached>();

/** At boot, outside any request: what handlers do is then no part of a write's transaction. */
export const prepareTelling = (strapi: Core.Strapi): void => {
  detachments.set(strapi, createDetached());
};

const tellHandlers = (strapi: Core.Strapi, events: readonly ToldEvent[]): Promise<void> => {
  const detached: Detached = detachments.get(strapi) ?? ((work) => work());
  return detached(() => getEventHook(strapi).tell(events));
};

export const createPublisher = ({ strapi }: { strapi: Core.Strapi }): Publisher => {
  /** Each webhook gets a copy of its own, so that a handler's change reaches no other webhook. */
  const filtered = async (
    event: string,
    text: string,
    webhook: Webhook
  ): Promise<string | null> => {
    const value = await getHook(strapi, 'service_crm_webhook_payload').call({
      payload: JSON.parse(text) as unknown,
      event,
      webhook: structuredClone(webhook),
    });
    // A handler may skip the webhook by returning null for the whole value or for the payload.
    return value === null || value.payload === null ? null : jsonOf(value.payload);
  };

  const leftOut = (event: string, webhook: Webhook, reason: string): void => {
    strapi.log.error(
      `switchboard: the event ${event} could not be written for webhook ${webhook.id}: ${reason}`
    );
  };

  /**
   * What each webhook that asked is sent. Whoever is sent the same as others shares a message with
   * them, which is frozen and stored once.
   */
  async function* freeze(
    { event, text }: ToldEvent,
    subscribers: readonly Webhook[],
    at: number
  ): AsyncGenerator<{ webhook: Webhook; body: SharedMessage; shared: boolean }> {
    const frozen = (data: string, deliveries: number): SharedMessage => ({
      ...freezeMessage(strapi, { event, at, text: data }),
      deliveries,
      id: null,
    });
    const hasHandlers = getHook(strapi, 'service_crm_webhook_payload').getHandlers().length > 0;
    const same: Webhook[] = hasHandlers ? [] : [...subscribers];
    for (const webhook of hasHandlers ? subscribers : []) {
      try {
        const data = await filtered(event, text, webhook);
        if (data === text) same.push(webhook);
        else if (data !== null) yield { webhook, body: frozen(data, 1), shared: false };
      } catch (error) {
        leftOut(event, webhook, errorText(error));
      }
    }
    if (same.length === 0) return;
    const body = frozen(text, same.length);
    for (const webhook of same) yield { webhook, body, shared: same.length > 1 };
  }

  /** A write never fails because of a webhook: what the database would refuse is left out. */
  const fits = ({ frame, data }: SharedMessage, largest: number): boolean =>
    // The exact size is dear to tell, and only a very large body needs it.
    (frame.length + data.length) * 6 < largest || bytesInStatement(frame + data) < largest;

  /** An event with its data as text, from the start; null where JSON cannot say it as an object. */
  const serialised = ({ event, data }: EventToPublish): ToldEvent | null => {
    try {
      return { event, text: jsonOf(data === undefined ? {} : data) };
    } catch (error) {
      strapi.log.error(`switchboard: the event ${event} could not be written: ${errorText(error)}`);
      return null;
    }
  };

  const queue = async (
    events: readonly EventToPublish[],
    subscriptions: Subscriptions,
    told: (listened: readonly ToldEvent[]) => void
  ): Promise<number> =>
    inTransaction(strapi, async ({ trx, onCommit }) => {
      const store = getDeliveryStore(strapi);
      const webhooks = new Set<number>();
      const { batch, largest } = await statementSize(strapi, trx);
      const slice = createTimeSlice();
      const at = store.now();
      const listened: ToldEvent[] = [];
      const debug = debugLog(strapi);
      const said: string[] = [];
      let queued = 0;
      let work: NewDelivery[] = [];
      let characters = 0;
      let counted: SharedMessage | null = null;
      const flush = async (): Promise<void> => {
        if (work.length > 0) await store.insert(trx, work);
        if (debug) said.push(...work.map(queuedLine));
        queued += work.length;
        work = [];
        characters = 0;
      };
      for (const asked of events) {
        const event = serialised(asked);
        if (!event) continue;
        if (subscriptions.isListenedTo(event.event)) listened.push(event);
        const subscribers = subscriptions.subscribersOf(event.event);
        for await (const { webhook, body, shared } of freeze(event, subscribers, at)) {
          const length = body.frame.length + body.data.length;
          if (!fits(body, largest)) {
            leftOut(event.event, webhook, `its body of ${length} characters is too large`);
            continue;
          }
          const deliveryId = uuidV7(at);
          work.push({
            deliveryId,
            webhook: webhook.id,
            url: webhook.url,
            event: event.event,
            body: shared ? body : bodyOf(deliveryId, body),
            at,
            isTest: false,
          });
          webhooks.add(webhook.id);
          if (!shared || body !== counted) characters += length;
          counted = body;
          // Not all of a bulk write at once: memory must not follow the number of its rows.
          if (work.length >= ROWS_AT_ONCE || characters >= batch) await flush();
          if (slice.isOver()) await slice.next();
        }
      }
      await flush();
      // What is rolled back was never queued.
      if (debug) onCommit(() => said.forEach((line) => debug(line)));
      onCommit(() => webhooks.forEach((webhook) => announceDeliveries(strapi, webhook)));
      if (listened.length > 0) onCommit(() => told(listened));
      return queued;
    });

  /** @param told is given what handlers hear, after the commit; never where it rolls back */
  const publish = async (
    events: readonly EventToPublish[],
    told: (listened: readonly ToldEvent[]) => void,
    asked?: Subscriptions
  ): Promise<number> => {
    const named = events.filter(({ event }) => {
      if (isEventName(event)) return true;
      strapi.log.error(
        `switchboard: ${JSON.stringify(String(event).slice(0, 80))} is no name of an event; not sent`
      );
      return false;
    });
    if (named.length === 0) return 0;
    const names = [...new Set(named.map(({ event }) => event))];
    const subscriptions = asked?.covers(names) ? asked : await currentSubscriptions(strapi, names);
    if (named.some(({ event }) => subscriptions.subscribersOf(event).length > 0)) {
      return queue(named, subscriptions, told);
    }
    const listened = named
      .filter(({ event }) => subscriptions.isListenedTo(event))
      .flatMap((one) => serialised(one) ?? []);
    if (listened.length > 0) afterCommit(strapi, () => told(listened));
    return 0;
  };

  return {
    async subscribed(names) {
      const subscriptions = await currentSubscriptions(strapi, names);
      return new Set(names.filter((name) => subscriptions.isSubscribed(name)));
    },

    publish: (events, subscriptions) =>
      publish(events, (listened) => void tellHandlers(strapi, listened), subscriptions),

    async publishAndTell(events) {
      let telling: Promise<void> | null = null;
      const queued = await publish(events, (listened) => {
        telling = tellHandlers(strapi, listened);
      });
      // Within a caller's transaction it has not begun yet.
      await telling;
      return queued;
    },
  };
};

export const getPublisher = (strapi: Core.Strapi): Publisher =>
  strapi.service('plugin::switchboard.publisher') as unknown as Publisher;
