import { serviceOf } from '../app';
import type { Feature } from '../feature';
import { CRM_EVENTS } from './catalogue';
import { contentTypes } from './content-types';
import { createEmailService } from './email/email-service';
import {
  checkProviderKeys,
  emailWebhookRoutes,
  emailWebhooks,
  leaveProviderPostsUnread,
  scheduleForgetting,
  seenEventsTable,
} from './email/providers';
import { contactImports, createContactImport, importRoutes } from './import/import-service';
import { adminPurchaseRoutes, contactPurchases, Customers, purchaseRoutes } from './customers';
import { controllers, crmRoutes } from './resources/routes';
import { SourcesService, sourcesOf, unpublishedTable } from './capture';
import {
  emailLockTable,
  keepDerivedColumns,
  phonesTable,
  prepareEmailLocks,
  refuseTaken,
  settleTagSlugs,
  startPhoneIndex,
  stopPhoneIndex,
} from './contact-integrity';

export const crm: Feature = {
  option: 'crm',
  contentTypes,
  tables: [unpublishedTable, emailLockTable, seenEventsTable, phonesTable],
  controllers: {
    ...controllers,
    'email-webhooks': emailWebhooks,
    'contact-imports': contactImports,
    'contact-purchases': contactPurchases,
  },
  services: {
    sources: serviceOf(SourcesService),
    email: createEmailService,
    'contact-import': createContactImport,
    customers: serviceOf(Customers),
  },
  routes: {
    crm: [...crmRoutes, ...purchaseRoutes, ...emailWebhookRoutes],
    admin: [...importRoutes, ...adminPurchaseRoutes],
  },
  register(app) {
    checkProviderKeys(app);
    app.strapi.server.use(
      leaveProviderPostsUnread(app) as Parameters<typeof app.strapi.server.use>[0]
    );
    app.hooks.get('service_crm_webhook_events').register(function crmEvents(map) {
      return { ...map, ...CRM_EVENTS };
    });
  },
  async bootstrap(app) {
    await prepareEmailLocks(app);
    await settleTagSlugs(app);
    refuseTaken(app);
    keepDerivedColumns(app);
    sourcesOf(app).start();
    await startPhoneIndex(app);
    scheduleForgetting(app);
  },
  stop: (app) => stopPhoneIndex(app),
};
