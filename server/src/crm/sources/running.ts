import type { Core } from '@strapi/strapi';
import { getForms, getSources } from './registry';
import { watchWrites } from './watch-writes';
import { planWatch } from './watched';
import { wrapDocuments, wrapWrites } from './write-scopes';

/** Whether writes become events on this node. */
export interface SourcesService {
  start(): void;
  /** Writes on this node send no events until `start()`: for a migration that should stay silent. */
  stop(): void;
}

export const createSources = ({ strapi }: { strapi: Core.Strapi }): SourcesService => {
  let stops: (() => void)[] = [];
  return {
    start() {
      if (stops.length > 0) return;
      const plan = planWatch(strapi, getSources(strapi), getForms(strapi));
      stops = [wrapDocuments(strapi, plan), wrapWrites(strapi, plan), watchWrites(strapi, plan)];
    },
    stop() {
      for (const stop of stops.splice(0).reverse()) stop();
    },
  };
};

export const sourcesOf = (strapi: Core.Strapi): SourcesService =>
  strapi.service('plugin::switchboard.sources') as unknown as SourcesService;
