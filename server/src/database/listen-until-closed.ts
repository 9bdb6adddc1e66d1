import type { Core } from '@strapi/strapi';

const done = new WeakSet<Core.Strapi>();

/**
 * The host forgets who listens to writes and closes the database afterwards; a write in between
 * would be committed without its events. Here the database closes first. May be called again.
 */
export const listenUntilClosed = (strapi: Core.Strapi): void => {
  if (done.has(strapi)) return;
  done.add(strapi);
  const { db } = strapi;
  db.destroy = async () => {
    await db.connection.destroy();
    db.lifecycles.clear();
  };
};
