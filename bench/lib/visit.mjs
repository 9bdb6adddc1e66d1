import { once } from 'node:events';
import http from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

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

/**
 * Requests at a fixed pace, whether the site keeps up or not, while `goesOn(seconds)` says so.
 * @returns their milliseconds.
 */
export const visit = async (options, goesOn) => {
  // Of its own each time: the site closes connections that were idle between two visits.
  const agent = new http.Agent({ keepAlive: true });
  const started = performance.now();
  const under = [];
  for (let at = 0; goesOn(at / REQUESTS_A_SECOND); at += 1) {
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
