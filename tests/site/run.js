'use strict';

// Boots the site without the admin panel's files (its API is there) and answers the test process
// over the IPC channel: an operation that came over HTTP would run inside a request's context and
// would not look like a site's own code.
const path = require('node:path');
const { createStrapi } = require('@strapi/strapi');
const { createControl } = require('./control');

const stopWithParent = (strapi) => {
  process.on('disconnect', async () => {
    await strapi.destroy().catch(() => {});
    process.exit(0);
  });
};

const answerOperations = (strapi) => {
  const control = createControl(strapi);
  process.on('message', async ({ id, op, args }) => {
    let reply;
    try {
      reply = { id, result: await control(op, args ?? {}) };
    } catch (error) {
      const { name, message, stack, code, details } = error ?? {};
      reply = { id, error: { name, message: message ?? String(error), stack, code, details } };
    }
    if (process.connected) process.send(reply);
  });
};

const main = async () => {
  const strapi = createStrapi({
    appDir: __dirname,
    distDir: process.env.SITE_DIST_DIR ?? path.resolve(__dirname),
    serveAdminPanel: false,
  });
  await strapi.start();
  if (process.send) {
    answerOperations(strapi);
    stopWithParent(strapi);
    process.send({ ready: true });
  }
  process.stdout.write(`SITE READY ${strapi.config.get('server.absoluteUrl')}\n`);
};

main().catch((error) => {
  process.stderr.write(`${error?.stack ?? error}\n`);
  process.exit(1);
});
