'use strict';

/** @typedef {import('strapi-plugin-switchboard/strapi-server').EventMap} EventMap */

/**
 * The events that webhooks can choose. A name begins with the plugin's; `schema` is the JSON Schema of
 * the event's data, and `example` what "Send a test" sends.
 *
 * @type {EventMap}
 */
const EVENTS = {
  'plugin-name.item_added': {
    label: 'Item added',
    group: 'Plugin title',
    description: 'Something was added to the list.',
    schema: {
      type: 'object',
      required: ['id', 'label', 'added_at'],
      properties: {
        id: { type: 'string' },
        label: { type: 'string' },
        added_at: { type: 'string', format: 'date-time' },
      },
    },
    example: { id: 'c3k8', label: 'A first item', added_at: '2026-01-31T09:30:00.000Z' },
  },
  'plugin-name.item_removed': {
    label: 'Item removed',
    group: 'Plugin title',
    description: 'Something was taken from the list.',
    schema: {
      type: 'object',
      required: ['id', 'removed_at'],
      properties: {
        id: { type: 'string' },
        removed_at: { type: 'string', format: 'date-time' },
      },
    },
    example: { id: 'c3k8', removed_at: '2026-01-31T17:45:00.000Z' },
  },
};

/** @param {import('@strapi/strapi').Core.Strapi} strapi */
const declareEvents = (strapi) => {
  strapi.hook('service_crm_webhook_events').register(
    /** @param {EventMap} events */
    function addEvents(events) {
      return { ...events, ...EVENTS };
    }
  );
};

module.exports = { EVENTS, declareEvents };
