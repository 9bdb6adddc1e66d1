'use strict';

/**
 * Registers handlers on `service_crm_webhook` that note what they hear in `state.heard`: one that
 * throws, one that hangs, one that spoils its copy, then the one that notes.
 */
module.exports = ({ strapi, state }) => {
  state.heard ??= [];
  const hook = strapi.hook('service_crm_webhook');
  state.listeners = [
    function breaking() {
      throw new Error('broke');
    },
    function hanging() {
      return new Promise(() => {});
    },
    function spoiling(value) {
      for (const key of Object.keys(value.data)) delete value.data[key];
      value.event = 'spoilt';
    },
    function noting(value) {
      state.heard.push({ ...value, inTransaction: strapi.db.inTransaction() });
    },
  ];
  for (const handler of state.listeners) hook.register(handler);
};
