import { setTimeout as pause } from 'node:timers/promises';
import { compare, median } from '../lib/measure.mjs';

const EVENT = 'bench.event';
const QUEUED = 5000;
/** The default of `webhooks.concurrencyPerWebhook`; the got loop keeps as many under way. */
const CONCURRENCY = 16;

const FAN_OUT_EVENTS = 400;
const FAN_OUT_WEBHOOKS = 50;
/** The default of `webhooks.concurrency`. */
const NODE_CONCURRENCY = 64;

const MANY_WEBHOOKS = 1000;

const SLOW_MS = 50;
const SLOW_RECEIVERS = 4;
const SLOW_EVENTS = 300;
const HOST_EVENTS = 40;

/** Posts to an idle site, each so many milliseconds after the one before. */
const IDLE_POSTS = 100;
const IDLE_MS = 60;

const WITH_NODE = { webhooks: { client: 'node' } };

export const rows = ({ inSite, inSiteWith, receiver, rounds }) => {
  const withWebhooks = async (count, work, run = inSite) => {
    const { url } = await receiver();
    const ids = await run('webhooks', { op: 'create', url, event: EVENT, count });
    try {
      return await work(ids, url);
    } finally {
      await run('webhooks', { op: 'remove', ids });
    }
  };

  /** Deliveries of one webhook against a bare got loop, both in the site that `run` is given. */
  const againstGot = (run) =>
    withWebhooks(
      1,
      async (webhookIds, url) => {
        const queueing = [];
        await run('got-loop', { url, event: EVENT, count: 500, concurrency: CONCURRENCY });
        await run('deliveries', { event: EVENT, count: 500, webhookIds });
        const result = await compare(rounds, {
          async value() {
            const { deliveries, queueMs, drainMs } = await run('deliveries', {
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
            return (count / (await run('got-loop', args))) * 1000;
          },
        });
        return { ...result, note: `queued at ${Math.round(median(queueing))}/s before that` };
      },
      run
    );

  return [
    {
      name: 'deliveries',
      what: `deliveries, ${QUEUED} queued, sent and recorded; a bare got loop`,
      unit: '/s',
      budget: { min: 0.8 },
      run: () => againstGot(inSite),
    },
    {
      name: 'deliveries-node',
      what: `deliveries with webhooks.client 'node', ${QUEUED} queued, sent and recorded; a bare got loop`,
      unit: '/s',
      budget: { min: 0.8 },
      run: () => inSiteWith(WITH_NODE, againstGot),
    },
    {
      name: 'fan-out',
      what: `deliveries, ${FAN_OUT_EVENTS} events to ${FAN_OUT_WEBHOOKS} webhooks, sent and recorded; a bare got loop`,
      unit: '/s',
      budget: { min: 0.9 },
      run: () =>
        withWebhooks(FAN_OUT_WEBHOOKS, async (webhookIds, url) => {
          await inSite('deliveries', { event: EVENT, count: 10, webhookIds });
          return compare(rounds, {
            async value() {
              const args = { event: EVENT, count: FAN_OUT_EVENTS, webhookIds };
              const { deliveries, drainMs } = await inSite('deliveries', args);
              return (deliveries / drainMs) * 1000;
            },
            async baseline() {
              const args = { url, event: EVENT, count: QUEUED, concurrency: NODE_CONCURRENCY };
              return (QUEUED / (await inSite('got-loop', args))) * 1000;
            },
          });
        }),
    },
    {
      name: 'many-webhooks',
      what: `deliveries, ${QUEUED} over ${MANY_WEBHOOKS} webhooks; over one`,
      unit: '/s',
      budget: { min: 0.9 },
      run: () => {
        const drain = (webhookCount) =>
          withWebhooks(webhookCount, async (webhookIds) => {
            const args = { event: EVENT, count: QUEUED / webhookCount, webhookIds };
            const { deliveries, drainMs } = await inSite('deliveries', args);
            return (deliveries / drainMs) * 1000;
          });
        return compare(rounds, { value: () => drain(MANY_WEBHOOKS), baseline: () => drain(1) });
      },
    },
    {
      name: 'commit-to-socket',
      what: 'from a commit until its post is at the receiver, idle, median; from the call of a bare got',
      unit: 'ms',
      budget: { max: 5, of: 'value' },
      run: () =>
        withWebhooks(1, async (_ids, url) => {
          const { last } = await receiver();
          /** Each post's milliseconds, of which the median; the first ones are to warm up. */
          const typical = async (op, count) => {
            const took = [];
            for (let post = 0; post < count; post += 1) {
              const { from } = await inSite('one-post', { op, url, event: EVENT });
              await pause(IDLE_MS);
              took.push((await last()) - from);
            }
            return median(took);
          };
          await typical('publish', IDLE_POSTS);
          await typical('got', IDLE_POSTS);
          return compare(rounds, {
            value: () => typical('publish', IDLE_POSTS),
            baseline: () => typical('got', IDLE_POSTS),
          });
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
