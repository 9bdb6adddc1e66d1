import { once } from 'node:events';
import http from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { median } from './measure.mjs';

const REQUESTS_A_SECOND = 100;

const timedGet = async (options) => {
  const started = performance.now();
  const request = http.get(options);
  const [response] = await once(request, 'response');
  response.resume();
  await once(response, 'end');
  if (response.statusCode !== 200) throw new Error(`GET answered ${response.statusCode}`);
  return performance.now() - started;
};

/** What to get of a site: a page of its own, with an API token. */
export const labelsOf = ({ port, apiToken }) => ({
  port,
  host: '127.0.0.1',
  path: '/api/labels',
  headers: { authorization: `Bearer ${apiToken}` },
});

const ONE_BY_ONE = 300;

/** How many requests a second keep the site busy for a share of its time. */
export const paceFor = async (options, share) => {
  const agent = new http.Agent({ keepAlive: true });
  const took = [];
  while (took.length < ONE_BY_ONE) took.push(await timedGet({ ...options, agent }));
  agent.destroy();
  return (share * 1000) / median(took);
};

/**
 * Requests at a fixed pace, whether the site keeps up or not, while `goesOn(seconds)` says so.
 * @returns their milliseconds.
 */
export const visit = async (options, goesOn, pace = REQUESTS_A_SECOND) => {
  // Of its own each time: the site closes connections that were idle between two visits.
  const agent = new http.Agent({ keepAlive: true });
  const started = performance.now();
  const under = [];
  for (let at = 0; goesOn(at / pace); at += 1) {
    const wait = started + (at * 1000) / pace - performance.now();
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
