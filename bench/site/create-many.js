'use strict';

const { contact } = require('./contact');

/**
 * Creates records of several types, each with one call.
 * @returns milliseconds that the call took, for each type.
 */
module.exports = async ({ strapi, args: { uids, count } }) => {
  const took = [];
  for (const uid of uids) {
    const data = Array.from({ length: count }, contact);
    const started = performance.now();
    await strapi.db.query(uid).createMany({ data });
    took.push(performance.now() - started);
  }
  return took;
};
