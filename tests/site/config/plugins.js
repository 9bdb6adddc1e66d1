'use strict';

const path = require('node:path');

// Functions (computed fields of a mapping) do not fit into JSON: a module may give them.
const switchboardOptions = (env) => {
  const file = env('SWITCHBOARD_OPTIONS_FILE');
  return { ...env.json('SWITCHBOARD_OPTIONS', {}), ...(file ? require(file) : {}) };
};

module.exports = ({ env }) => ({
  switchboard: {
    enabled: env.bool('SWITCHBOARD_ENABLED', true),
    resolve: env('SWITCHBOARD_PATH', path.resolve(__dirname, '../../..')),
    config: switchboardOptions(env),
    ...env.json('SWITCHBOARD_BESIDE_CONFIG', {}),
  },
  ...env.json('SITE_PLUGINS', {}),
  'users-permissions': { config: { jwtSecret: 'test-jwt-secret' } },
});
