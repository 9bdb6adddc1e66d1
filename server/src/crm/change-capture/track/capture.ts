import type { Core } from '@strapi/strapi';
import { copyParamsOf } from '../../../database/host-writes';
import { listenUntilClosed } from '../../../database/listen-until-closed';
import { setSilenced } from '../../../webhooks/events-service';
import { getWatchPlan } from '../../mapping/registry';
import { watchWrites } from './listen-to-writes';
import { wrapDocuments, wrapWrites } from '../../capture/capture';

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
      listenUntilClosed(strapi);
      setSilenced(strapi, false);
      const plan = getWatchPlan(strapi);
      copyParamsOf(strapi, plan.uids);
      stops = [wrapDocuments(strapi, plan), wrapWrites(strapi, plan), watchWrites(strapi, plan)];
    },
    stop() {
      setSilenced(strapi, true);
      for (const stop of stops.splice(0).reverse()) stop();
    },
  };
};

export const sourcesOf = (strapi: Core.Strapi): SourcesService =>
  strapi.service('plugin::switchboard.sources') as unknown as SourcesService;
