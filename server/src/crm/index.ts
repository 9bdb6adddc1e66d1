import { adminApi } from '../access/admin-actions';
import { serviceOf } from '../app';
import type { Feature } from '../feature';
import { contentRoutes } from '../modules';
import { CRM_EVENTS } from './catalogue';
import { contactExports } from './contact-export';
import { contactMerges } from './contact-merge';
import { contentTypes } from './content-types';
import { createEmailService } from './email/email-service';
import * as mail from './email/providers';
import { contactImports, createContactImport } from './import/import-service';
import { Customers, purchases } from './customers';
import { leaveComputedOut, renewScreens } from './screens';
import { controllers, crmRoutes } from './resources/routes';
import { SourcesService, sourcesOf, unpublishedTable } from './capture';
import * as integrity from './contact-integrity';

const panel = adminApi(contactImports, contactExports, contactMerges, purchases);

export const crm: Feature = {
  option: 'crm',
  contentTypes,
  tables: [unpublishedTable, integrity.emailLockTable, mail.seenEventsTable, integrity.phonesTable],
  controllers: {
    ...controllers,
    'email-webhooks': mail.emailWebhooks,
    ...panel.controllers,
  },
  services: {
    sources: serviceOf(SourcesService),
    email: createEmailService,
    'contact-import': createContactImport,
    customers: serviceOf(Customers),
  },
  routes: {
    crm: [...crmRoutes, ...contentRoutes([purchases]), ...mail.emailWebhookRoutes],
    admin: panel.routes,
  },
  register(app) {
    mail.checkProviderKeys(app);
    leaveComputedOut(app);
    app.strapi.server.use(mail.leaveProviderPostsUnread(app));
    app.hooks.get('service_crm_webhook_events').register(function crmEvents(map) {
      return { ...map, ...CRM_EVENTS };
    });
  },
  async bootstrap(app) {
    await integrity.prepareEmailLocks(app);
    await integrity.settleTagSlugs(app);
    await integrity.settleDisplayNames(app);
    await renewScreens(app);
    integrity.refuseTaken(app);
    integrity.keepDerivedColumns(app);
    sourcesOf(app).start();
    await integrity.startPhoneIndex(app);
    mail.scheduleForgetting(app);
  },
  stop: (app) => integrity.stopPhoneIndex(app),
};
