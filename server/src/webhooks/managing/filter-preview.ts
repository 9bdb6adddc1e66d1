import type { Core } from '@strapi/strapi';
import type {
  FilterPreview,
  FilterSample,
  ManagedWebhook,
} from '../../../../shared/contracts/webhooks';
import { latestBodies } from '../deliveries/log';
import { matches } from '../rules/data-filter';
import { type Refusal, refusal } from '../../runtime/refusal';
import { declaredEvents, PING } from '../catalogue';
import type { FilterPreviewQuery } from './inputs';

/** Deliveries that are looked at. */
const LATEST = 100;
/** Samples in the answer. */
const SHOWN = 10;

type Candidate = Omit<FilterSample, 'matched'>;

/** What the webhook was sent lately; not what was left out of it before it was sent. */
const sent = async (
  strapi: Core.Strapi,
  webhook: number,
  event: string | undefined
): Promise<Candidate[]> =>
  (await latestBodies(strapi, { webhook, event }, LATEST)).map((one) => ({
    event: one.event,
    delivery_id: one.deliveryId,
    data: (JSON.parse(one.body) as { data: unknown }).data,
  }));

/** The example of the event that was named, or of each that the webhook asked for. */
const examples = async (
  strapi: Core.Strapi,
  chosen: readonly string[],
  event: string | undefined
): Promise<Candidate[]> => {
  const named = event === undefined ? chosen : [event];
  return Object.entries(await declaredEvents(strapi))
    .filter(([name]) => name !== PING && (named.includes(name) || named.includes('*')))
    .filter(([, { example }]) => example !== undefined)
    .map(([name, { example }]) => ({ event: name, delivery_id: null, data: example }));
};

/**
 * What is wrong with an event that a filter is to be tried with; null: it is declared, the webhook
 * asked for it by name, or was sent it, as one for every event is sent undeclared ones.
 * @param mayRead whether deliveries are looked at
 */
export const judgeTriedEvent = async (
  strapi: Core.Strapi,
  { id, events }: Pick<ManagedWebhook, 'id' | 'events'>,
  event: string,
  mayRead: boolean
): Promise<Refusal | null> => {
  if (Object.hasOwn(await declaredEvents(strapi), event)) return null;
  if (event !== '*' && events.includes(event)) return null;
  if (mayRead && (await latestBodies(strapi, { webhook: id, event }, 1)).length > 0) return null;
  return refusal(`unknown event ${event}`, 'events_unknown', { events: event });
};

/**
 * What a filter would have made of a webhook's latest deliveries and of the examples of its events.
 * Tests are left out. docs/management-api.md#filters.
 * @param input its filter was judged before
 * @param mayRead whether deliveries are looked at: even how many match says what is in them
 */
export const previewFilter = async (
  strapi: Core.Strapi,
  { id, events, payload }: Pick<ManagedWebhook, 'id' | 'events' | 'payload'>,
  { filter, event }: FilterPreviewQuery,
  mayRead: boolean
): Promise<FilterPreview> => {
  const candidates = [
    // A filter judges the whole data, of which a thin delivery has only ids.
    ...(payload === 'thin' || !mayRead ? [] : await sent(strapi, id, event)),
    ...(await examples(strapi, events, event)),
  ];
  const judged = candidates.map((one) => ({ ...one, matched: matches(filter, one.data) }));
  return {
    matched: judged.filter(({ matched }) => matched).length,
    of: judged.length,
    samples: judged.slice(0, SHOWN),
  };
};
