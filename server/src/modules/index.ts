import type { Core } from '@strapi/strapi';
import { errors, z } from '@strapi/utils';
import type { Module, ModuleId, ModulesAnswer } from '../../../shared/contracts/modules';
import { type App, appOf } from '../app';
import { adminApi } from '../access/admin-actions';
import type { Feature, RouteConfig } from '../feature';
import { endpoint, type Endpoints, handledBy } from '../http/endpoint';
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

const UPDATE = { may: 'modules.update', whole: true } as const;

const api = adminApi({
  modules: {
    find: endpoint('GET /modules', { whole: true }, async ({ app }) =>
      answer(app, await app.modules.list())
    ),
    update: endpoint('PUT /modules', UPDATE, async ({ app, ctx }) => {
      const changes = parseInput(changesSchema(app.modules.offered), ctx.request.body);
      return answer(app, await app.modules.set(changes));
    }),
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

/** Routes of the content API. @param module without which they do not answer */
export const contentRoutes = (tables: readonly Endpoints[], module?: ModuleId): RouteConfig[] =>
  handledBy(tables).map(([handler, { method, path, request, response }]) => ({
    method,
    path,
    handler,
    request,
    response,
    // One object a route: the host writes each route's scope into it.
    config: module ? { policies: [requireModule(module)] } : {},
  }));

export const modules: Feature = {
  services: { modules: ({ strapi }: { strapi: Core.Strapi }) => appOf(strapi).modules },
  controllers: api.controllers,
  policies: { 'module-enabled': moduleEnabled },
  routes: { admin: api.routes },
};
