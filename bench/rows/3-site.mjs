import { once } from 'node:events';
import http from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { compare, percentile } from '../lib/measure.mjs';

const EVENT = 'bench.event';
const REQUESTS_A_SECOND = 100;
const SECONDS = 3;
/** More than can be sent in that time. */
const BACKLOG = 12_000;

const timedGet = async (options) => {
  const started = performance.now();
  const request = http.get(options);
  const [response] = await once(request, 'response');
  response.resume();
  await once(response, 'end');
  if (response.statusCode !== 200) throw new Error(`GET answered ${response.statusCode}`);
  return performance.now() - started;
};

/** Requests at a fixed pace, whether the site keeps up or not. @returns their milliseconds. */
const visit = async (options) => {
  // Of its own each time: the site closes connections that were idle between two visits.
  const agent = new http.Agent({ keepAlive: true });
  const total = REQUESTS_A_SECOND * SECONDS;
  const started = performance.now();
  const under = [];
  for (let at = 0; at < total; at += 1) {
    const wait = started + (at * 1000) / REQUESTS_A_SECOND - performance.now();
    if (wait > 0) await pause(wait);
    const get = timedGet({ ...options, agent });
    get.catch(() => {}); // Awaited below; a rejection before that must not end the process.
    under.push(get);
  }
  try {
    return await Promise.all(under);
  } finally {
    agent.destroy();
  }
};

export const rows = ({ site, inSite, receiver, rounds }) => [
  {
    name: 'site-get',
    what: 'GET of the site, p99, while deliveries run flat out; idle',
    unit: 'ms',
    budget: { max: 3 },
    async run() {
      const { port, apiToken } = await site();
      const { url } = await receiver();
      const options = {
        port,
        host: '127.0.0.1',
        path: '/api/labels',
        headers: { authorization: `Bearer ${apiToken}` },
      };
      const ids = await inSite('webhooks', { op: 'create', url, event: EVENT });
      try {
        await visit(options);
        return await compare(rounds, {
          async value() {
            // All of it queued before: what is measured is sending, not a bulk write.
            await inSite('backlog', { op: 'fill', event: EVENT, count: BACKLOG });
            const times = await visit(options);
            const left = await inSite('backlog', { op: 'left', webhookIds: ids });
            await inSite('backlog', { op: 'drop', webhookIds: ids });
            if (left === 0) throw new Error('the deliveries ended before the requests');
            return percentile(times, 0.99);
          },
          baseline: async () => percentile(await visit(options), 0.99),
        });
      } finally {
        await inSite('webhooks', { op: 'remove', ids });
      }
    },
  },
];
