'use strict';

const { registerHandlers } = require('./server/handlers');
const routes = require('./server/routes');

/**
 * A plugin as somebody else would write it: it adds an event of its own to Switchboard's catalogue,
 * sends it, and takes part in how webhooks are sent. Switchboard creates its hooks in `register()`,
 * so they are there in every plugin's `bootstrap()`.
 */
module.exports = {
  bootstrap({ strapi }) {
    registerHandlers(strapi);
  },
  routes,
  controllers: {
    demo: ({ strapi }) => ({
      /** `POST /api/hooks-demo/wave` `{ "name": "Grace" }`: sends the plugin's own event. */
      async wave(ctx) {
        const name = String(ctx.request.body?.name ?? 'somebody');
        await strapi
          .hook('service_crm_webhook')
          .call({ event: 'hooks_demo.waved', data: { name, at: new Date().toISOString() } });
        ctx.body = { sent: true };
      },

      /** `GET /api/hooks-demo/attempts`: what `service_crm_webhook_delivered` has seen. */
      async attempts(ctx) {
        ctx.body = strapi.plugin('hooks-demo').service('tally').read();
      },
    }),
  },
  services: {
    tally() {
      const counts = { ok: 0, failed: 0 };
      return {
        add: (ok) => {
          counts[ok ? 'ok' : 'failed'] += 1;
        },
        read: () => ({ ...counts }),
      };
    },
  },
};
