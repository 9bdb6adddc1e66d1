import type { Core } from '@strapi/strapi';
import { getWatchPlan } from '../mapping/registry';
import { watchWrites } from './listen-to-writes';
import { wrapDocuments, wrapWrites } from './wrap-writes';

/** Whether writes become events on this node. */
export interface SourcesService {
  start(): void;
  /** Writes on this node send no events until `start()`: for a migration that should stay silent. */
  stop(): void;
}

/**
 * The host forgets who listens to writes and closes the database afterwards; a write in between
 * would be committed without its events. Here the database closes first.
 */
const listenUntilClosed = (strapi: Core.Strapi): void => {
  const { db } = strapi;
  db.destroy = async () => {
    await db.connection.destroy();
    db.lifecycles.clear();
  };
};

export const createSources = ({ strapi }: { strapi: Core.Strapi }): SourcesService => {
  let stops: (() => void)[] = [];
  let hasStarted = false;
  return {
    start() {
      if (stops.length > 0) return;
      if (!hasStarted) listenUntilClosed(strapi);
      hasStarted = true;
      const plan = getWatchPlan(strapi);
      stops = [wrapDocuments(strapi, plan), wrapWrites(strapi, plan), watchWrites(strapi, plan)];
    },
    stop() {
      for (const stop of stops.splice(0).reverse()) stop();
    },
  };
};

export const sourcesOf = (strapi: Core.Strapi): SourcesService =>
  strapi.service('plugin::switchboard.sources') as unknown as SourcesService;
