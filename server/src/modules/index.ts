import type { Core } from '@strapi/strapi';
import { errors, z } from '@strapi/utils';
import type { Context } from 'koa';
import type { Module, ModuleId, ModulesAnswer } from '../../../shared/contracts/modules';
import { type App, appOf } from '../app';
import { adminPolicies } from '../access/admin-actions';
import type { Feature } from '../feature';
import { parseInput } from '../http/validation';
import { codeOf } from '../runtime/refusal';
import { moduleName } from './modules';

const changesSchema = (ids: readonly ModuleId[]) =>
  z.partialRecord(z.enum(ids), z.boolean()).refine((changes) => Object.keys(changes).length > 0, {
    message: 'must name at least one module',
  });

const answer = ({ options }: App, data: Module[]): ModulesAnswer => ({
  data,
  features: options.features,
});

const controller = ({ strapi }: { strapi: Core.Strapi }) => ({
  async find(ctx: Context) {
    const app = appOf(strapi);
    ctx.body = answer(app, await app.modules.list());
  },
  async update(ctx: Context) {
    const app = appOf(strapi);
    const changes = parseInput(changesSchema(app.modules.offered), ctx.request.body);
    ctx.body = answer(app, await app.modules.set(changes));
  },
});

/** `config.policies: [requireModule('companies')]`: routes of a module that is off answer 404 and say why. */
const moduleEnabled = async (
  _ctx: unknown,
  config: { module: ModuleId },
  { strapi }: { strapi: Core.Strapi }
): Promise<boolean> => {
  if (await appOf(strapi).modules.isEnabled(config.module)) return true;
  throw new errors.NotFoundError(
    `The module ${moduleName(config.module)} is switched off. A CRM manager can switch it on in the CRM modules settings.`,
    codeOf({ code: 'module_off', values: { module: config.module } })
  );
};

export const requireModule = (module: ModuleId) => ({
  name: 'plugin::switchboard.module-enabled',
  config: { module },
});

export const modules: Feature = {
  services: { modules: ({ strapi }: { strapi: Core.Strapi }) => appOf(strapi).modules },
  controllers: { modules: controller },
  policies: { 'module-enabled': moduleEnabled },
  routes: {
    admin: [
      {
        method: 'GET',
        path: '/modules',
        handler: 'modules.find',
        config: { policies: ['admin::isAuthenticatedAdmin'] },
      },
      {
        method: 'PUT',
        path: '/modules',
        handler: 'modules.update',
        config: { policies: adminPolicies('modules.update') },
      },
    ],
  },
};
