'use strict';

const { setTimeout: pause } = require('node:timers/promises');

/** About what a contact's event weighs. */
const dataOf = (serial) => ({
  contact: {
    id: `bench${serial}`,
    email: `bench-${serial}@example.test`,
    first_name: 'Grace',
    last_name: `Hopper ${serial}`,
    phone: '+1 555 0100',
    job_title: 'Rear admiral',
    status: 'subscribed',
    address: { line1: '1 Harbour Road', city: 'Arlington', country: 'US' },
    fields: { plan: 'gold', seats: 12 },
    dates: { created_at: '2030-01-31T09:15:00.000+00:00' },
  },
});

/** The newest attempt, which costs a database next to nothing to tell, however many rows have come and gone. */
const lastAttempt = async (strapi) => {
  const [{ last }] = await strapi.db.connection('switchboard_attempts').max({ last: 'id' });
  return Number(last ?? 0);
};

/**
 * Queues `count` events in one transaction and waits until every delivery has been sent and
 * recorded. @returns milliseconds, of queueing and of draining, and how many deliveries were sent.
 */
module.exports = async ({ strapi, args: { event, count, webhookIds } }) => {
  const publisher = strapi.service('plugin::switchboard.publisher');
  const events = Array.from({ length: count }, (_, serial) => ({ event, data: dataOf(serial) }));
  const before = await lastAttempt(strapi);
  const started = performance.now();
  const deliveries = await publisher.publish(events);
  const queued = performance.now();
  // Each is answered at its first attempt: as many are recorded as there are deliveries.
  while ((await lastAttempt(strapi)) < before + deliveries) await pause(10);
  const drained = performance.now();
  const [{ sent }] = await strapi.db
    .connection('switchboard_deliveries')
    .whereIn('webhook_id', webhookIds)
    .where({ status: 'sent' })
    .count({ sent: '*' });
  await strapi.db.connection('switchboard_deliveries').whereIn('webhook_id', webhookIds).delete();
  if (Number(sent) !== deliveries) throw new Error(`${sent} of ${deliveries} were sent`);
  return { deliveries, queueMs: queued - started, drainMs: drained - queued };
};

module.exports.dataOf = dataOf;
