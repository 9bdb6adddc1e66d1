'use strict';

// The floor under every accepted record: a route of the same Strapi that answers at once.
module.exports = {
  bootstrap({ strapi }) {
    strapi.server.routes({
      type: 'content-api',
      prefix: '/bench-empty',
      routes: [
        {
          method: 'POST',
          path: '/',
          handler(ctx) {
            ctx.status = 202;
            ctx.body = { ok: true };
          },
          config: { auth: false },
        },
      ],
    });
  },
};
