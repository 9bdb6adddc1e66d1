'use strict';

let serial = 0;

const contact = () => {
  serial += 1;
  return {
    email: `bench-${serial}@example.test`,
    first_name: 'Grace',
    last_name: `Hopper ${serial}`,
    phone: '+1 555 0100',
    job_title: 'Rear admiral',
    contact_status: 'subscribed',
    lifecycle_stage: 'customer',
    address: { line1: '1 Harbour Road', city: 'Arlington', country: 'US' },
    score: serial % 100,
    source: 'bench',
    fields: { plan: 'gold', seats: 12 },
  };
};

/**
 * Creates records of several types one after the other, a record of each by turns.
 * @returns milliseconds that one took, for each type.
 */
module.exports = async ({ strapi, args: { uids, count } }) => {
  const took = uids.map(() => 0);
  for (let made = 0; made < count; made += 1) {
    for (let turn = 0; turn < uids.length; turn += 1) {
      // Whoever comes second may find the processor warmer: not always the same one.
      const at = (turn + made) % uids.length;
      const started = performance.now();
      await strapi.documents(uids[at]).create({ data: contact() });
      took[at] += performance.now() - started;
    }
  }
  return took.map((milliseconds) => milliseconds / count);
};
