'use strict';

let serial = 0;

/** A contact like many, with an address of its own. */
module.exports.contact = () => {
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
