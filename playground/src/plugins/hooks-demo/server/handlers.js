'use strict';

const registerHandlers = (strapi) => {
  // 1. A filter over the map of events: what webhooks can choose. `*` subscribers get it as well.
  strapi.hook('service_crm_webhook_events').register((events) => ({
    ...events,
    'hooks_demo.waved': {
      label: 'Somebody waved',
      group: 'Hooks demo',
      description: 'Sent by POST /api/hooks-demo/wave.',
      schema: {
        type: 'object',
        required: ['name', 'at'],
        properties: {
          name: { type: 'string' },
          at: { type: 'string' },
          greeting: { type: 'string' },
        },
      },
      example: { name: 'Grace', at: '2026-01-31T09:30:00.000Z', greeting: 'Hello, Grace' },
    },
  }));

  // 2. An action: its handlers hear every event there is, once it is committed. (The controller
  //    calls it, which sends an event.)
  strapi.hook('service_crm_webhook').register(({ event }) => {
    strapi.log.debug(`hooks-demo: ${event} happened`);
  });

  // 3. A filter over an event's data, for each webhook before it is queued: change it, or return
  //    null and this webhook is skipped.
  strapi.hook('service_crm_webhook_payload').register((value) => {
    if (value.event !== 'hooks_demo.waved') return value;
    if (value.payload.name === 'nobody') return null;
    return { ...value, payload: { ...value.payload, greeting: `Hello, ${value.payload.name}` } };
  });

  // 4. A filter over each HTTP request, before it is signed. The signed body and the signature's
  //    own headers cannot be changed.
  strapi.hook('service_crm_webhook_request_args').register((value) => ({
    ...value,
    args: { ...value.args, headers: { ...value.args.headers, 'x-sent-by': 'playground' } },
  }));

  // 5. An action after every attempt, whatever came of it.
  strapi.hook('service_crm_webhook_delivered').register(({ delivery_id, result, webhook }) => {
    strapi.plugin('hooks-demo').service('tally').add(result.ok);
    strapi.log.debug(`hooks-demo: ${delivery_id} to ${webhook.name}: ${result.status}`);
  });

  // 6. A filter that allows receivers in private networks; asked each time. The options of
  //    config/plugins.js already allow this computer, so this only answers for a whole network.
  strapi
    .hook('service_crm_webhook_allow_local')
    .register((allowed) => allowed || process.env.PLAYGROUND_ALLOW_LOCAL === '1');

  // 7. A filter over how many days finished deliveries are kept.
  strapi.hook('service_crm_webhook_log_days').register((days) => Math.min(days, 14));
};

module.exports = { registerHandlers };
