'use strict';

/** Types of the test site that keep little of what a contact, a tag and a campaign have. */
module.exports = {
  webhooks: { dispatch: false, allowPrivateNetworks: true },
  sources: {
    contact: {
      contentType: 'api::lead.lead',
      fields: { email: 'mail', first_name: 'givenName', phone: 'telephone' },
    },
    // It keeps a status and no counts.
    campaign: {
      contentType: 'api::key.key',
      fields: { title: 'title', status: 'handle' },
    },
  },
  forms: [
    {
      contentType: 'api::guest.guest',
      title: 'Guest book',
      fields: {
        email: 'mail',
        first_name: () => 'Ada',
        job_title: () => 'Countess',
        status: () => 'subscribed',
        'fields.size': () => 'XL',
      },
    },
  ],
};
