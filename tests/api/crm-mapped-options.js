'use strict';

/** The test site's own types as the CRM's, with computed fields, which JSON cannot carry. */
module.exports = {
  webhooks: { dispatch: false, allowPrivateNetworks: true },
  sources: {
    contact: {
      contentType: 'api::lead.lead',
      fields: {
        email: 'mail',
        first_name: 'givenName',
        last_name: 'familyName',
        phone: 'telephone',
        score: 'points',
        company_id: 'firm',
        tags: 'labels',
        status: ({ vip }) => (vip ? 'subscribed' : 'pending'),
        'fields.headline': 'headline',
        'fields.shout': ({ givenName }) => {
          if (givenName === 'Boom') throw new Error('a computed field failed');
          return givenName ? givenName.toUpperCase() : null;
        },
      },
    },
    tag: { contentType: 'api::label.label', fields: { slug: 'handle', name: 'title' } },
    company: { contentType: 'api::firm.firm', fields: { name: 'title', website: 'web' } },
  },
};
