'use strict';

const { setTimeout: pause } = require('node:timers/promises');
const { dataOf } = require('./deliveries');

const EVENT = 'bench.host';

/** Sends events through the host's own webhooks. @returns milliseconds until the last answer. */
module.exports = async ({ strapi, args: { urls, count } }) => {
  const runner = strapi.get('webhookRunner');
  const webhooks = urls.map((url, id) => ({
    id: `bench-${id}`,
    url,
    headers: {},
    events: [EVENT],
    isEnabled: true,
  }));
  for (const webhook of webhooks) runner.add(webhook);
  try {
    const started = performance.now();
    for (let serial = 0; serial < count; serial += 1) {
      await strapi.eventHub.emit(EVENT, { entry: dataOf(serial) });
    }
    while (runner.queue.running > 0) await pause(2);
    return performance.now() - started;
  } finally {
    for (const webhook of webhooks) runner.remove(webhook);
  }
};
