'use strict';

// The playground's site, as `strapi start` would run it; started by scripts/start.mjs, which is
// told when the site listens. When that process is gone, the site ends as well.
const path = require('node:path');
const { createStrapi } = require('@strapi/strapi');

const main = async () => {
  process.chdir(__dirname);
  const strapi = createStrapi({ appDir: __dirname, distDir: path.join(__dirname, 'dist') });
  await strapi.start();
  process.on('disconnect', async () => {
    await strapi.destroy().catch(() => {});
    process.exit(0);
  });
  process.send?.({ ready: true });
};

main().catch((error) => {
  process.stderr.write(`${error?.stack ?? error}\n`);
  process.exit(1);
});
