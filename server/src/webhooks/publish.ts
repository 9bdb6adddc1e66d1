import { types } from 'node:util';
import type { Span } from '@opentelemetry/api';
import type { Subject, Webhook, WebhookPayload } from '../../../shared/contracts/webhooks';
import { bytesInStatement } from '../database/connection';
import type { Tx } from '../database/db';
import type { FollowUp } from '../database/dialects/shared';
import { endOf, hasGoneBack, inTurn } from '../database/transactions';
import type { SentEvent } from '../hooks';
import { QUEUE_STATES } from '../queue/queue';
import { inSpan, measures } from '../observability/measures';
import { debugLog, errorText, isoTime, isRecord, logFailure } from '../runtime/text';
import { TimeSlice } from '../runtime/event-loop';
import { queuedLine } from './debug-lines';
import {
  bodyOf,
  type FrozenMessage,
  insertMessages,
  type SharedMessage,
} from './deliveries/messages';
import {
  announceDeliveries,
  BY_HAND,
  type DeliveryStore,
  getDeliveryStore,
  LEASE_MS,
  type LeasedDelivery,
  toQueued,
} from './deliveries/store';
import { insertEntries, type JournalEntry } from './journal';
import { matches } from './rules/data-filter';
import { SECTIONS } from './rules/delivery-state';
import { UnfitFilter } from './rules/filter-schema';
import { thinEvent } from './rules/thin-payload';
import { uuidV7 } from '../runtime/ids';
import { type Subscribers, subscribersOf, type Subscriptions } from './subscriptions';
import { DELIVERIES_TABLE, DELIVERY_QUEUE_TABLE } from './tables';
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
 * An event's `data`, by its `toJSON` if any; defaults to `{}`. docs/contract-webhooks.md#envelope
 * @throws TypeError that names the given type, if it is no object
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
  throw new TypeError(`it is ${kindOf(data)}, and not a JSON object`);
};

/** Data of an event after handlers, which get a copy; null if skipped. Throws TypeError if it is no JSON object. */
const filteredText = async (app: App, { event, text }: SentEvent, webhook: Webhook) => {
  const value = await app.hooks.get('service_crm_webhook_payload').call({
    payload: JSON.parse(text) as unknown,
    event,
    webhook: structuredClone(webhook),
  });
  // A handler may skip the webhook by returning null for the whole value or for the payload.
  return value === null || value.payload === null ? null : jsonOf(value.payload);
};

const hasHandlers = (app: App): boolean =>
  app.hooks.get('service_crm_webhook_payload').getHandlers().length > 0;

const logLeftOut = (app: App, event: string, { id }: Webhook, reason: string): void => {
  app.log.error(
    `switchboard: the event ${event} could not be written for webhook ${id}: ${reason}`
  );
};

/** An event's data as some webhooks are sent it; null if it is nested too deep to be thinned, which is logged. */
const sentText = (
  app: App,
  { event, text }: SentEvent,
  payload: WebhookPayload,
  webhooks: readonly Webhook[]
): string | null => {
  if (payload === 'full') return text;
  try {
    return JSON.stringify(thinEvent(event, JSON.parse(text)));
  } catch (error) {
    for (const webhook of webhooks) logLeftOut(app, event, webhook, errorText(error));
    return null;
  }
};

type UnfitFilterHandler = (app: App) => Promise<void>;

const unfitFilterMet = (): Slot<UnfitFilterHandler> => ({});

/** Says what is done about a filter that may not be used; that publishes, and so cannot be imported here. */
export const onUnfitFilter = (app: App, handle: UnfitFilterHandler): void => {
  app.part(unfitFilterMet).value = handle;
};

/** `value`: its data, once a filter has looked at it. */
type Serialised = SentEvent & { value?: unknown };

/** An event's data for one webhook, but in full; null if its filter or a handler skips it, or fails, which is logged. */
const judged = async (app: App, sent: Serialised, webhook: Webhook): Promise<string | null> => {
  const { event, text } = sent;
  try {
    if (webhook.filter && !matches(webhook.filter, (sent.value ??= JSON.parse(text)))) return null;
    return hasHandlers(app) ? await filteredText(app, sent, webhook) : text;
  } catch (error) {
    // One that cannot be judged costs the others nothing.
    logLeftOut(app, event, webhook, errorText(error));
    if (error instanceof UnfitFilter) {
      app.db.afterCommit(() => {
        void app.detached(async () => app.part(unfitFilterMet).value?.(app));
      });
    }
    return null;
  }
};

/** An event's data for one webhook, as text; null if its filter or a handler skips it, or fails, which is logged. */
export const textFor = async (app: App, sent: SentEvent, webhook: Webhook) => {
  const text = await judged(app, sent, webhook);
  return text === null ? null : sentText(app, { ...sent, text }, webhook.payload, [webhook]);
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

/** Freezes events of one moment, each but for the delivery's id (docs/contract-webhooks.md#envelope). */
const freezerAt = ({ site }: App, at: number) => {
  const moment = `"created_at":"${isoTime(at)}","site":${site.addressInJson}`;
  return ({ event, text }: SentEvent, deliveries = 1): SharedMessage => {
    const frame = `"event":${JSON.stringify(event)},${moment}`;
    return { event, at, frame, data: text, deliveries, id: null };
  };
};

/** The body (docs/contract-webhooks.md#envelope), serialised once. Throws TypeError if `data` is no JSON object. */
export const freezeEnvelope = (
  app: App,
  { deliveryId, event, at, data }: { deliveryId: string; event: string; at: number; data: unknown }
): string => bodyOf(deliveryId, freezerAt(app, at)({ event, text: jsonOf(data ?? {}) }));

/** A delivery that is about to be queued. Times are epoch milliseconds. */
export interface NewDelivery {
  deliveryId: string;
  webhook: number;
  /** The webhook's address at this moment, for the log. */
  url: string;
  event: string;
  /** The frozen body of every attempt, or the message that it shares with others. */
  body: string | SharedMessage;
  at: number;
  isTest: boolean;
  /** The record that its event is about, as it is now. */
  subject?: Subject | null;
  /** True if it waits for the earlier ones of its record. */
  isOrdered?: boolean;
  /** It is an event of the journal, sent later. */
  replayed?: boolean;
  /** The process that queues it may send it at once: its webhook has neither an order nor a rate. */
  isFree?: boolean;
  /** It is queued under a lease of this process, which knows of it; set when it is queued. */
  isLeased?: boolean;
}

/** A new delivery's queue row, from the columns of its log row. @param group in SQL */
const queuedIn = (group: string, lease: Readonly<Record<string, string>> = {}): FollowUp => {
  const columns = {
    id: 'id',
    group_id: group,
    state: `${QUEUE_STATES.ready}`,
    due_at: 'next_attempt_at',
    section: `CASE WHEN is_test THEN ${SECTIONS.test} ELSE ${SECTIONS.waiting} END`,
    event: 'event',
    created_at: 'created_at',
    ...lease,
  };
  return {
    name: DELIVERY_QUEUE_TABLE,
    of: 'id, document_id, webhook_id, event, is_test, next_attempt_at, created_at',
    into: Object.keys(columns).join(', '),
    from: Object.values(columns).join(', '),
  };
};

/** `leased`: by the process that queues it; the delivery's id is the token. */
const PLACES = {
  free: queuedIn('webhook_id'),
  byHand: queuedIn(`${BY_HAND}`),
  leased: queuedIn('webhook_id', {
    owner: 'document_id',
    leased_until: `next_attempt_at + ${LEASE_MS}`,
  }),
};

const newRow = (tx: Tx, one: NewDelivery) => ({
  document_id: one.deliveryId,
  site_instance: tx.site.instance,
  webhook_id: one.webhook,
  event: one.event,
  status: 'pending' as const,
  tries: 0,
  is_test: one.isTest,
  next_attempt_at: one.at,
  created_at: one.at,
  subject_type: one.subject?.type ?? null,
  subject_id: one.subject?.id ?? null,
  subject_label: one.subject?.label ?? null,
  replayed: one.replayed ?? false,
  url: one.url,
  body: typeof one.body === 'string' ? one.body : null,
  message_id: typeof one.body === 'string' ? null : one.body.id,
  attempts: '[]',
});

/** A delivery as it would be read back, under the lease that it was queued with. */
const leasedFrom = (tx: Tx, one: NewDelivery, id: number): LeasedDelivery => {
  const { at, body, deliveryId, webhook } = one;
  const row = { extra_tries: 0, paused_ms: 0, error: null, ...newRow(tx, one) };
  const text = typeof body === 'string' ? body : bodyOf(deliveryId, body);
  const lease = { id, group: webhook, owner: deliveryId, dueAt: at, leaseUntil: at + LEASE_MS };
  return { delivery: toQueued(row, text, false), ...lease };
};

/** Leases new deliveries as far as there is room, and starts them after the commit. `ids`: of rows, once queued. */
const leaseNew = (
  store: DeliveryStore,
  tx: Tx,
  deliveries: readonly NewDelivery[],
  ids: ReadonlyMap<string, number>
): void => {
  const free = deliveries.filter(({ isFree }) => isFree);
  const room = store.worker?.keepRoom(free.map(({ webhook }) => webhook));
  const kept = free.filter((_one, at) => room?.isKept[at]);
  const [first] = kept;
  if (!room || !first) return;
  for (const one of kept) one.isLeased = true;
  const giveBack = (): void => room.take([]);
  // Its callbacks do not run after a refused commit.
  void endOf(tx.knex)?.then((isCommitted) => isCommitted || giveBack());
  // A rollback of only a part is no end. After a commit that comes late, other processes may claim them.
  const late = setTimeout(giveBack, LEASE_MS / 2).unref();
  tx.onCommit(() => {
    clearTimeout(late);
    if (store.now() > first.at + LEASE_MS / 2) return room.take([]);
    const leased = kept.map((one) => leasedFrom(tx, one, ids.get(one.deliveryId) as number));
    if (!hasGoneBack(tx.knex)) return room.take(leased);
    void store.stillLeased(leased).then(room.take, giveBack);
  });
};

/**
 * Queues deliveries in this transaction; a shared message is stored with the first of them.
 * @param isByHand a user waits for their attempts
 * @param isLast nothing else is done in this part
 * @returns row ids by the ids that receivers know; if it is the last, some perhaps only after the commit
 */
export const queueDeliveries = async (
  store: DeliveryStore,
  tx: Tx,
  deliveries: readonly NewDelivery[],
  { isByHand = false, isLast = false } = {}
): Promise<Map<string, number>> => {
  const shared = deliveries.flatMap(({ body }) => (typeof body === 'string' ? [] : body));
  if (shared.length > 0) await insertMessages(tx, shared);
  const ids = new Map<string, number>();
  leaseNew(store, tx, deliveries, ids);
  for (const leased of [true, false]) {
    const some = deliveries.filter(({ isLeased = false }) => isLeased === leased);
    if (some.length === 0) continue;
    const place = leased ? 'leased' : isByHand ? 'byHand' : 'free';
    const rows = some.map((one) => newRow(tx, one));
    const leave = isLast && !some.some(({ isOrdered }) => isOrdered) ? tx.leave : undefined;
    await tx.insertForIds(DELIVERIES_TABLE, rows, { followUp: PLACES[place], ids, leave });
  }
  const ordered = deliveries.flatMap(({ deliveryId, isOrdered, subject, webhook }) => {
    if (!isOrdered || !subject) return [];
    const ordering_key = `${subject.type}:${subject.id}`;
    return { id: ids.get(deliveryId) as number, group_id: webhook, ordering_key };
  });
  if (ordered.length > 0) await store.queue.addKeys(tx, ordered);
  return ids;
};

/** Deliveries that are written together at most; what is frozen beyond that many bytes is written at once. */
const ROWS_AT_ONCE = 100;

/** A write never fails because of a webhook: what the database would refuse is left out. */
const fits = ({ frame, data }: FrozenMessage, largest: number): boolean =>
  // The exact size is expensive to compute, and only a very large body needs it.
  (frame.length + data.length) * 6 < largest || bytesInStatement(frame + data) < largest;

interface Publishing {
  /** A caller's, who has asked about these events in this transaction. */
  subscriptions?: Subscriptions;
  /** Gets a promise that resolves once handlers were called; never if the transaction rolls back. */
  telling?: (calls: Promise<void>) => void;
  /** The part of a transaction whose turn it is; otherwise it takes a turn of its own. */
  tx?: Tx;
}

/** Turns what happened into deliveries, in the transaction of what happened. */
export class Publisher {
  private readonly subscribers: Subscribers;
  private readonly store: DeliveryStore;

  constructor(private readonly app: App) {
    this.subscribers = subscribersOf(app);
    this.store = getDeliveryStore(app);
  }

  /**
   * Filters events to those that now reach an active webhook, a handler or the journal, if their module is on. One query
   * per transaction, so a source may call it before it builds a payload.
   */
  async subscribed(names: readonly string[]): Promise<ReadonlySet<string>> {
    const subscriptions = await this.subscribers.current(names);
    return new Set(names.filter((name) => subscriptions.isSubscribed(name)));
  }

  /**
   * Freezes each event for subscribed webhooks and the journal, and queues it in the current or a new transaction.
   * Events that cannot be frozen are logged and dropped; a delivery that cannot be stored fails the write: no write
   * without its event. Handlers of `service_crm_webhook` run after the commit. Returns the number of deliveries; throws
   * the database's error.
   */
  async publish(
    events: readonly EventToPublish[],
    { subscriptions, telling = () => {}, tx }: Publishing = {}
  ): Promise<number> {
    if (events.length === 0) return 0;
    const { app } = this;
    const names = [...new Set(events.map(({ event }) => event))];
    const known = subscriptions ?? (await this.subscribers.current(names));
    // Outside of the write's transaction.
    const onListened = (listened: readonly SentEvent[]): void =>
      telling(app.detached(() => app.hooks.tell(listened)));
    if (names.some((name) => known.isJournaled(name) || known.subscribersOf(name).length > 0)) {
      return inSpan('switchboard.publish', { 'switchboard.events': names }, (span) => {
        const queue = (part: Tx) => this.queue(part, events, known, { onListened, span });
        return tx ? queue(tx) : inTurn(app.strapi, () => app.db.transaction(queue));
      });
    }
    const listened = events
      .filter(({ event }) => known.isListenedTo(event))
      .flatMap((one) => this.serialised(one) ?? []);
    if (listened.length > 0) app.db.afterCommit(() => onListened(listened));
    return 0;
  }

  private async queue(
    tx: Tx,
    events: readonly EventToPublish[],
    subscriptions: Subscriptions,
    { onListened, span }: { onListened: (listened: readonly SentEvent[]) => void; span: Span }
  ): Promise<number> {
    const { app, store } = this;
    const webhooks = new Map<number, Webhook>();
    /** Webhooks of which something is to be claimed. */
    const waiting = new Set<number>();
    const { batch, largest } = app.db.size ?? (await tx.statementSize());
    const slice = new TimeSlice();
    const at = store.now();
    const freezer = freezerAt(app, at);
    const listened: SentEvent[] = [];
    const debug = debugLog(app.strapi);
    const said: string[] = [];
    let queued = 0;
    let work: NewDelivery[] = [];
    let entries: JournalEntry[] = [];
    let characters = 0;
    /** The batch that is written while the next one is frozen, but where handlers run: they may go back to a savepoint. */
    const isHandled = hasHandlers(app);
    let writing: Promise<void> | null = null;
    const write = async (
      deliveries: NewDelivery[],
      kept: readonly JournalEntry[],
      isLast = false
    ) => {
      // Earlier ones of this write go first.
      for (const one of deliveries) one.isFree &&= !waiting.has(one.webhook);
      if (deliveries.length > 0) await queueDeliveries(store, tx, deliveries, { isLast });
      for (const { isLeased, webhook } of deliveries) if (!isLeased) waiting.add(webhook);
      if (kept.length > 0) await insertEntries(tx, kept);
      if (debug) said.push(...deliveries.map(queuedLine));
    };
    const flush = async (): Promise<void> => {
      if (writing) await writing;
      writing = write(work, entries);
      writing.catch(() => {}); // Thrown where it is awaited.
      queued += work.length;
      [work, entries, characters] = [[], [], 0];
      if (isHandled) await writing;
    };
    for (const entry of events) {
      const event = this.serialised(entry);
      if (!event) continue;
      if (subscriptions.isListenedTo(event.event)) listened.push(event);
      const { exceptWebhook } = entry;
      const all = subscriptions.subscribersOf(event.event);
      const subscribers =
        exceptWebhook === undefined ? all : all.filter(({ id }) => id !== exceptWebhook);
      // The one that must not have it is not sent it from the journal either.
      const sentTo: number[] = exceptWebhook === undefined ? [] : [exceptWebhook];
      /** Freezes what webhooks are sent, once; several share the message. */
      const put = async (text: string, payload: WebhookPayload, to: readonly Webhook[]) => {
        const said = sentText(app, { ...event, text }, payload, to);
        if (said === null) return;
        const body = freezer({ ...event, text: said }, to.length);
        const length = body.frame.length + body.data.length;
        if (!fits(body, largest)) {
          const reason = `its body of ${length} characters is too large`;
          for (const webhook of to) logLeftOut(app, event.event, webhook, reason);
          return;
        }
        characters += length;
        for (const webhook of to) {
          const deliveryId = uuidV7(at);
          work.push({
            deliveryId,
            webhook: webhook.id,
            url: webhook.url,
            event: event.event,
            body: to.length > 1 ? body : bodyOf(deliveryId, body),
            at,
            isTest: false,
            subject: entry.subject,
            isOrdered: webhook.ordering === 'by_record',
            isFree: store.limits.isFree(webhook),
          });
          webhooks.set(webhook.id, webhook);
          sentTo.push(webhook.id);
          // Not all of a bulk write at once: memory must not follow the number of its rows.
          if (work.length >= ROWS_AT_ONCE || characters >= batch) await flush();
          else if (slice.isOver()) await slice.next();
        }
      };
      const alike: Record<WebhookPayload, Webhook[]> = { full: [], thin: [] };
      for (const webhook of subscribers) {
        const { filter, payload } = webhook;
        // A filter that is compiled takes milliseconds, and a site may have thousands.
        if (filter && slice.isOver()) await slice.next();
        const text = isHandled || filter ? await judged(app, event, webhook) : event.text;
        if (text === event.text) alike[payload].push(webhook);
        else if (text !== null) await put(text, payload, [webhook]);
      }
      for (const payload of ['full', 'thin'] as const) {
        if (alike[payload].length > 0) await put(event.text, payload, alike[payload]);
      }
      if (!subscriptions.isJournaled(event.event)) continue;
      const message = freezer(event);
      if (fits(message, largest)) {
        entries.push({ ...message, subject: entry.subject ?? null, webhooks: sentTo });
        characters += message.frame.length + message.data.length;
      } else {
        app.log.error(
          `switchboard: the journal has no event ${event.event}: ${message.data.length} characters are too large`
        );
      }
      if (entries.length >= ROWS_AT_ONCE || characters >= batch) await flush();
      if (slice.isOver()) await slice.next();
    }
    if (writing) await writing;
    await write(work, entries, entries.length === 0);
    queued += work.length;
    // Deliveries that are rolled back were never queued.
    if (debug) tx.onCommit(() => said.forEach((line) => debug(line)));
    tx.onCommit(() => {
      for (const webhook of webhooks.values()) store.limits.mention(webhook, subscriptions.readAt);
      for (const id of waiting) announceDeliveries(app, id);
    });
    if (listened.length > 0) tx.onCommit(() => onListened(listened));
    span.setAttribute('switchboard.deliveries', queued);
    measures().published.add(events.length);
    return queued;
  }

  /** An event with its data as text, from the start; null if JSON cannot say it as an object. */
  private serialised({ event, data }: EventToPublish): SentEvent | null {
    try {
      return { event, text: jsonOf(data === undefined ? {} : data) };
    } catch (error) {
      logFailure(this.app, `the event ${event} could not be written`)(error);
      return null;
    }
  }
}

export const getPublisher = (app: App): Publisher =>
  app.strapi.service('plugin::switchboard.publisher') as unknown as Publisher;
