import { errors } from '@strapi/utils';
import type {
  CursorPage,
  Delivery,
  FailureCauses,
  FilterPreview,
  FilterSample,
  ManagedWebhook,
  Page,
  TestResult,
} from '../../../../shared/contracts/webhooks';
import { fieldError } from '../../http/validation';
import { type Refusal, refusal } from '../../runtime/refusal';
import { declaredEvents, PING } from '../catalogue';
import {
  countCauses,
  latestBodies,
  listDeliveries,
  readDeliveries,
  showDelivery,
} from '../deliveries/log';
import { cursorOf, filterOf } from '../deliveries/log-filter';
import { getDeliveryStore, type HandRefusal } from '../deliveries/store';
import { endLostDeliveries, getSender } from '../lifecycle';
import { matches } from '../rules/data-filter';
import { retryNow, type RetryRefusal, testNow, type Unsent, webhookRow } from './by-hand';
import type { Sender } from '../sending/send';
import type { CausesQuery, DeliveriesQuery, FilterPreviewQuery, LogQuery } from './inputs';
import { webhookRules } from './webhooks-service';
import type { App } from '../../app';

/** Why a delivery was neither skipped nor passed: it has ended, or an attempt of it is under way. */
export type Unmoved = Exclude<HandRefusal, 'absent'>;

/** The log of deliveries, and sending by hand; docs/contract-webhooks.md#management-routes. */
export class DeliveriesService {
  constructor(private readonly app: App) {}

  /** Newest first. NotFoundError (404) where there is no such webhook. */
  async list(
    webhookId: number,
    { page, per_page, ...query }: DeliveriesQuery
  ): Promise<Page<Delivery>> {
    await webhookRow(this.app, webhookId);
    const { filter, search } = filterOf({ ...query, webhook: webhookId });
    return listDeliveries(this.app, filter, search, { page, per_page });
  }

  /**
   * Over all webhooks, newest first, by a cursor; docs/contract-webhooks.md#the-log-of-deliveries.
   * ValidationError (400) that names `cursor` where it is one of another search.
   */
  async read({ limit, cursor, ...query }: LogQuery): Promise<CursorPage<Delivery>> {
    await endLostDeliveries(this.app);
    const { filter, search } = filterOf(query);
    return readDeliveries(this.app, filter, search, { cursor: cursorOf(cursor, search), limit });
  }

  /** Why deliveries are failing or failed, by webhook and cause. */
  async causes(query: CausesQuery): Promise<FailureCauses> {
    await endLostDeliveries(this.app);
    const { filter, search } = filterOf(query);
    return countCauses(this.app, filter, search);
  }

  /** By the id of its row, or by the id that its receiver knows. NotFoundError (404) for another. */
  async get(id: number | string): Promise<Delivery> {
    await endLostDeliveries(this.app);
    return this.shown(id);
  }

  /**
   * Sends a delivery again now and answers with it as it is afterwards; a node that does not send has
   * another process do it. NotFoundError (404) for an unknown id.
   */
  async retry(id: number): Promise<Delivery | RetryRefusal | Unsent> {
    return (await retryNow(this.app, this.sender(), id)) ?? this.shown(id);
  }

  /**
   * Ends a delivery that waits or fails, as `failed` with the cause `skipped`, which counts for nothing;
   * docs/contract-webhooks.md#order. NotFoundError (404) for an unknown id.
   */
  skip(id: number): Promise<Delivery | Unmoved> {
    return this.moved(id, getDeliveryStore(this.app).skip(id));
  }

  /** Unblocks later deliveries of its record. NotFoundError (404) for an unknown id. */
  release(id: number): Promise<Delivery | Unmoved> {
    return this.moved(id, getDeliveryStore(this.app).letPass(id));
  }

  /**
   * Sends a `ping`, or an event's example, now; logged, never retried, also while inactive. A node
   * that does not send has another process do it.
   */
  async test(webhookId: number, event: string = PING): Promise<TestResult | Unsent> {
    await webhookRow(this.app, webhookId);
    const wrong = await webhookRules(this.app).events?.([event]);
    if (wrong) throw fieldError('event', wrong);
    return testNow(this.app, this.sender(), webhookId, event);
  }

  /** null: this process does not send. */
  private sender(): Sender | null {
    return this.app.options.webhooks.dispatch ? getSender(this.app) : null;
  }

  private async shown(id: number | string): Promise<Delivery> {
    const delivery = await showDelivery(this.app, id);
    if (!delivery) throw new errors.NotFoundError('Delivery not found');
    return delivery;
  }

  private async moved(
    id: number,
    moving: Promise<HandRefusal | null>
  ): Promise<Delivery | Unmoved> {
    const result = await moving;
    if (result === 'finished' || result === 'held') return result;
    return this.shown(id);
  }
}

/** Deliveries that are looked at. */
const LATEST = 100;
/** Samples in the answer. */
const SHOWN = 10;

type Candidate = Omit<FilterSample, 'matched'>;

/** Latest deliveries of the webhook; events that were left out are not among them. */
const sent = async (app: App, webhook: number, event: string | undefined): Promise<Candidate[]> =>
  (await latestBodies(app, { webhook, event }, LATEST)).map((one) => ({
    event: one.event,
    delivery_id: one.deliveryId,
    data: (JSON.parse(one.body) as { data: unknown }).data,
  }));

/** The example of the event that was named, or of each that the webhook asked for. */
const examples = async (
  app: App,
  chosen: readonly string[],
  event: string | undefined
): Promise<Candidate[]> => {
  const named = event === undefined ? chosen : [event];
  return Object.entries(await declaredEvents(app))
    .filter(([name]) => name !== PING && (named.includes(name) || named.includes('*')))
    .filter(([, { example }]) => example !== undefined)
    .map(([name, { example }]) => ({ event: name, delivery_id: null, data: example }));
};

/**
 * The fault of an event to try a filter with; null: it is declared, the webhook asked for it by name, or
 * was sent it, as one for every event is sent undeclared ones.
 * @param mayRead whether deliveries are looked at
 */
export const judgeTriedEvent = async (
  app: App,
  { id, events }: Pick<ManagedWebhook, 'id' | 'events'>,
  event: string,
  mayRead: boolean
): Promise<Refusal | null> => {
  if (Object.hasOwn(await declaredEvents(app), event)) return null;
  if (event !== '*' && events.includes(event)) return null;
  if (mayRead && (await latestBodies(app, { webhook: id, event }, 1)).length > 0) return null;
  return refusal(`unknown event ${event}`, 'events_unknown', { events: event });
};

/**
 * The result of a filter for a webhook's latest deliveries and for the examples of its events. Tests are
 * left out. docs/management-api.md#filters.
 * @param input its filter was judged before
 * @param mayRead whether deliveries are looked at: even how many match says what is in them
 */
export const previewFilter = async (
  app: App,
  { id, events, payload }: Pick<ManagedWebhook, 'id' | 'events' | 'payload'>,
  { filter, event }: FilterPreviewQuery,
  mayRead: boolean
): Promise<FilterPreview> => {
  const candidates = [
    // A filter judges the whole data, of which a thin delivery has only ids.
    ...(payload === 'thin' || !mayRead ? [] : await sent(app, id, event)),
    ...(await examples(app, events, event)),
  ];
  const judged = candidates.map((one) => ({ ...one, matched: matches(filter, one.data) }));
  return {
    matched: judged.filter(({ matched }) => matched).length,
    of: judged.length,
    samples: judged.slice(0, SHOWN),
  };
};
