import { setTimeout as sleep } from 'node:timers/promises';
import { errors } from '@strapi/utils';
import type { ModuleId } from '../../../../shared/contracts/modules';
import type { TestResult } from '../../../../shared/contracts/webhooks';
import { debugLog } from '../../runtime/text';
import { declaredEvents, PING } from '../catalogue';
import { claimedLine, queuedLine } from '../debug-lines';
import { findDelivery, showDelivery } from '../deliveries/log';
import {
  announceDeliveries,
  BY_HAND,
  getDeliveryStore,
  type LeasedDelivery,
  type NewDelivery,
  patienceOf,
} from '../deliveries/store';
import { freezeEnvelope, thinEvent } from '../publish';
import { uuidV7 } from '../../runtime/uuid-v7';
import { type WebhookRow, WEBHOOKS_TABLE } from '../tables';
import { moduleHolding } from '../sending/modules-off';
import { recordAttempts, tellDelivered } from '../sending/record';
import type { AttemptResult, Sender } from '../sending/send';
import type { App } from '../../app';

/**
 * Why a delivery is not sent again: an attempt of it is under way, it belongs to another site, which
 * alone may send it, or the module of its event, named here, is switched off.
 */
export type RetryRefusal = 'held' | 'foreign' | { off: ModuleId };

/** Why nobody answered: no process took the request, or the one that did has not said what came of it. */
export type Unanswered = 'nobody sends' | 'no answer';

/** On a process that does not send, where no other one answered in time. */
export interface Unsent {
  unsent: Unanswered;
}

const missing = () => new errors.NotFoundError('Delivery not found');

/** NotFoundError (404) where there is no such webhook. */
export const webhookRow = async (app: App, id: number): Promise<WebhookRow> => {
  const db = await app.db.current();
  const row = (await db.table(WEBHOOKS_TABLE).where({ id }).first()) as WebhookRow | undefined;
  if (!row) throw new errors.NotFoundError('Webhook not found');
  return row;
};

/** Decides if a delivery may be sent by hand, by any process; null if it may. */
const judgeRetry = async (app: App, id: number): Promise<RetryRefusal | null> => {
  const delivery = await findDelivery(app, id);
  if (!delivery) throw missing();
  if (delivery.foreign) return 'foreign';
  const enabled = await app.modules.enabled();
  const module = await moduleHolding(app, delivery.event, enabled);
  return module ? { off: module } : null;
};

const attemptNow = async (
  app: App,
  sender: Sender,
  lease: LeasedDelivery
): Promise<AttemptResult> => {
  const webhook = await webhookRow(app, lease.delivery.webhook);
  const result = await sender.attempt(lease.delivery, webhook, true);
  await recordAttempts(app, [{ lease, webhook, result }], (recorded) =>
    tellDelivered(app, recorded)
  );
  return result;
};

const LOOK_EVERY_MS = 100;
/** Beyond an attempt's deadline: time for slow hooks and for recording. */
const TAKEN_MARGIN_MS = 10_000;

/**
 * Waits until another process has made the attempt that it was handed over.
 * @returns null once it is recorded; `nobody sends` where it was taken back, and nothing was sent
 */
const waitForOther = async (app: App, id: number): Promise<Unsent | null> => {
  const store = getDeliveryStore(app);
  announceDeliveries(app, BY_HAND);
  const giveUpAt = performance.now() + patienceOf(app);
  let takenUntil: number | undefined;
  for (;;) {
    await sleep(LOOK_EVERY_MS);
    const seen = await store.lookAtHandedOver(id);
    if (seen === 'done') return null;
    const now = performance.now();
    if (seen === 'taken') takenUntil ??= now + app.options.webhooks.timeoutMs + TAKEN_MARGIN_MS;
    if (takenUntil !== undefined) {
      if (now >= takenUntil) return { unsent: 'no answer' };
    } else if (now >= giveUpAt && (await store.takeBack(id))) return { unsent: 'nobody sends' };
  }
};

/**
 * Makes one attempt of a delivery now and records it, from this process; where that does not send
 * (`sender` is null), another one does.
 * @returns null once the attempt is recorded. NotFoundError (404) for an unknown id.
 */
export const retryNow = async (
  app: App,
  sender: Sender | null,
  id: number
): Promise<RetryRefusal | Unsent | null> => {
  const refusal = await judgeRetry(app, id);
  if (refusal) return refusal;
  const store = getDeliveryStore(app);
  const lease = sender ? await store.claimOne(id) : await store.handOver(id);
  if (lease === 'absent') throw missing();
  if (lease === 'held') return 'held';
  if (lease === 'queued' || !sender) return waitForOther(app, id);
  debugLog(app.strapi)?.(claimedLine(lease));
  await attemptNow(app, sender, lease);
  return null;
};

const exampleOf = async (app: App, { id, payload }: WebhookRow, event: string) => {
  if (event === PING) {
    return { webhook_id: Number(id), message: 'This is a test from Switchboard.' };
  }
  const example = (await declaredEvents(app))[event]?.example ?? {};
  return payload === 'thin' ? thinEvent(event, example) : example;
};

const testElsewhere = async (app: App, test: NewDelivery): Promise<TestResult | Unsent> => {
  const ids = await app.db.retrying((tx) =>
    getDeliveryStore(app).insert(tx, [{ ...test, isByHand: true }])
  );
  const id = ids.get(test.deliveryId) as number;
  const unsent = await waitForOther(app, id);
  if (unsent) return unsent;
  const [attempt] = (await showDelivery(app, id))?.attempts ?? [];
  if (!attempt) throw missing();
  return resultOf(attempt, test);
};

const resultOf = (
  { answer, error, duration_ms }: AttemptResult['attempt'],
  { deliveryId }: NewDelivery
): TestResult => ({
  ok: error === null,
  response_code: answer?.status ?? null,
  error,
  duration_ms,
  delivery_id: deliveryId,
});

/**
 * Sends a `ping`, or an event's example, now; logged, never tried again, also while the webhook is
 * inactive. From this process, or from another one as `retryNow`. NotFoundError (404) where there is no
 * such webhook.
 */
export const testNow = async (
  app: App,
  sender: Sender | null,
  webhookId: number,
  event: string
): Promise<TestResult | Unsent> => {
  const webhook = await webhookRow(app, webhookId);
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
  if (!sender) return testElsewhere(app, test);
  const { attempt } = await attemptNow(app, sender, await store.insertLeased(test));
  return resultOf(attempt, test);
};
