'use strict';

const path = require('node:path');

/** A module of the very plugin that this site runs: `pluginModule('database/db')`. */
module.exports.pluginModule = (name) =>
  require(path.join(process.env.SWITCHBOARD_PATH, 'server/src', `${name}.js`));
