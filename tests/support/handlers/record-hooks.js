'use strict';

/**
 * Registers one handler for each extension hook that notes what it was given, in
 * `state.hooks[<name>]`. `args.returns` may give what a filter answers instead of its argument:
 * `{ service_crm_webhook_payload: null }`; `args.only` limits the hooks.
 */
const HOOKS = [
  'service_crm_webhook_events',
  'service_crm_webhook',
  'service_crm_webhook_payload',
  'service_crm_webhook_request_args',
  'service_crm_webhook_delivered',
  'service_crm_webhook_allow_local',
  'service_crm_webhook_log_days',
];

module.exports = ({ strapi, state, args = {} }) => {
  state.hooks ??= {};
  for (const name of args.only ?? HOOKS) {
    state.hooks[name] ??= [];
    strapi.hook(name).register((argument) => {
      state.hooks[name].push(structuredClone(argument));
      return Object.hasOwn(args.returns ?? {}, name) ? args.returns[name] : argument;
    });
  }
};
