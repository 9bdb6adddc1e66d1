'use strict';

const { contact } = require('./contact');

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
