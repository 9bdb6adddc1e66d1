import type { Core } from '@strapi/strapi';
import type { ModuleId } from '../../../../shared/contracts/modules';
import { getOptions } from '../../config';
import type { Detached } from '../../database/connection';
import { isFromAnotherSite } from '../../database/site-instance';
import { debugEach, debugLog } from '../../runtime/debug-log';
import { createGathering } from '../../runtime/gathering';
import { createSlotWorker } from '../../scheduling/slot-worker';
import type { GroupHandler } from '../../scheduling/types';
import { claimedLine, unsentLine } from '../debug-lines';
import type { WebhookRow } from '../tables';
import { announceDeliveries, DELIVERIES } from '../delivering/announce';
import { settleArrivedWebhooksLater } from './arrivals';
import type { HeldBack } from './modules-off';
import { type MadeAttempt, type RecordedAttempt, recordAttempts, tellDelivered } from './record';
import { createRowLoader } from '../delivering/row-loader';
import type { AttemptResult, Sender } from './send';
import { getDeliveryStore, type LeasedDelivery } from '../deliveries/store';
import { leaseTimes } from '../delivering/store/lease-times';

const TELL_AT_ONCE = 1000;
const ENDED_AT_ONCE = 500;
/** Answers that say that too much comes at once. */
const SLOWS: ReadonlySet<number> = new Set([429, 502, 504]);

/** What is to be done with a delivery that is due, decided with its webhook as it is now. */
type Decision =
  | { kind: 'send'; webhook: WebhookRow }
  /** A test that a crash interrupted is not sent late: whoever pressed the button has long gone. */
  | { kind: 'interrupted test'; webhook: WebhookRow }
  /** Deleted, with its log, a moment ago. */
  | { kind: 'webhook deleted' }
  | { kind: 'webhook switched off' }
  | { kind: 'webhook paused' }
  | { kind: 'module switched off'; enabled: ReadonlySet<ModuleId> };

const interrupted = (endedAt: number): AttemptResult => ({
  ok: false,
  endedAt,
  attempt: {
    at: new Date().toISOString().replace('Z', '+00:00'),
    request: { url: '', headers: {} },
    answer: null,
    error: 'interrupted',
    duration_ms: 0,
    manual: true,
  },
});

/**
 * Works on due deliveries, from this node. Each goes through this file from top to bottom: it is
 * claimed by the worker, `decide` says what is to be done, `perform` does it, `recordAttempts` writes
 * what came of it together with others, and `tell` lets handlers hear of it.
 */
export const createDeliveryHandler = (
  strapi: Core.Strapi,
  sender: Sender,
  heldBack: HeldBack,
  detached: Detached
): GroupHandler => {
  const options = getOptions(strapi).webhooks;
  const { store } = heldBack;
  const loadWebhook = createRowLoader(strapi);
  const release = createGathering<LeasedDelivery>((leases) => store.release(leases));

  const decide = async ({ group, delivery }: LeasedDelivery): Promise<Decision> => {
    const loaded = await loadWebhook(group);
    if (!loaded) return { kind: 'webhook deleted' };
    const { webhook, enabled } = loaded;
    if (delivery.isTest) return { kind: 'interrupted test', webhook };
    const foreign = isFromAnotherSite(strapi, webhook);
    if (foreign) await settleArrivedWebhooksLater(strapi);
    if (foreign || !webhook.active) return { kind: 'webhook switched off' };
    if (Number(webhook.paused_until) > store.now()) return { kind: 'webhook paused' };
    if (await heldBack.isOff(delivery.event, enabled)) {
      return { kind: 'module switched off', enabled };
    }
    return { kind: 'send', webhook };
  };

  /** @returns the attempt that was made; null where none was, and the delivery is somewhere safe */
  const perform = async (lease: LeasedDelivery): Promise<MadeAttempt | null> => {
    const decision = await decide(lease);
    switch (decision.kind) {
      case 'send': {
        const { webhook } = decision;
        const manual = lease.delivery.status !== 'pending';
        return { lease, webhook, result: await sender.attempt(lease.delivery, webhook, manual) };
      }
      case 'interrupted test':
        return { lease, webhook: decision.webhook, result: interrupted(store.now()) };
      case 'webhook switched off':
      case 'webhook paused':
        await release(lease);
        break;
      case 'module switched off':
        await heldBack.hold(lease, decision.enabled);
        break;
      case 'webhook deleted':
        // A write that was open when it was deleted may have queued this one after the others went.
        await release(lease);
        await getDeliveryStore(strapi).endLost(lease.group, ENDED_AT_ONCE);
    }
    debugLog(strapi)?.(unsentLine(lease, decision.kind));
    return null;
  };

  /** Has the next of the retries looked for when it is due. */
  const announceRetries = (recorded: readonly RecordedAttempt[]): void => {
    const times = recorded.flatMap(({ next }) => next.nextAttemptAt ?? []);
    if (times.length > 0) announceDeliveries(strapi, null, Math.min(...times));
  };

  /**
   * Handlers run beside the recording: one that hangs must not hold the outcomes of others until
   * their leases end. So many at once, no more: memory must not follow a slow handler.
   */
  const telling = new Set<Promise<void>>();
  let untold = 0;
  const tell = async (recorded: readonly RecordedAttempt[]): Promise<void> => {
    announceRetries(recorded);
    untold += recorded.length;
    const told: Promise<void> = tellDelivered(strapi, recorded).finally(() => {
      untold -= recorded.length;
      telling.delete(told);
    });
    telling.add(told);
    if (untold >= TELL_AT_ONCE) await Promise.race(telling);
  };

  const worker = createSlotWorker<LeasedDelivery, MadeAttempt>({
    name: DELIVERIES,
    store,
    log: strapi.log,
    detached,
    concurrency: options.concurrency,
    concurrencyPerGroup: options.concurrencyPerWebhook,
    limitsOf: (webhook) => getDeliveryStore(strapi).limitsOf(webhook),
    ...leaseTimes(options.timeoutMs),
    pollMs: options.pollSeconds * 1000,
    announce: (webhook, at) => announceDeliveries(strapi, webhook, at),
    perform,
    healthy: ({ result }) => result.ok,
    slows: ({ result }) => SLOWS.has(result.attempt.answer?.status ?? 0),
    // The next one of its record.
    awaited: ({ lease, result }) => result.ok && getDeliveryStore(strapi).lineOf(lease) !== null,
    record: (made) => recordAttempts(strapi, made, tell),
    onClaimed: (leases) => debugEach(strapi, leases, claimedLine),
    onGivenBack: (leases) => debugEach(strapi, leases, (one) => unsentLine(one, 'no time left')),
  });

  /** One timer a webhook, for when its rate allows more. */
  const again = new Map<number, NodeJS.Timeout>();
  getDeliveryStore(strapi).onAgain((webhook, at) => {
    clearTimeout(again.get(webhook));
    const timer = setTimeout(
      () => {
        again.delete(webhook);
        announceDeliveries(strapi, webhook);
      },
      Math.max(0, at - store.now())
    );
    timer.unref();
    again.set(webhook, timer);
  });

  return {
    ...worker,
    async stop() {
      for (const timer of again.values()) clearTimeout(timer);
      await worker.stop();
      await Promise.all(telling);
    },
  };
};
