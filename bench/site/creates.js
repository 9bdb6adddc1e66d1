'use strict';

const { contact } = require('./contact');

/**
 * Creates records of several types one after the other, a record of each at a time.
 * @returns milliseconds that one took, for each type.
 */
module.exports = async ({ strapi, args: { uids, count } }) => {
  const took = uids.map(() => 0);
  for (let made = 0; made < count; made += 1) {
    // By lot: whoever comes second may find the processor warmer, and collections of garbage, which come
    // every so many creates, would keep meeting the same type.
    const first = Math.floor(Math.random() * uids.length);
    for (let turn = 0; turn < uids.length; turn += 1) {
      const at = (turn + first) % uids.length;
      const started = performance.now();
      await strapi.documents(uids[at]).create({ data: contact() });
      took[at] += performance.now() - started;
    }
  }
  return took.map((milliseconds) => milliseconds / count);
};
