'use strict';

const { dataOf } = require('./deliveries');

/** The event of the route; setup.js registers it. */
const EVENT = 'bench.event';

/** A route that checks the API token and publishes one event. */
module.exports = {
  bootstrap({ strapi }) {
    const handler = async (ctx) => {
      await strapi.service('plugin::switchboard.events').send(EVENT, dataOf(1));
      ctx.status = 202;
      ctx.body = { ok: true };
    };
    strapi.server.routes({
      type: 'content-api',
      prefix: '/bench-publish',
      routes: [{ method: 'POST', path: '/', handler }],
    });
  },
};
