import { compare, median } from '../lib/measure.mjs';

const EVENT = 'bench.event';
const QUEUED = 5000;
/** The default of `webhooks.concurrencyPerWebhook`; the got loop keeps as many under way. */
const CONCURRENCY = 16;

const SLOW_MS = 50;
const SLOW_RECEIVERS = 4;
const SLOW_EVENTS = 300;
const HOST_EVENTS = 40;

export const rows = ({ inSite, receiver, rounds }) => {
  const withWebhooks = async (count, work) => {
    const { url } = await receiver();
    const ids = await inSite('webhooks', { op: 'create', url, event: EVENT, count });
    try {
      return await work(ids, url);
    } finally {
      await inSite('webhooks', { op: 'remove', ids });
    }
  };

  return [
    {
      name: 'deliveries',
      what: `deliveries, ${QUEUED} queued, sent and recorded; a bare got loop`,
      unit: '/s',
      budget: (database) => (database === 'mysql' ? undefined : { min: 0.5 }),
      run: () =>
        withWebhooks(1, async (webhookIds, url) => {
          const queueing = [];
          await inSite('got-loop', { url, event: EVENT, count: 500, concurrency: CONCURRENCY });
          await inSite('deliveries', { event: EVENT, count: 500, webhookIds });
          const result = await compare(rounds, {
            async value() {
              const { deliveries, queueMs, drainMs } = await inSite('deliveries', {
                event: EVENT,
                count: QUEUED,
                webhookIds,
              });
              queueing.push((deliveries / queueMs) * 1000);
              return (deliveries / drainMs) * 1000;
            },
            async baseline() {
              const count = QUEUED;
              const args = { url, event: EVENT, count, concurrency: CONCURRENCY };
              return (count / (await inSite('got-loop', args))) * 1000;
            },
          });
          return { ...result, note: `queued at ${Math.round(median(queueing))}/s before that` };
        }),
    },
    {
      name: 'slow-receivers',
      what: `deliveries to ${SLOW_RECEIVERS} receivers that take ${SLOW_MS} ms; the host's own webhooks`,
      unit: '/s',
      budget: { min: 5 },
      run: () =>
        withWebhooks(SLOW_RECEIVERS, async (webhookIds, url) => {
          const { configure } = await receiver();
          await configure({ delayMs: SLOW_MS });
          try {
            return await compare(rounds, {
              async value() {
                const args = { event: EVENT, count: SLOW_EVENTS, webhookIds };
                const { deliveries, queueMs, drainMs } = await inSite('deliveries', args);
                return (deliveries / (queueMs + drainMs)) * 1000;
              },
              async baseline() {
                const urls = Array.from({ length: SLOW_RECEIVERS }, (_, at) => `${url}${at}`);
                const took = await inSite('host-webhooks', { urls, count: HOST_EVENTS });
                return ((HOST_EVENTS * SLOW_RECEIVERS) / took) * 1000;
              },
            });
          } finally {
            await configure({ delayMs: 0 });
          }
        }),
    },
  ];
};
