import os from 'node:os';
import path from 'node:path';
import { usOf } from '../lib/costs.mjs';
import { compare } from '../lib/measure.mjs';
import { support } from '../lib/support.mjs';

const EVENT = 'bench.event';

const SLOW_MS = 50;
const WORKERS = 4;
/** Attempts under way at once in a worker. */
const AT_ONCE = 16;
/** Enough of them that none of their caps is in the way of four workers. */
const WEBHOOKS = 8;
/** For each webhook, and for each worker that shares them: about five seconds' work. */
const EVENTS = 200;

const QUEUED = 5000;

const inProcessOf = (site) => (name, args) =>
  site.control('run', {
    file: path.resolve(import.meta.dirname, `../site/${name}.js`),
    args: { event: EVENT, ...args },
  });

export const rows = ({ database, receiver, rounds, startSite }) => {
  /** Runs with a Redis of its own; PostgreSQL stands for what several machines share. */
  const withRedis = (work) => async () => {
    const { createRedis, hasRedis } = support('redis');
    if (database !== 'postgres') return { skip: 'on PostgreSQL alone' };
    if (!hasRedis()) return { skip: 'no redis-server' };
    const redis = await createRedis();
    await redis.start();
    const sites = [];
    const start = async (options) => {
      const site = await startSite({ accounts: false, options });
      sites.push(site);
      return site;
    };
    try {
      return await work({ engine: 'bullmq', redis: redis.url }, start);
    } finally {
      for (const site of sites) await site.stop();
      await redis.close();
    }
  };

  const withWorkers = async (site, count, work) => {
    const words = ['--only', 'webhooks', '--concurrency', String(AT_ONCE)];
    const { startWorker } = support('command');
    const starting = Array.from({ length: count }, () => startWorker(site.env(), words));
    const workers = await Promise.all(starting);
    try {
      return await work(workers);
    } finally {
      await Promise.all(workers.map((worker) => worker.stop()));
    }
  };

  /**
   * Deliveries a second of so many workers, and microseconds of the processor that one costs them; what each of
   * them has to do does not depend on how many they are.
   */
  const sending = async (site) => {
    const { url } = await receiver();
    const inSite = inProcessOf(site);
    const webhookIds = await inSite('webhooks', { op: 'create', url, count: WEBHOOKS });
    return (workers) =>
      withWorkers(site, workers, async (processes) => {
        const work = { count: EVENTS * workers, webhookIds };
        await inSite('deliveries', work);
        const spent = () => processes.reduce((sum, { pid }) => sum + usOf(pid), 0);
        const before = spent();
        const { deliveries, drainMs } = await inSite('deliveries', work);
        return { rate: (deliveries / drainMs) * 1000, cost: (spent() - before) / deliveries };
      });
  };

  const toSlowReceivers = async (work) => {
    const { configure } = await receiver();
    await configure({ delayMs: SLOW_MS });
    try {
      return await work();
    } finally {
      await configure({ delayMs: 0 });
    }
  };

  const serving = (options = {}) => ({ ...options, webhooks: { dispatch: false } });

  /** What a delivery cost, by the number of workers and the round: of the passes whose rate was measured. */
  const costs = { [WORKERS]: [], 1: [] };

  const rateOf = (send, workers) => async (round) => {
    const { rate, cost } = await send(workers);
    costs[workers][round] = cost;
    return rate;
  };

  const besideOne = withRedis(async (scheduler, start) => {
    const send = await sending(await start(serving({ scheduler })));
    return toSlowReceivers(() =>
      compare(rounds, { value: rateOf(send, WORKERS), baseline: rateOf(send, 1) })
    );
  });

  const slow = `deliveries to receivers that take ${SLOW_MS} ms, ${AT_ONCE} at once a worker`;

  return [
    {
      name: 'four-workers',
      what: `${slow}: ${WORKERS} workers; one`,
      unit: '/s',
      // With fewer cores the processor is what bounds them.
      budget: os.availableParallelism() > WORKERS ? { min: 3.6 } : undefined,
      run: besideOne,
    },
    {
      name: 'four-workers-cost',
      what: `the processor's time of a delivery of those ${WORKERS} workers; of one`,
      unit: 'us',
      budget: { max: 1.15 },
      run: async () => {
        const rate = costs[1].length === 0 ? await besideOne() : {};
        if (rate.skip) return rate;
        return compare(rounds, {
          value: (round) => costs[WORKERS][round],
          baseline: (round) => costs[1][round],
        });
      },
    },
    {
      name: 'four-workers-redis',
      what: `${slow}: ${WORKERS} workers that hear of work over Redis; ${WORKERS} that look for it`,
      unit: '/s',
      run: withRedis(async (scheduler, start) => {
        const value = await sending(await start(serving({ scheduler })));
        const baseline = await sending(await start(serving()));
        return toSlowReceivers(() =>
          compare(rounds, {
            value: async () => (await value(WORKERS)).rate,
            baseline: async () => (await baseline(WORKERS)).rate,
          })
        );
      }),
    },
    {
      name: 'engine-bullmq',
      what: `deliveries, ${QUEUED} queued, sent and recorded by one process: bullmq; the embedded engine`,
      unit: '/s',
      budget: { min: 0.95 },
      run: withRedis(async (scheduler, start) => {
        const { url } = await receiver();
        const send = async (inSite, webhookIds) => {
          const work = { count: QUEUED, webhookIds };
          const { deliveries, drainMs } = await inSite('deliveries', work);
          return (deliveries / drainMs) * 1000;
        };
        const prepare = async (options) => {
          const inSite = inProcessOf(await start(options));
          const webhookIds = await inSite('webhooks', { op: 'create', url });
          await inSite('deliveries', { count: 500, webhookIds });
          return () => send(inSite, webhookIds);
        };
        const value = await prepare({ scheduler });
        const baseline = await prepare({});
        return compare(rounds, { value, baseline });
      }),
    },
  ];
};
