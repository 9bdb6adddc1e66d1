'use strict';

/** A site's setup file that offers two of the events that the host's webhooks have counterparts in. */
const declared = (label) => ({ label, group: 'Entries', schema: { type: 'object' }, example: {} });

module.exports = {
  bootstrap({ strapi }) {
    strapi.hook('service_crm_webhook_events').register((events) => ({
      ...events,
      'entry.created': declared('Entry created'),
      'entry.published': declared('Entry published'),
    }));
  },
};
