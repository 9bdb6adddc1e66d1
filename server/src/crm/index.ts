import { getHook } from '../hooks';
import type { Feature } from '../feature';
import { CRM_EVENTS } from './catalogue';
import { contentTypes } from './content-types';
import { createEmailService } from './email/email-service';
import {
  checkProviderKeys,
  emailWebhookRoutes,
  emailWebhooks,
  scheduleForgetting,
} from './email/providers';
import { leaveProviderPostsUnread } from './email/providers/raw-body';
import { seenEventsTable } from './email/providers/seen-events';
import { contactImports, importRoutes, leaveImportsUnread } from './import/controller';
import { createContactImport } from './import/import-service';
import { controllers } from './resources/controllers';
import { crmRoutes } from './resources/routes';
import { createSources, sourcesOf } from './change-capture/track/capture';
import { unpublishedTable } from './change-capture/track/unpublished';
import { emailLockTable, prepareEmailLocks } from './contact-integrity/email-lock';
import { keepDerivedColumns, refuseTakenEmails } from './contact-integrity';

export const crm: Feature = {
  option: 'crm',
  contentTypes,
  tables: [unpublishedTable, emailLockTable, seenEventsTable],
  controllers: {
    ...controllers,
    'email-webhooks': emailWebhooks,
    'contact-imports': contactImports,
  },
  services: {
    sources: createSources,
    email: createEmailService,
    'contact-import': createContactImport,
  },
  routes: { crm: [...crmRoutes, ...emailWebhookRoutes], admin: importRoutes },
  register({ strapi }) {
    checkProviderKeys(strapi);
    strapi.server.use(leaveImportsUnread as Parameters<typeof strapi.server.use>[0]);
    strapi.server.use(leaveProviderPostsUnread(strapi) as Parameters<typeof strapi.server.use>[0]);
    getHook(strapi, 'service_crm_webhook_events').register(function crmEvents(map) {
      return { ...map, ...CRM_EVENTS };
    });
  },
  async bootstrap({ strapi }) {
    await prepareEmailLocks(strapi);
    refuseTakenEmails(strapi);
    keepDerivedColumns(strapi);
    sourcesOf(strapi).start();
    scheduleForgetting(strapi);
  },
};
