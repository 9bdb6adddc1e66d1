'use strict';

/** A form of the test site, with a computed field, which JSON cannot carry. */
module.exports = {
  forms: [
    {
      contentType: 'api::inquiry.inquiry',
      title: 'Inquiry',
      fields: {
        email: 'mail',
        first_name: 'firstName',
        last_name: 'lastName',
        status: ({ newsletter }) => (newsletter ? 'subscribed' : null),
        'fields.topic': 'topic',
      },
    },
  ],
};
