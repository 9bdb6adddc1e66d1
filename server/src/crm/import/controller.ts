import type { Core } from '@strapi/strapi';
import type { Context, Next } from 'koa';
import type { Readable } from 'node:stream';
import { adminPolicies } from '../../access/admin-policies';
import type { RouteConfig } from '../../feature';
import { withSpooled } from '../../http/spool';
import { withoutTrailingSlashes } from '../../http/trailing-slashes';
import { leaveUnparsed, typeOfUnparsed } from '../../http/unparsed';
import { fieldError } from '../../http/validation';
import type { ContactImport } from './import-service';

const PATH = '/switchboard/contacts/import';
const TYPES = /^(text\/csv|application\/csv|application\/vnd\.ms-excel|text\/plain)\b/i;

/**
 * Comes before the host's body parser, which would read the whole file into memory, or refuse it:
 * the stream is left alone for the route.
 */
export const leaveImportsUnread = async (ctx: Context, next: Next): Promise<void> => {
  if (ctx.method === 'POST' && withoutTrailingSlashes(ctx.path.toLowerCase()) === PATH) {
    leaveUnparsed(ctx.req);
  }
  await next();
};

export const contactImports = ({ strapi }: { strapi: Core.Strapi }) => ({
  async import(ctx: Context) {
    if (!TYPES.test(typeOfUnparsed(ctx.req))) {
      throw fieldError('content-type', 'send the file as the body, with the type text/csv');
    }
    const service = strapi.service(
      'plugin::switchboard.contact-import'
    ) as unknown as ContactImport;
    ctx.body = { data: await withSpooled(ctx.req as Readable, (file) => service.run(file)) };
  },
});

export const importRoutes: RouteConfig[] = [
  {
    method: 'POST',
    path: '/contacts/import',
    handler: 'contact-imports.import',
    config: { policies: adminPolicies('crm.import') },
  },
];
