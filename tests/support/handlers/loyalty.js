'use strict';

/**
 * A site's setup file with a handler on each extension hook, as a plugin would have them. What they
 * were given is in `state.seen`; `state.mode` makes them misbehave: `throw`, `hang`, `forge`,
 * `logDays`.
 */
const state = () => global.switchboardTestState ?? {};
const mode = () => state().mode ?? {};

const note = (name, value) => {
  state().seen?.push({ name, value: structuredClone(value) });
  if (mode().throw) throw new Error(`${name} broke`);
};

const FORGED = {
  'X-Service-Signature': 'sha256=00',
  'X-Service-Timestamp': '1',
  'x-service-event': 'forged',
  'webhook-id': 'forged',
  'webhook-signature': 'v1,forged',
  Host: 'forged.example.test',
  'Content-Length': '3',
  'Transfer-Encoding': 'chunked',
  'content-type': 'text/plain',
};

module.exports = {
  bootstrap({ strapi }) {
    strapi.hook('service_crm_webhook_events').register(function loyaltyEvents(map) {
      return { ...map, 'loyalty.earned': { label: 'Points earned', group: 'Loyalty' } };
    });
    strapi.hook('service_crm_webhook_payload').register(function loyaltyPayload(value) {
      note('service_crm_webhook_payload', value);
      if (value.webhook.name === 'skipped') return null;
      if (value.webhook.name === 'changed') value.payload.extra = 'changed';
      return value;
    });
    strapi.hook('service_crm_webhook_request_args').register(function loyaltyRequest(value) {
      note('service_crm_webhook_request_args', value);
      Object.assign(value.args.headers, {
        'X-Shop': 'north',
        Authorization: 'Bearer of-the-receiver',
        ...(mode().forge && FORGED),
      });
      if (mode().forge) value.args.body = '{"forged":true}';
      return value;
    });
    strapi.hook('service_crm_webhook_delivered').register(function loyaltyDelivered(value) {
      note('service_crm_webhook_delivered', value);
      return mode().hang ? new Promise(() => {}) : undefined;
    });
    strapi.hook('service_crm_webhook_log_days').register(function loyaltyLogDays(days) {
      return mode().logDays ?? days;
    });
  },
};
