'use strict';

module.exports = ({ env }) => ({
  host: env('HOST', '127.0.0.1'),
  port: env.int('PORT', 1337),
  url: env('PUBLIC_URL', ''),
  app: { keys: ['test-key-one', 'test-key-two'] },
  dirs: { public: env('SITE_PUBLIC_DIR', './public') },
  ...(env('SITE_PROXY') && { proxy: env.json('SITE_PROXY') }),
  mcp: { enabled: env.bool('SITE_MCP', false) },
  cron: { enabled: env.bool('CRON_ENABLED', true) },
  logger: {
    // `http` is the host's own default.
    config: { level: env('SITE_LOG_LEVEL', 'http') },
    updates: { enabled: false },
    startup: { enabled: false },
  },
});
