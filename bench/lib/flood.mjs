import { once } from 'node:events';
import http from 'node:http';

const CONCURRENCY = 32;

const post = async (options, { body, headers }, expected) => {
  const request = http.request({ ...options, method: 'POST', headers });
  request.end(body);
  const [response] = await once(request, 'response');
  response.resume();
  await once(response, 'end');
  if (response.statusCode !== expected) {
    throw new Error(`${options.path} answered ${response.statusCode}`);
  }
};

/**
 * Posts prepared requests (`{ body, headers }`), so many at once.
 * @returns requests a second.
 */
export const flood = async (site, route, requests, expected) => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: CONCURRENCY });
  const options = { host: '127.0.0.1', port: site.port, path: route, agent };
  const waiting = [...requests];
  const started = performance.now();
  const worker = async () => {
    for (let next = waiting.pop(); next; next = waiting.pop()) await post(options, next, expected);
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  const rate = (requests.length / (performance.now() - started)) * 1000;
  agent.destroy();
  return rate;
};
