'use strict';

// A test that needs other middlewares (a site that configures `strapi::body` differently) names a
// module that exports the whole list.
module.exports = ({ env }) => {
  const file = env('SITE_MIDDLEWARES_FILE');
  if (file) return require(file);
  return [
    'strapi::logger',
    'strapi::errors',
    'strapi::security',
    'strapi::cors',
    'strapi::poweredBy',
    'strapi::query',
    'strapi::body',
    'strapi::session',
    'strapi::favicon',
    'strapi::public',
  ];
};
