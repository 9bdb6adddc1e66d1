import { getHook } from '../hooks';
import type { Room } from '../room';
import { CRM_EVENTS } from './catalogue';
import { contentTypes } from './content-types';
import { controllers } from './resources/controllers';
import { crmRoutes } from './resources/routes';
import { getSources } from './sources/registry';
import { planWatch } from './sources/watched';
import { watchWrites } from './sources/watch-writes';
import { wrapDocuments, wrapWrites } from './sources/write-scopes';
import { keepDerivedColumns, refuseTakenEmails } from './upkeep';

export const crm: Room = {
  contentTypes,
  controllers,
  routes: { crm: crmRoutes },
  register({ strapi }) {
    getHook(strapi, 'service_crm_webhook_events').register(function crmEvents(map) {
      return { ...map, ...CRM_EVENTS };
    });
  },
  bootstrap({ strapi }) {
    const plan = planWatch(strapi, getSources(strapi));
    refuseTakenEmails(strapi);
    keepDerivedColumns(strapi);
    wrapDocuments(strapi, plan);
    wrapWrites(strapi, plan);
    watchWrites(strapi, plan);
  },
};
