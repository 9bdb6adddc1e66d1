import type { Core } from '@strapi/strapi';
import { getOptions } from '../config';
import type { Detached } from '../database/connection';
import { createWorker, type Worker } from '../queue/worker';
import type { Claimed } from '../queue/types';
import { leaseTimes, getOutbox } from './outbox';
import { type MadeAttempt, type RecordedAttempt, recordAttempts, tellDelivered } from './record';
import { createRowLoader } from './row-loader';
import type { AttemptResult, Sender } from './sender';
import type { DeliveryRow } from './tables';

const TELL_AT_ONCE = 1000;

/** A test that a crash interrupted is not sent late: whoever pressed the button has long gone. */
const interrupted = (): AttemptResult => ({
  ok: false,
  endedAt: Date.now(),
  attempt: {
    at: new Date().toISOString().replace('Z', '+00:00'),
    request: { url: '', headers: {} },
    answer: null,
    error: 'interrupted',
    duration_ms: 0,
    manual: true,
  },
});

/** Sends what is due, from this node. */
export const createDispatcher = (
  strapi: Core.Strapi,
  sender: Sender,
  detached: Detached
): Worker => {
  const options = getOptions(strapi).webhooks;
  const { queue } = getOutbox(strapi);
  const loadWebhook = createRowLoader(strapi);

  const perform = async (claimed: Claimed): Promise<MadeAttempt | null> => {
    const webhook = await loadWebhook(claimed.group);
    if (!webhook) return null; // Deleted with its log a moment ago.
    const row = claimed.row as unknown as DeliveryRow;
    if (row.is_test) return { claimed, webhook, result: interrupted() };
    if (!webhook.active) {
      await queue.release([claimed]);
      return null;
    }
    return {
      claimed,
      webhook,
      result: await sender.attempt(row, webhook, row.status !== 'pending'),
    };
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

  const worker = createWorker<MadeAttempt>({
    name: 'switchboard deliveries',
    queue,
    log: strapi.log,
    detached,
    concurrency: options.concurrency,
    concurrencyPerGroup: options.concurrencyPerWebhook,
    reserveMs: leaseTimes(options.timeoutMs).reserveMs,
    maxSleepMs: options.pollSeconds * 1000,
    perform,
    healthy: ({ result }) => result.ok,
    async record(outcomes) {
      await tell(await recordAttempts(strapi, outcomes));
    },
  });

  return {
    wake: worker.wake,
    async stop() {
      await worker.stop();
      await Promise.all(telling);
    },
  };
};
