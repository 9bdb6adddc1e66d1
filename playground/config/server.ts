import type { Core } from '@strapi/strapi';

export default ({ env }: Core.Config.Shared.ConfigParams) => ({
  host: env('HOST', '127.0.0.1'),
  port: env.int('PORT', 1337),
  // Behind a proxy: the address that visitors see. It is the `site` of every event.
  url: env('PUBLIC_URL', ''),
  app: { keys: env.array('APP_KEYS') },
  // Events are sent by the plugin's own cron task; the site's tasks, if any, run as well.
  cron: { enabled: true },
  dirs: { public: env('PLAYGROUND_PUBLIC_DIR', './public') },
  logger: {
    config: { level: env('LOG_LEVEL', 'warn') },
    updates: { enabled: false },
    startup: { enabled: false },
  },
});
