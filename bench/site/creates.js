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

/** Creates records one after the other, as code does. @returns milliseconds each. */
module.exports = async ({ strapi, args: { uid, count } }) => {
  const documents = strapi.documents(uid);
  const started = performance.now();
  for (let made = 0; made < count; made += 1) await documents.create({ data: contact() });
  return (performance.now() - started) / count;
};
