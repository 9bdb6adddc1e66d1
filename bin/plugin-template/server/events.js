'use strict';

/**
 * @typedef {import('@strapi/strapi').Core.Strapi} Strapi
 * @typedef {import('strapi-plugin-switchboard/strapi-server').SwitchboardServices} Services
 */

/**
 * Sends the plugin's events: within the transaction that is open, if one is, so that an event exists
 * exactly if what it tells was committed. Each answers how many deliveries were queued: none if no
 * webhook asked.
 *
 * @param {{ strapi: Strapi }} context
 */
const createEvents = ({ strapi }) => {
  /**
   * @param {string} event
   * @param {object} data
   * @returns {Promise<number>}
   */
  const send = async (event, data) => {
    if (!strapi.plugin('switchboard')) return 0;
    const uid = 'plugin::switchboard.events';
    const events = /** @type {Services[typeof uid]} */ (
      /** @type {unknown} */ (strapi.service(uid))
    );
    return events.send(event, data);
  };

  return {
    /** @param {{ id: string, label: string }} item */
    itemAdded: ({ id, label }) =>
      send('plugin-name.item_added', { id, label, added_at: new Date().toISOString() }),

    /** @param {{ id: string }} item */
    itemRemoved: ({ id }) =>
      send('plugin-name.item_removed', { id, removed_at: new Date().toISOString() }),
  };
};

module.exports = { createEvents };
