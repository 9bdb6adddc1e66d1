import { setTimeout as sleep } from 'node:timers/promises';
import { errors } from '@strapi/utils';
import type {
  Delivery,
  FilterPreview,
  ManagedWebhook,
  TestResult,
} from '../../../../shared/contracts/webhooks';
import { fieldError, idFromPath } from '../../http/validation';
import { moduleName } from '../../modules/modules';
import { type Refusal, refusal, Refused } from '../../runtime/refusal';
import { debugLog } from '../../runtime/text';
import { uuidV7 } from '../../runtime/ids';
import { declaredEvents, PING } from '../catalogue';
import { queuedLine } from '../debug-lines';
import { getDeliveryChanges } from '../deliveries/changes';
import {
  countCauses,
  deliveriesAt,
  findDelivery,
  latestData,
  listDeliveries,
  readDeliveries,
  type ShowPlaces,
  showDelivery,
  summariesAt,
} from '../deliveries/log';
import { isDeliveryId, selectionOf } from '../deliveries/log-filter';
import { announceDeliveries, BY_HAND, getDeliveryStore, patienceOf } from '../deliveries/store';
import { endLostDeliveries, hasStopped } from '../lifecycle';
import { freezeEnvelope, type NewDelivery, queueDeliveries } from '../publish';
import { matches } from '../rules/data-filter';
import { thinEvent } from '../rules/thin-payload';
import { moduleHolding } from '../modules-off';
import type { WebhookRow } from '../tables';
import type { CausesQuery, DeliveriesQuery, FilterPreviewQuery, LogQuery } from './inputs';
import { findWebhook, webhookRules } from './webhooks-service';
import type { App } from '../../app';

/** The log, sending by hand, trying filters; docs/contract-webhooks.md#management-routes. Unknown ids: 404. */

const UNDER_WAY = new Refused(
  'An attempt of this delivery is running. Try again when it has ended.',
  'under_way'
);
const FINISHED = new Refused('This delivery is finished. Nothing waits for it.', 'finished');
const FOREIGN = new Refused(
  'This delivery came from another site, and is not sent from here.',
  'foreign'
);
const nobodySends = ({ options }: App) =>
  new Refused(
    options.webhooks.dispatch
      ? 'No sending process was available, so nothing was sent. Try again later.'
      : 'No sending process is running, so nothing was sent. Start "switchboard worker", or set webhooks.dispatch on one node.',
    'nobody_sends',
    undefined,
    503
  );
const NO_ANSWER = new Refused(
  'No result yet: another process sends it. The log of deliveries will show the result.',
  'no_answer',
  undefined,
  503
);

const missing = () => new errors.NotFoundError('Delivery not found');

/** The deliveries of one webhook, newest first. */
export const listDeliveriesOf = async (
  app: App,
  webhook: number,
  { page, per_page, ...query }: DeliveriesQuery
) => {
  await findWebhook(app, webhook);
  return listDeliveries(app, selectionOf({ ...query, webhook }), { page, per_page });
};

const readAs =
  <Shown>(show: ShowPlaces<Shown>) =>
  async (app: App, { limit, cursor, ...query }: Omit<LogQuery, 'view'>) => {
    await endLostDeliveries(app);
    return readDeliveries(app, selectionOf(query), { cursor, limit }, show);
  };

/**
 * All webhooks' deliveries, newest first; docs/management-api.md#finding-deliveries.
 * @throws ValidationError (400) that names `cursor` if it is one of another search
 */
export const readLog = readAs(deliveriesAt);

/** As `readLog`, with what a table shows. */
export const readLogSummary = readAs(summariesAt);

export const readCauses = async (app: App, { by, ...query }: CausesQuery) => {
  await endLostDeliveries(app);
  return countCauses(app, selectionOf(query), by);
};

/** @param given the id of its row, or the one that its receiver knows */
export const getDelivery = async (app: App, given: string): Promise<Delivery> => {
  const id = isDeliveryId(given) ? given.toLowerCase() : idFromPath(given, 'Delivery');
  await endLostDeliveries(app);
  return showDelivery(app, id);
};

/** Ends a waiting or failing delivery (cause `skipped`), or unblocks later ones; docs/contract-webhooks.md#order */
export const moveDelivery = async (app: App, id: number, action: 'skip' | 'release') => {
  const changes = getDeliveryChanges(app);
  const unmoved = await (action === 'skip' ? changes.skip(id) : changes.letPass(id));
  if (unmoved === 'held') return UNDER_WAY;
  return unmoved === 'finished' ? FINISHED : showDelivery(app, id);
};

const LOOK_EVERY_MS = 25;
/** Beyond an attempt's deadline: time for slow hooks and for recording. */
const TAKEN_MARGIN_MS = 10_000;

/** Waits for the handed-over attempt; null once recorded, `nobody_sends` if it was withdrawn unsent. */
const waitForAttempt = async (app: App, id: number): Promise<Refused | null> => {
  const changes = getDeliveryChanges(app);
  announceDeliveries(app, BY_HAND);
  const giveUpAt = performance.now() + patienceOf(app);
  let takenUntil: number | undefined;
  for (;;) {
    await sleep(LOOK_EVERY_MS);
    const seen = await changes.lookAtHandedOver(id);
    if (seen === 'done') return null;
    const now = performance.now();
    if (seen === 'taken') takenUntil ??= now + app.options.webhooks.timeoutMs + TAKEN_MARGIN_MS;
    const isTaken = takenUntil !== undefined;
    const mayGiveUp = hasStopped(app) || (!isTaken && now >= giveUpAt);
    if (mayGiveUp && (await changes.takeBack(id))) return isTaken ? NO_ANSWER : nobodySends(app);
    if (takenUntil !== undefined && now >= takenUntil) return NO_ANSWER;
  }
};

/** Makes one attempt of a delivery now, by this process or another one. @returns it as it is then */
export const retryNow = async (app: App, id: number): Promise<Delivery | Refused> => {
  const delivery = await findDelivery(app, id);
  if (app.site.isForeign(delivery)) return FOREIGN;
  const module = await moduleHolding(app, delivery.event, await app.modules.enabled());
  if (module) {
    const message = `The module ${moduleName(module)} is switched off: its events are not sent until it is on again.`;
    return new Refused(message, 'module_off', { module });
  }
  await findWebhook(app, Number(delivery.webhook_id));
  const handed = await getDeliveryChanges(app).handOver(id);
  if (handed === 'absent') throw missing();
  if (handed === 'held') return UNDER_WAY;
  return (await waitForAttempt(app, id)) ?? showDelivery(app, id);
};

const exampleOf = async (app: App, { id, payload }: WebhookRow, event: string) => {
  if (event === PING) {
    return { webhook_id: Number(id), message: 'This is a test from Switchboard.' };
  }
  const example = (await declaredEvents(app))[event]?.example ?? {};
  return payload === 'thin' ? thinEvent(event, example) : example;
};

/** Sends a `ping` or an example event now; logged, not retried, also if inactive. Throws ValidationError (400). */
export const testNow = async (
  app: App,
  webhookId: number,
  event: string = PING
): Promise<TestResult | Refused> => {
  const webhook = await findWebhook(app, webhookId);
  const wrong = await webhookRules(app).events?.([event]);
  if (wrong) throw fieldError('event', wrong);
  const data = await exampleOf(app, webhook, event);
  const store = getDeliveryStore(app);
  const at = store.now();
  const deliveryId = uuidV7(at);
  const test: NewDelivery = {
    deliveryId,
    webhook: Number(webhook.id),
    url: webhook.url,
    event,
    body: freezeEnvelope(app, { deliveryId, event, at, data }),
    at,
    isTest: true,
  };
  debugLog(app.strapi)?.(queuedLine(test));
  const ids = await app.db.retrying((tx) => queueDeliveries(store, tx, [test], { isByHand: true }));
  const id = ids.get(deliveryId) as number;
  const refused = await waitForAttempt(app, id);
  if (refused) return refused;
  const [attempt] = (await showDelivery(app, id)).attempts;
  if (!attempt) throw missing();
  const { answer, error, duration_ms } = attempt;
  return {
    ok: error === null,
    response_code: answer?.status ?? null,
    error,
    duration_ms,
    delivery_id: deliveryId,
  };
};

const LATEST = 100;
const SHOWN = 10;

/** The example of the event that was named, or of each that the webhook asked for. */
const examples = async (app: App, chosen: readonly string[], event: string | undefined) => {
  const named = event === undefined ? chosen : [event];
  return Object.entries(await declaredEvents(app))
    .filter(([name]) => name !== PING && (named.includes(name) || named.includes('*')))
    .filter(([, { example }]) => example !== undefined)
    .map(([name, { example }]) => ({ event: name, delivery_id: null, data: example }));
};

/** The error of an event to try a filter with; null: declared, selected, or (if `mayRead`) sent before. */
export const judgeTriedEvent = async (
  app: App,
  { id, events }: Pick<ManagedWebhook, 'id' | 'events'>,
  event: string,
  mayRead: boolean
): Promise<Refusal | null> => {
  if (Object.hasOwn(await declaredEvents(app), event)) return null;
  if (event !== '*' && events.includes(event)) return null;
  if (mayRead && (await latestData(app, { webhook: id, event }, 1)).length > 0) return null;
  return refusal(`unknown event ${event}`, 'events_unknown', { events: event });
};

/**
 * A filter's result for the latest deliveries, without tests, and for examples; docs/management-api.md#filters.
 * @param input its filter was checked before
 * @param mayRead whether deliveries are read: even a count of matches reveals their content
 */
export const previewFilter = async (
  app: App,
  { id, events, payload }: Pick<ManagedWebhook, 'id' | 'events' | 'payload'>,
  { filter, event }: FilterPreviewQuery,
  mayRead: boolean
): Promise<FilterPreview> => {
  const candidates = [
    // A filter judges the whole data, of which a thin delivery has only ids. Events that were left out are absent.
    ...(payload === 'thin' || !mayRead
      ? []
      : await latestData(app, { webhook: id, event }, LATEST)),
    ...(await examples(app, events, event)),
  ];
  const judged = candidates.map((one) => ({ ...one, matched: matches(filter, one.data) }));
  return {
    matched: judged.filter(({ matched }) => matched).length,
    of: judged.length,
    samples: judged.slice(0, SHOWN),
  };
};
