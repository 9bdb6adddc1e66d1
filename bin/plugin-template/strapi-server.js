'use strict';

const { declareEvents } = require('./server/declare-events');
const { createEvents } = require('./server/events');

/**
 * A plugin of this site. It needs no build: Strapi loads this file as it is.
 *
 * `declare-events.js` says which events there are, so that webhooks can choose them; `events.js` sends
 * them. More that a plugin of Switchboard can do is in docs/plugin-developers.md of
 * strapi-plugin-switchboard.
 */
module.exports = {
  /**
   * Switchboard makes its hooks in `register()`: in every plugin's `bootstrap()` they are there.
   *
   * @param {{ strapi: import('@strapi/strapi').Core.Strapi }} context
   */
  bootstrap({ strapi }) {
    if (strapi.plugin('switchboard')) declareEvents(strapi);
  },
  services: {
    /** `strapi.plugin('plugin-name').service('events')` */
    events: createEvents,
  },
};
