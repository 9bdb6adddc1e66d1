import type { Core } from '@strapi/strapi';
import type { ModuleId } from '../../../../shared/contracts/modules';
import { getOptions } from '../../config';
import type { Detached } from '../../database/connection';
import { isFromAnotherSite } from '../../database/site-instance';
import { debugEach, debugLog } from '../../runtime/debug-log';
import { createSlotWorker } from '../../scheduling/slot-worker';
import type { GroupHandler } from '../../scheduling/types';
import { claimedLine, unsentLine } from '../debug-lines';
import type { WebhookRow } from '../tables';
import { announceDeliveries, DELIVERIES } from './announce';
import { settleArrivedWebhooksLater } from './arrivals';
import type { HeldBack } from './held-back';
import { type MadeAttempt, type RecordedAttempt, recordAttempts, tellDelivered } from './record';
import { createRowLoader } from './row-loader';
import type { AttemptResult, Sender } from './sender';
import { type LeasedDelivery, leaseTimes } from './store/delivery-store';

const TELL_AT_ONCE = 1000;

/** What is to be done with a delivery that is due, decided with its webhook as it is now. */
type Decision =
  | { kind: 'send'; webhook: WebhookRow }
  /** A test that a crash interrupted is not sent late: whoever pressed the button has long gone. */
  | { kind: 'interrupted test'; webhook: WebhookRow }
  /** Deleted, with its log, a moment ago. */
  | { kind: 'webhook deleted' }
  | { kind: 'webhook switched off' }
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

  const decide = async ({ group, delivery }: LeasedDelivery): Promise<Decision> => {
    const loaded = await loadWebhook(group);
    if (!loaded) return { kind: 'webhook deleted' };
    const { webhook, enabled } = loaded;
    if (delivery.isTest) return { kind: 'interrupted test', webhook };
    const foreign = isFromAnotherSite(strapi, webhook);
    if (foreign) await settleArrivedWebhooksLater(strapi);
    if (foreign || !webhook.active) return { kind: 'webhook switched off' };
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
        await store.release([lease]);
        break;
      case 'module switched off':
        await heldBack.hold(lease, decision.enabled);
        break;
      case 'webhook deleted':
    }
    debugLog(strapi)?.(unsentLine(lease, decision.kind));
    return null;
  };

  /**
   * Handlers run beside the recording: one that hangs must not hold the outcomes of others until
   * their leases end. So many at once, no more: memory must not follow a slow handler.
   */
  const telling = new Set<Promise<void>>();
  let untold = 0;
  const tell = async (recorded: readonly RecordedAttempt[]): Promise<void> => {
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
    reserveMs: leaseTimes(options.timeoutMs).reserveMs,
    pollMs: options.pollSeconds * 1000,
    announce: (webhook) => announceDeliveries(strapi, webhook),
    perform,
    healthy: ({ result }) => result.ok,
    record: (made) => recordAttempts(strapi, made, tell),
    onClaimed: (leases) => debugEach(strapi, leases, claimedLine),
    onGivenBack: (leases) => debugEach(strapi, leases, (one) => unsentLine(one, 'no time left')),
  });

  return {
    ...worker,
    async stop() {
      await worker.stop();
      await Promise.all(telling);
    },
  };
};
