'use strict';

// Hook handlers and other code that must be there before the plugins' bootstrap() runs: modules
// named in SITE_SETUP_FILES (joined by the platform's path delimiter), called with { strapi }.
const path = require('node:path');
const {
  dropRepeatedHandlers,
  handOverWithoutCopies,
  hashQuickly,
  rememberProperties,
  trustPermissions,
  trustScreens,
  trustShapes,
} = require('../quick-host');

const setups = () =>
  (process.env.SITE_SETUP_FILES ?? '')
    .split(path.delimiter)
    .filter(Boolean)
    .map((file) => require(file));

module.exports = {
  async register({ strapi }) {
    dropRepeatedHandlers(strapi);
    handOverWithoutCopies(strapi);
    hashQuickly();
    rememberProperties(strapi);
    trustShapes();
    trustPermissions(strapi);
    if (process.env.SITE_IS_COPY) trustScreens(strapi);
    for (const setup of setups()) await setup.register?.({ strapi });
  },
  async bootstrap({ strapi }) {
    for (const setup of setups()) await setup.bootstrap?.({ strapi });
  },
  async destroy({ strapi }) {
    for (const setup of setups()) await setup.destroy?.({ strapi });
  },
};
