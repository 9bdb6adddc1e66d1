import type { Core } from '@strapi/strapi';
import { getOptions } from '../config';
import type { Detached } from '../database/connection';
import { createWorker, type Worker } from '../queue/worker';
import type { Claimed } from '../queue/types';
import { leaseTimes, getOutbox } from './outbox';
import { type MadeAttempt, recordAttempts } from './record';
import { createRowLoader } from './row-loader';
import type { AttemptResult, Sender } from './sender';
import type { DeliveryRow } from './tables';

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

  return createWorker<MadeAttempt>({
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
      await recordAttempts(strapi, outcomes);
    },
  });
};
