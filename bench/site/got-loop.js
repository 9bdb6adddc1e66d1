'use strict';

const http = require('node:http');
const { randomUUID } = require('node:crypto');
const { dataOf } = require('./deliveries');

let client;

/**
 * got as fast as a careful programmer gets it: one instance, connections kept, no option that a request
 * need not say, and as a stream, which is a third faster than its promises.
 */
const load = async (concurrency) => {
  const { got } = await import('got');
  return got.extend({
    method: 'POST',
    isStream: true,
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

/** Posts and reads the whole answer. */
const post = (url, body) =>
  new Promise((resolve, reject) => {
    const chunks = [];
    client(url, { headers: HEADERS, body })
      .on('data', (chunk) => chunks.push(chunk))
      .on('error', reject)
      .on('end', () => resolve(Buffer.concat(chunks).toString('utf8')));
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
      await post(url, body);
    }
  };
  const started = performance.now();
  await Promise.all(Array.from({ length: concurrency }, lane));
  return performance.now() - started;
};
