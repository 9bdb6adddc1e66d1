import { getHook } from '../hooks';
import type { Room } from '../room';
import { CRM_EVENTS } from './catalogue';
import { contentTypes } from './content-types';
import { controllers } from './resources/controllers';
import { crmRoutes } from './resources/routes';
import { createSources, sourcesOf } from './sources/running';
import { unpublishedTable } from './sources/unpublished';
import { emailLockTable, prepareEmailLocks } from './upkeep/email-lock';
import { keepDerivedColumns, refuseTakenEmails } from './upkeep';

export const crm: Room = {
  contentTypes,
  tables: [unpublishedTable, emailLockTable],
  controllers,
  services: { sources: createSources },
  routes: { crm: crmRoutes },
  register({ strapi }) {
    getHook(strapi, 'service_crm_webhook_events').register(function crmEvents(map) {
      return { ...map, ...CRM_EVENTS };
    });
  },
  async bootstrap({ strapi }) {
    await prepareEmailLocks(strapi);
    refuseTakenEmails(strapi);
    keepDerivedColumns(strapi);
    sourcesOf(strapi).start();
  },
  destroy({ strapi }) {
    sourcesOf(strapi).stop();
  },
};
