import { types } from 'node:util';
import type { Subject, Webhook } from '../../../shared/contracts/webhooks';
import { bytesInStatement } from '../database/connection';
import { inTurn } from '../database/transactions';
import type { SentEvent } from '../hooks';
import { inSpan, measures } from '../observability/measures';
import { debugLog, errorText, isoTime, isRecord } from '../runtime/text';
import { TimeSlice } from '../runtime/event-loop';
import { queuedLine } from './debug-lines';
import { bodyOf, type FrozenMessage, type SharedMessage } from './deliveries/messages';
import {
  announceDeliveries,
  type DeliveryStore,
  getDeliveryStore,
  type NewDelivery,
} from './deliveries/store';
import { insertEntries, type JournalEntry } from './journal';
import { matches } from './rules/data-filter';
import { isComposite, UnfitFilter } from './rules/filter-schema';
import { uuidV7 } from '../runtime/uuid-v7';
import { type Subscribers, subscribersOf, type Subscriptions } from './subscriptions';
import type { App, Slot } from '../app';

const kindOf = (value: unknown): string => {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (typeof value !== 'object') return `a ${typeof value}`;
  return `a ${(value as { constructor?: { name?: string } }).constructor?.name ?? 'thing'}`;
};

/** True if JSON writes it as an object of its fields: no list, no `Map`, no boxed primitive. */
const isObject = (value: unknown): value is object =>
  isRecord(value) && !types.isMap(value) && !types.isSet(value) && !types.isBoxedPrimitive(value);

/**
 * An event's `data`, by its `toJSON` if it has one; `{}` if none was given. docs/contract-webhooks.md#envelope
 * @throws TypeError that names what was given, if that is no object
 */
export const eventData = (event: string, given: unknown): object => {
  const { toJSON } = (given ?? {}) as { toJSON?: unknown };
  const data: unknown =
    typeof toJSON === 'function' ? (toJSON as () => unknown).call(given) : (given ?? undefined);
  if (given === undefined) return {};
  if (isObject(data)) return data;
  throw new TypeError(
    `The data of ${JSON.stringify(event)} must be an object, not ${kindOf(given)}.`
  );
};

/** @throws TypeError if the data is no object in JSON, or cannot be written: a cycle, a `BigInt` */
const jsonOf = (data: unknown): string => {
  const text = JSON.stringify(data) as string | undefined;
  if (text?.startsWith('{')) return text;
  throw new TypeError(`it is ${kindOf(data)}, and no object in JSON`);
};

/** Keys of a thin payload: ids, the names of changed fields, and kinds of things or ways. */
const KEPT = /^(?:id|changed|source|type)$|_ids?$/;

/** A list of ids or names is kept with its key; a list of objects is thinned as each of them is. */
const isPlain = (value: unknown): boolean =>
  Array.isArray(value) ? value.every((one) => !isComposite(one)) : !isComposite(value);

/**
 * The `data` of an event without what it says of anybody: of its values only `id`, `*_id`, `*_ids`, `changed`,
 * `source` and `type` stay; docs/management-api.md#thin-payloads. @param data as JSON has it
 */
export const thin = (data: unknown): unknown => {
  if (Array.isArray(data)) return data.filter(isComposite).map(thin);
  if (!isComposite(data)) return data;
  return Object.fromEntries(
    Object.entries(data).flatMap(([key, value]) => {
      if (isPlain(value)) return KEPT.test(key) ? [[key, value]] : [];
      return [[key, thin(value)]];
    })
  );
};

const pick = (value: unknown, ...keys: readonly string[]): Record<string, unknown> =>
  isRecord(value)
    ? Object.fromEntries(
        keys.filter((key) => Object.hasOwn(value, key)).map((key) => [key, value[key]])
      )
    : {};

/**
 * The thin form of an event. Names of a site's own attributes say nothing of what they hold, so of an
 * entry or a file its document id stays; docs/any-content-type.md#thin-payloads.
 */
export const thinEvent = (event: string, data: unknown): unknown => {
  if (!isRecord(data)) return thin(data);
  const { entry, media } = data;
  const changed = pick(data, 'changed');
  if (/^entry\.(created|updated|published|unpublished|deleted)$/.test(event)) {
    const kind = pick(data, 'content_type', 'locale', 'status');
    return { ...kind, entry: pick(entry, 'documentId'), ...changed };
  }
  return /^media\.(created|updated|deleted)$/.test(event)
    ? { media: pick(media, 'id', 'documentId'), ...changed }
    : thin(data);
};

const thinText = (event: string, text: string): string =>
  JSON.stringify(thinEvent(event, JSON.parse(text)));

/**
 * An event's data for a webhook after the handlers, which get a copy of their own; null if they skip it.
 * @throws TypeError if what they return is no object in JSON
 */
const filteredText = async (
  app: App,
  { event, text }: SentEvent,
  webhook: Webhook
): Promise<string | null> => {
  const value = await app.hooks.get('service_crm_webhook_payload').call({
    payload: JSON.parse(text) as unknown,
    event,
    webhook: structuredClone(webhook),
  });
  // A handler may skip the webhook by returning null for the whole value or for the payload.
  return value === null || value.payload === null ? null : jsonOf(value.payload);
};

const logLeftOut = (app: App, event: string, { id }: Webhook, reason: string): void => {
  app.log.error(
    `switchboard: the event ${event} could not be written for webhook ${id}: ${reason}`
  );
};

/** An event's data for one webhook, as text; null if its filter or a handler skips it, or fails, which is logged. */
export const textFor = async (
  app: App,
  serialised: SentEvent,
  webhook: Webhook
): Promise<string | null> => {
  const { event } = serialised;
  try {
    if (webhook.filter && !matches(webhook.filter, JSON.parse(serialised.text))) return null;
    const hasHandlers = app.hooks.get('service_crm_webhook_payload').getHandlers().length > 0;
    const text = hasHandlers ? await filteredText(app, serialised, webhook) : serialised.text;
    return text !== null && webhook.payload === 'thin' ? thinText(event, text) : text;
  } catch (error) {
    logLeftOut(app, event, webhook, errorText(error));
    return null;
  }
};

export interface EventToPublish {
  event: string;
  /** An object that JSON can say; docs/contract-webhooks.md#events. */
  data: unknown;
  /** The record that it is about, by which the log finds its deliveries. */
  subject?: Subject | null;
  /** The webhook that it is about, which is not sent it. */
  exceptWebhook?: number;
}

/** Freezes an event: its envelope but for the delivery's id (docs/contract-webhooks.md#envelope). */
const freezeMessage = (
  app: App,
  { event, text }: SentEvent,
  at: number,
  deliveries = 1
): SharedMessage => {
  const head = JSON.stringify({
    event,
    created_at: isoTime(at),
    site: app.strapi.config.get('server.absoluteUrl') ?? app.strapi.config.get('server.url') ?? '',
  });
  return { event, at, frame: head.slice(1, -1), data: text, deliveries, id: null };
};

/**
 * The request body: the envelope (docs/contract-webhooks.md#envelope), serialised once and never again.
 * @throws TypeError if `data` is no object in JSON
 */
export const freezeEnvelope = (
  app: App,
  { deliveryId, event, at, data }: { deliveryId: string; event: string; at: number; data: unknown }
): string => bodyOf(deliveryId, freezeMessage(app, { event, text: jsonOf(data ?? {}) }, at));

/** Deliveries that are written together at most; what is frozen beyond that many bytes is written at once. */
const ROWS_AT_ONCE = 100;

type UnfitFilterHandler = (app: App) => Promise<void>;

const unfitFilterMet = (): Slot<UnfitFilterHandler> => ({});

/** Says what is done about a filter that may not be used; that publishes, and so cannot be imported here. */
export const onUnfitFilter = (app: App, handle: UnfitFilterHandler): void => {
  app.part(unfitFilterMet).value = handle;
};

/** A write never fails because of a webhook: what the database would refuse is left out. */
const fits = ({ frame, data }: FrozenMessage, largest: number): boolean =>
  // The exact size is expensive to compute, and only a very large body needs it.
  (frame.length + data.length) * 6 < largest || bytesInStatement(frame + data) < largest;

/** Turns what happened into deliveries, in the transaction of what happened. */
export class Publisher {
  readonly subscribers: Subscribers;
  private readonly store: DeliveryStore;

  constructor(private readonly app: App) {
    this.subscribers = subscribersOf(app);
    this.store = getDeliveryStore(app);
  }

  /**
   * Which of these events, if their module is on, reach somebody now: an active webhook, a handler, or the journal.
   * Asks the database once a transaction, so a source may ask before it builds any payload.
   */
  async subscribed(names: readonly string[]): Promise<ReadonlySet<string>> {
    const subscriptions = await this.subscribers.current(names);
    return new Set(names.filter((name) => subscriptions.isSubscribed(name)));
  }

  /**
   * Freezes each event for each webhook that asked, and for the journal, and queues it in the current
   * transaction, or in one of its own. An event that cannot be frozen is logged and left out; a delivery that
   * cannot be stored fails the write: no write without its event. Handlers of `service_crm_webhook` are called
   * after the commit.
   * @param subscriptions of a caller that has asked about these events in this transaction
   * @param telling gets a promise that resolves once handlers were called; never if the transaction rolls back
   * @returns the number of deliveries
   * @throws the database's error
   */
  async publish(
    events: readonly EventToPublish[],
    subscriptions?: Subscriptions,
    telling: (calls: Promise<void>) => void = () => {}
  ): Promise<number> {
    if (events.length === 0) return 0;
    const { app } = this;
    const names = [...new Set(events.map(({ event }) => event))];
    const known = subscriptions ?? (await this.subscribers.current(names));
    // Outside of the write's transaction.
    const onListened = (listened: readonly SentEvent[]): void =>
      telling(app.detached(() => app.hooks.tell(listened)));
    if (names.some((name) => known.isJournaled(name) || known.subscribersOf(name).length > 0)) {
      return inSpan('switchboard.publish', { 'switchboard.events': names }, async (span) => {
        const queued = await inTurn(app.strapi, () => this.queue(events, known, onListened));
        span.setAttribute('switchboard.deliveries', queued);
        measures().published.add(events.length);
        return queued;
      });
    }
    const listened = events
      .filter(({ event }) => known.isListenedTo(event))
      .flatMap((one) => this.serialised(one) ?? []);
    if (listened.length > 0) app.db.afterCommit(() => onListened(listened));
    return 0;
  }

  private queue(
    events: readonly EventToPublish[],
    subscriptions: Subscriptions,
    onListened: (listened: readonly SentEvent[]) => void
  ): Promise<number> {
    const { store } = this;
    return this.app.db.transaction(async (tx) => {
      const webhooks = new Map<number, Webhook>();
      /** Webhooks of which something is to be claimed. */
      const waiting = new Set<number>();
      const { batch, largest } = await tx.statementSize();
      const slice = new TimeSlice();
      const at = store.now();
      const listened: SentEvent[] = [];
      const debug = debugLog(this.app.strapi);
      const said: string[] = [];
      let queued = 0;
      let work: NewDelivery[] = [];
      let entries: JournalEntry[] = [];
      let characters = 0;
      let counted: SharedMessage | null = null;
      const flush = async (): Promise<void> => {
        if (work.length > 0) await store.insert(tx, work);
        for (const { isLeased, webhook } of work) if (!isLeased) waiting.add(webhook);
        if (entries.length > 0) await insertEntries(tx, entries);
        if (debug) said.push(...work.map(queuedLine));
        queued += work.length;
        work = [];
        entries = [];
        characters = 0;
      };
      for (const entry of events) {
        const event = this.serialised(entry);
        if (!event) continue;
        if (subscriptions.isListenedTo(event.event)) listened.push(event);
        const { exceptWebhook } = entry;
        const subscribers = subscriptions
          .subscribersOf(event.event)
          .filter(({ id }) => id !== exceptWebhook);
        // The one that must not have it is not sent it from the journal either.
        const sentTo: number[] = exceptWebhook === undefined ? [] : [exceptWebhook];
        for await (const { webhook, body, shared } of this.freeze(event, subscribers, at)) {
          const length = body.frame.length + body.data.length;
          if (!fits(body, largest)) {
            const reason = `its body of ${length} characters is too large`;
            logLeftOut(this.app, event.event, webhook, reason);
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
            subject: entry.subject,
            isOrdered: webhook.ordering === 'by_record',
            isFree: store.limits.isFree(webhook),
          });
          webhooks.set(webhook.id, webhook);
          sentTo.push(webhook.id);
          if (!shared || body !== counted) characters += length;
          counted = body;
          // Not all of a bulk write at once: memory must not follow the number of its rows.
          if (work.length >= ROWS_AT_ONCE || characters >= batch) await flush();
          if (slice.isOver()) await slice.next();
        }
        if (!subscriptions.isJournaled(event.event)) continue;
        const message = freezeMessage(this.app, event, at);
        if (fits(message, largest)) {
          entries.push({ ...message, subject: entry.subject ?? null, webhooks: sentTo });
          characters += message.frame.length + message.data.length;
        } else {
          this.app.log.error(
            `switchboard: the journal has no event ${event.event}: ${message.data.length} characters are too large`
          );
        }
        if (entries.length >= ROWS_AT_ONCE || characters >= batch) await flush();
        if (slice.isOver()) await slice.next();
      }
      await flush();
      // Deliveries that are rolled back were never queued.
      if (debug) tx.onCommit(() => said.forEach((line) => debug(line)));
      tx.onCommit(() => {
        for (const webhook of webhooks.values())
          store.limits.mention(webhook, subscriptions.readAt);
        for (const id of waiting) announceDeliveries(this.app, id);
      });
      if (listened.length > 0) tx.onCommit(() => onListened(listened));
      return queued;
    });
  }

  /**
   * Prepares the message of each subscribed webhook whose filter the event matches. Webhooks with equal
   * payloads share a message, which is frozen and stored once: the event as it is, or the thin one.
   */
  private async *freeze(
    serialised: SentEvent,
    subscribers: readonly Webhook[],
    at: number
  ): AsyncGenerator<{ webhook: Webhook; body: SharedMessage; shared: boolean }> {
    const { event, text } = serialised;
    const hasHandlers = this.app.hooks.get('service_crm_webhook_payload').getHandlers().length > 0;
    const hasFilters = subscribers.some(({ filter }) => filter !== null);
    const whole: unknown = hasFilters ? JSON.parse(text) : null;
    const same: Webhook[] = [];
    const thinned: Webhook[] = [];
    const slice = new TimeSlice();
    for (const webhook of subscribers) {
      const alike = webhook.payload === 'thin' ? thinned : same;
      // A filter that is compiled takes milliseconds, and a site may have thousands.
      if (webhook.filter && slice.isOver()) await slice.next();
      try {
        if (webhook.filter && !matches(webhook.filter, whole)) continue;
        const data = hasHandlers ? await filteredText(this.app, serialised, webhook) : text;
        if (data === text) alike.push(webhook);
        else if (data !== null) {
          const own = alike === thinned ? thinText(event, data) : data;
          const body = freezeMessage(this.app, { event, text: own }, at);
          yield { webhook, body, shared: false };
        }
      } catch (error) {
        // One that cannot be judged costs the others nothing.
        logLeftOut(this.app, event, webhook, errorText(error));
        if (error instanceof UnfitFilter) {
          this.app.db.afterCommit(() => {
            void this.app.detached(async () => this.app.part(unfitFilterMet).value?.(this.app));
          });
        }
      }
    }
    for (const alike of [same, thinned]) {
      if (alike.length === 0) continue;
      const said = alike === thinned ? thinText(event, text) : text;
      const body = freezeMessage(this.app, { event, text: said }, at, alike.length);
      for (const webhook of alike) yield { webhook, body, shared: alike.length > 1 };
    }
  }

  /** An event with its data as text, from the start; null if JSON cannot say it as an object. */
  private serialised({ event, data }: EventToPublish): SentEvent | null {
    try {
      return { event, text: jsonOf(data === undefined ? {} : data) };
    } catch (error) {
      this.app.log.error(
        `switchboard: the event ${event} could not be written: ${errorText(error)}`
      );
      return null;
    }
  }
}

export const getPublisher = (app: App): Publisher =>
  app.strapi.service('plugin::switchboard.publisher') as unknown as Publisher;
