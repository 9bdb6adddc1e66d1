import { setTimeout as pause } from 'node:timers/promises';
import { costsOf } from '../lib/costs.mjs';
import { compare, median, percentile } from '../lib/measure.mjs';

const EVENT = 'bench.event';
const QUEUED = 5000;
/** The default of `webhooks.concurrencyPerWebhook`; the got loop keeps as many under way. */
const CONCURRENCY = 16;

/** Passes before those that count. */
const WARMING = 2;

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
const IDLE_POSTS = 300;
const IDLE_WARM_UP = 100;
const IDLE_MS = 60;

const WITH_NODE = { webhooks: { client: 'node' } };

const NODE_TOO = "the same with webhooks.client 'node'";

export const rows = ({ database, inSite, inSiteWith, receiver, rounds, site }) => {
  const withWebhooks = async (count, work, run = inSite) => {
    const { url } = await receiver();
    const ids = await run('webhooks', { op: 'create', url, event: EVENT, count });
    try {
      return await work(ids, url);
    } finally {
      await run('webhooks', { op: 'remove', ids });
    }
  };

  /** So many events to so many webhooks against the best loop of got, both in the same site. */
  const againstGot = ({ events, webhooks, concurrency }, run, running) =>
    withWebhooks(
      webhooks,
      async (webhookIds, url) => {
        const costs = costsOf(database, running);
        const queueing = [];
        const loop = async (count) =>
          (count / (await run('got-loop', { url, event: EVENT, count, concurrency }))) * 1000;
        const send = (count) => run('deliveries', { event: EVENT, count, webhookIds });
        // Both as they run once their code is compiled.
        for (let pass = 0; pass < WARMING; pass += 1) {
          await loop(QUEUED);
          await send(events);
        }
        const result = await compare(rounds, {
          async value() {
            const { deliveries, queueMs, drainMs } = await costs.spend(() => send(events));
            queueing.push((deliveries / queueMs) * 1000);
            return (deliveries / drainMs) * 1000;
          },
          baseline: () => loop(QUEUED),
        });
        const queued = `queued at ${Math.round(median(queueing))}/s before that`;
        return { ...result, note: [queued, costs.note()].filter(Boolean).join('; ') };
      },
      run
    );

  const ONE = { events: QUEUED, webhooks: 1, concurrency: CONCURRENCY };
  const FAN_OUT = {
    events: FAN_OUT_EVENTS,
    webhooks: FAN_OUT_WEBHOOKS,
    concurrency: NODE_CONCURRENCY,
  };

  const sending = (name, said, [onSqlite, elsewhere], shape, options) => ({
    name,
    what: `${said}; the best loop of got`,
    unit: '/s',
    budget: { min: database === 'sqlite' ? onSqlite : elsewhere },
    run: () =>
      options
        ? inSiteWith(options, (run, other) => againstGot(shape, run, other))
        : againstGot(shape, inSite, site),
  });

  const idle = (name, said, share, most) => ({
    name,
    what: `from a commit until its post is at the receiver, idle, ${said}; from the call of a bare got`,
    unit: 'ms',
    budget: { max: most, of: 'value' },
    run: () =>
      withWebhooks(1, async (_ids, url) => {
        const { last } = await receiver();
        /** How long posts took, of which the given share took no longer; the first ones are to warm up. */
        const typical = async (op, count) => {
          const took = [];
          for (let post = 0; post < count; post += 1) {
            const { from } = await inSite('one-post', { op, url, event: EVENT });
            await pause(IDLE_MS);
            took.push((await last()) - from);
          }
          return percentile(took, share);
        };
        await typical('publish', IDLE_WARM_UP);
        await typical('got', IDLE_WARM_UP);
        return compare(rounds, {
          value: () => typical('publish', IDLE_POSTS),
          baseline: () => typical('got', IDLE_POSTS),
        });
      }),
  });

  return [
    sending('deliveries', `deliveries, ${QUEUED} queued, sent and recorded`, [1, 0.9], ONE),
    sending('deliveries-node', NODE_TOO, [1.6, 1.4], ONE, WITH_NODE),
    sending(
      'fan-out',
      `deliveries, ${FAN_OUT_EVENTS} events to ${FAN_OUT_WEBHOOKS} webhooks, sent and recorded`,
      [1, 0.9],
      FAN_OUT
    ),
    sending('fan-out-node', NODE_TOO, [1.5, 1.3], FAN_OUT, WITH_NODE),
    {
      name: 'many-webhooks',
      what: `deliveries, ${QUEUED} over ${MANY_WEBHOOKS} webhooks; over one`,
      unit: '/s',
      budget: { min: 0.9 },
      run: async () => {
        const drain = (webhookCount) =>
          withWebhooks(webhookCount, async (webhookIds) => {
            const args = { event: EVENT, count: QUEUED / webhookCount, webhookIds };
            const { deliveries, drainMs } = await inSite('deliveries', args);
            return (deliveries / drainMs) * 1000;
          });
        // As above: code that has just been loaded is several times slower.
        for (let pass = 0; pass < WARMING; pass += 1) await drain(MANY_WEBHOOKS);
        return compare(rounds, { value: () => drain(MANY_WEBHOOKS), baseline: () => drain(1) });
      },
    },
    idle('commit-to-socket', 'median', 0.5, 1.5),
    idle('commit-to-socket-p99', 'p99', 0.99, 5),
    {
      name: 'slow-webhook',
      what: `deliveries of one webhook that takes ${SLOW_MS} ms, ${NODE_CONCURRENCY} at once; the best loop of got`,
      unit: '/s',
      // Or as many as the machine lets a client make.
      budget: { min: 1200, of: 'value', or: 0.95 },
      run: () =>
        inSiteWith({ webhooks: { concurrencyPerWebhook: NODE_CONCURRENCY } }, (run) =>
          withWebhooks(
            1,
            async (webhookIds, url) => {
              const { configure } = await receiver();
              await configure({ delayMs: SLOW_MS });
              try {
                const drain = async (count) => {
                  const args = { event: EVENT, count, webhookIds };
                  const { deliveries, drainMs } = await run('deliveries', args);
                  return (deliveries / drainMs) * 1000;
                };
                const loop = async (count) => {
                  const args = { url, event: EVENT, count, concurrency: NODE_CONCURRENCY };
                  return (count / (await run('got-loop', args))) * 1000;
                };
                await drain(500);
                await loop(500);
                return await compare(rounds, {
                  value: () => drain(QUEUED),
                  baseline: () => loop(QUEUED),
                });
              } finally {
                await configure({ delayMs: 0 });
              }
            },
            run
          )
        ),
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
