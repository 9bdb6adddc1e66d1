import type { Core } from '@strapi/strapi';
import type { Context } from 'koa';
import { adminPolicies } from '../../access/admin-policies';
import type { RouteConfig } from '../../feature';
import { queryOf } from '../../http/guarded-route';
import { answerUpload, uploadQuery } from '../../imports/upload';
import type { ContactImport } from './import-service';

export const contactImports = ({ strapi }: { strapi: Core.Strapi }) => ({
  async import(ctx: Context) {
    const service = strapi.service(
      'plugin::switchboard.contact-import'
    ) as unknown as ContactImport;
    await answerUpload(strapi, ctx, 'contacts', (file, options) => service.run(file, options));
  },
});

export const importRoutes: RouteConfig[] = [
  {
    method: 'POST',
    path: '/contacts/import',
    handler: 'contact-imports.import',
    request: queryOf(uploadQuery),
    config: { policies: adminPolicies('crm.import') },
  },
];
