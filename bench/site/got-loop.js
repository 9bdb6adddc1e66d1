'use strict';

const http = require('node:http');
const { randomUUID } = require('node:crypto');
const { dataOf } = require('./deliveries');

let client;

/** One instance, few options, connections kept: got as a careful programmer would use it. */
const load = async (concurrency) => {
  const { got } = await import('got');
  return got.extend({
    agent: { http: new http.Agent({ keepAlive: true, maxSockets: concurrency }) },
    retry: { limit: 0 },
    followRedirect: false,
    decompress: false,
    throwHttpErrors: false,
  });
};

const HEADERS = {
  'content-type': 'application/json',
  'x-service-event': 'bench.event',
  'x-service-timestamp': '1900000000',
  'x-service-signature': `sha256=${'0'.repeat(64)}`,
  'webhook-timestamp': '1900000000',
  'webhook-signature': `v1,${'0'.repeat(43)}=`,
};

const bodyOf = (event, serial) =>
  JSON.stringify({
    id: randomUUID(),
    event,
    created_at: '2030-01-31T09:15:00.000+00:00',
    site: 'http://127.0.0.1:1337',
    data: dataOf(serial),
  });

/**
 * Posts bodies of the same size as deliveries have, keeping nothing, recording nothing.
 * @returns milliseconds.
 */
module.exports = async ({ args: { url, event, count, concurrency } }) => {
  client ??= await load(concurrency);
  const bodies = Array.from({ length: count }, (_, serial) => bodyOf(event, serial));
  let at = 0;
  const lane = async () => {
    while (at < bodies.length) {
      const body = bodies[at];
      at += 1;
      await client.post(url, { headers: HEADERS, body });
    }
  };
  const started = performance.now();
  await Promise.all(Array.from({ length: concurrency }, lane));
  return performance.now() - started;
};
