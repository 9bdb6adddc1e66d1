// The playground's site, as `strapi start` would run it; started by scripts/start.mjs, which is
// told when the site listens. When that process is gone, the site ends as well.
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import strapiPackage from '@strapi/strapi';

const appDir = path.dirname(fileURLToPath(import.meta.url));
process.chdir(appDir);

const strapi = strapiPackage.createStrapi({ appDir, distDir: path.join(appDir, 'dist') });
await strapi.start();

process.on('disconnect', async () => {
  await strapi.destroy().catch(() => {});
  process.exit(0);
});
process.send?.({ ready: true });
