import type { Core } from '@strapi/strapi';
import { errors, z } from '@strapi/utils';
import type { Context } from 'koa';
import type {
  ApplicationPasswordList,
  CreatedApplicationPassword,
  RevokedApplicationPassword,
} from '../../../shared/contracts/access';
import type { RouteConfig } from '../feature';
import { jsonBody } from '../http/guarded-route';
import { forbidStoring } from '../secrets/no-store';
import { idFromPath, labelText, parseInput } from '../http/validation';
import { adminPolicies } from './admin-policies';
import { getApplicationPasswords } from './application-passwords';
import { ADMIN_SESSION_STRATEGY, requireAdminUser, strategyOf } from './current-admin-user';

const inputSchema = z.strictObject({ name: labelText(100) });

/** Everybody sees, makes and revokes their own application passwords only. */
export const applicationPasswordsController = ({ strapi }: { strapi: Core.Strapi }) => ({
  async find(ctx: Context) {
    const body: ApplicationPasswordList = {
      data: await getApplicationPasswords(strapi).list(requireAdminUser(ctx).id),
    };
    ctx.body = body;
  },

  async create(ctx: Context) {
    const user = requireAdminUser(ctx);
    // An admin token may hold fewer permissions than its owner; an application password holds all.
    if (strategyOf(ctx) !== ADMIN_SESSION_STRATEGY) {
      throw new errors.ForbiddenError('Log in to the admin panel to make an application password');
    }
    const { name } = parseInput(inputSchema, ctx.request.body);
    const body: CreatedApplicationPassword = {
      data: await getApplicationPasswords(strapi).create(user.id, name),
    };
    forbidStoring(ctx);
    ctx.status = 201;
    ctx.body = body;
  },

  async delete(ctx: Context) {
    const id = idFromPath(ctx.params.id, 'Application password');
    const revoked = await getApplicationPasswords(strapi).revoke(requireAdminUser(ctx).id, id);
    if (!revoked) throw new errors.NotFoundError('Application password not found');
    const body: RevokedApplicationPassword = { data: revoked };
    ctx.body = body;
  },
});

const config = { policies: adminPolicies('application-passwords.manage') };

export const applicationPasswordRoutes: RouteConfig[] = [
  { method: 'GET', path: '/application-passwords', handler: 'application-passwords.find', config },
  {
    method: 'POST',
    path: '/application-passwords',
    handler: 'application-passwords.create',
    request: jsonBody(inputSchema),
    config,
  },
  {
    method: 'DELETE',
    path: '/application-passwords/:id',
    handler: 'application-passwords.delete',
    config,
  },
];
