'use strict';

// Conditions of a site's own for permissions, on relations of a contact.
exports.bootstrap = async ({ strapi }) => {
  await strapi.service('admin::permission').conditionProvider.registerMany([
    {
      displayName: 'Owns it',
      name: 'owns-it',
      handler: (user) => ({ 'owner.id': user.id }),
    },
    {
      displayName: 'No secret company',
      name: 'no-secret-company',
      handler: () => ({ 'company.name': { $ne: 'Secret' } }),
    },
  ]);
};
