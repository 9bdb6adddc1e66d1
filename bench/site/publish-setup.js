'use strict';

const { dataOf } = require('./deliveries');

/** The event of the route that publishes; setup.js registers it. */
const EVENT = 'bench.event';

const route = (handler) => ({ method: 'POST', path: '/', handler });

// Two routes of the same Strapi that check the token and answer alike; the first one publishes.
module.exports = {
  bootstrap({ strapi }) {
    const answer = (ctx) => {
      ctx.status = 202;
      ctx.body = { ok: true };
    };
    const publish = async (ctx) => {
      const events = strapi.service('plugin::switchboard.events');
      await events.send(EVENT, dataOf(1));
      answer(ctx);
    };
    strapi.server.routes({
      type: 'content-api',
      prefix: '/bench-publish',
      routes: [route(publish)],
    });
    strapi.server.routes({ type: 'content-api', prefix: '/bench-silent', routes: [route(answer)] });
  },
};
