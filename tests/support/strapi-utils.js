'use strict';

const path = require('node:path');

// Stands in for `@strapi/utils` in unit tests, each of which loads its modules anew: all of it takes
// longer than most of them. What the plugin uses of it comes from where its index has it from.
const DIST = path.dirname(require.resolve('../../node_modules/@strapi/utils'));

const PARTS = {
  z: () => require(require.resolve('zod/v4', { paths: [DIST] })),
  errors: () => require(path.join(DIST, 'errors.js')),
  contentTypes: () => require(path.join(DIST, 'content-types.js')),
  importDefault: () => require(path.join(DIST, 'import-default.js')),
};

module.exports = new Proxy(
  {},
  {
    get(_none, name) {
      const part = Object.hasOwn(PARTS, name) && PARTS[name];
      return part ? part() : require(path.join(DIST, 'index.js'))[name];
    },
  }
);
