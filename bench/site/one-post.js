'use strict';

const { dataOf } = require('./deliveries');

/**
 * One post: of an event that is published, or by got alone. Ends once it is on its way.
 * @returns when it was committed or called, epoch milliseconds with fractions
 */
module.exports = async ({ strapi, args: { op, url, event } }) => {
  const now = () => performance.timeOrigin + performance.now();
  const data = dataOf(1);
  if (op === 'publish') {
    await strapi.service('plugin::switchboard.publisher').publish([{ event, data }]);
    return { from: now() };
  }
  const { got } = await import('got');
  const from = now();
  await got.post(url, { json: data });
  return { from };
};
