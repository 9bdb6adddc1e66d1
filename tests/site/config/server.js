'use strict';

module.exports = ({ env }) => ({
  host: env('HOST', '127.0.0.1'),
  port: env.int('PORT', 1337),
  url: env('PUBLIC_URL', ''),
  app: { keys: ['test-key-one', 'test-key-two'] },
  dirs: { public: env('SITE_PUBLIC_DIR', './public') },
  cron: { enabled: env.bool('CRON_ENABLED', true) },
  logger: { updates: { enabled: false }, startup: { enabled: false } },
});
