'use strict';

const { dataOf } = require('./deliveries');

/** setup.js registers the event, and makes the type. */
const EVENT = 'bench.event';
const PLAIN = 'api::bench-plain.bench-plain';

/**
 * Two routes of the same Strapi that check the API token and answer alike. `/bench-publish` publishes one event;
 * `/bench-row` writes one row of the host's own, which is the least that anything costs that keeps what it is
 * sent.
 */
module.exports = {
  bootstrap({ strapi }) {
    const { email, first_name, last_name, phone } = dataOf(1).contact;
    const works = {
      '/bench-publish': () => strapi.service('plugin::switchboard.events').send(EVENT, dataOf(1)),
      '/bench-row': () =>
        strapi.db.query(PLAIN).create({ data: { email, first_name, last_name, phone } }),
    };
    for (const [prefix, work] of Object.entries(works)) {
      const handler = async (ctx) => {
        await work();
        ctx.status = 202;
        ctx.body = { ok: true };
      };
      const routes = [{ method: 'POST', path: '/', handler }];
      strapi.server.routes({ type: 'content-api', prefix, routes });
    }
  },
};
