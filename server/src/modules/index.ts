import type { Core } from '@strapi/strapi';
import { errors, z } from '@strapi/utils';
import type { Context } from 'koa';
import {
  MODULE_IDS,
  type Module,
  type ModuleId,
  type ModulesAnswer,
} from '../../../shared/contracts/modules';
import { adminPolicies } from '../access/admin-actions';
import { getOptions } from '../config';
import type { Knex } from 'knex';
import { type Executor, table } from '../database/connection';
import { inRetriedTransaction } from '../database/retry';
import type { Feature } from '../feature';
import { parseInput } from '../http/validation';
import { codeOf } from '../runtime/refusal';

const NAMES: Readonly<Record<ModuleId, string>> = {
  webhooks: 'Webhooks',
  companies: 'Companies',
  sales_pipeline: 'Sales pipeline',
  email_marketing: 'Email marketing',
  email_conversations: 'Email conversations',
};

/** What a module is called on the screens. */
export const moduleName = (id: ModuleId): string => NAMES[id];

type Switches = Partial<Record<ModuleId, boolean>>;

/** Which optional modules are on. Read from the database each time: another node may have switched. */
export interface ModulesService {
  isEnabled(id: ModuleId): Promise<boolean>;
  enabled(): Promise<ReadonlySet<ModuleId>>;
  list(): Promise<Module[]>;
  /** Switches modules; those that are not named stay as they are. */
  set(changes: Switches): Promise<Module[]>;
}

const changesSchema = (ids: readonly ModuleId[]) =>
  z.partialRecord(z.enum(ids), z.boolean()).refine((changes) => Object.keys(changes).length > 0, {
    message: 'must name at least one module',
  });

/** Without the CRM there is nothing that its modules could switch. */
const offeredModules = (strapi: Core.Strapi): readonly ModuleId[] =>
  MODULE_IDS.filter((id) => id === 'webhooks' || getOptions(strapi).features.crm);

const isOn = (switches: Switches, id: ModuleId): boolean => switches[id] ?? true;

const modulesOn = (switches: Switches): ReadonlySet<ModuleId> =>
  new Set(MODULE_IDS.filter((id) => isOn(switches, id)));

/**
 * The switches as a column of another query: what every write asks together with them is one
 * round trip. `enabledModules` reads what it gives.
 */
export const storedModules = (strapi: Core.Strapi, executor: Executor): Knex.QueryBuilder =>
  table(strapi, executor, 'strapi_core_store_settings')
    .select('value')
    .where({ key: 'plugin_switchboard_modules' })
    .limit(1);

export const enabledModules = (stored: string | null | undefined): ReadonlySet<ModuleId> =>
  modulesOn(stored ? ((JSON.parse(stored) as Switches | null) ?? {}) : {});

const listeners = new WeakMap<Core.Strapi, () => void>();

/** Has `listener` called when this process has switched modules, after the commit. */
export const onModulesChanged = (strapi: Core.Strapi, listener: () => void): void => {
  listeners.set(strapi, listener);
};

const createModulesService = ({ strapi }: { strapi: Core.Strapi }): ModulesService => {
  const store = () => strapi.store({ type: 'plugin', name: 'switchboard', key: 'modules' });
  const read = async (): Promise<Switches> => ((await store().get({})) as Switches | null) ?? {};
  const toList = (switches: Switches): Module[] =>
    offeredModules(strapi).map((id) => ({ id, name: NAMES[id], enabled: isOn(switches, id) }));

  return {
    async isEnabled(id) {
      return isOn(await read(), id);
    },
    async enabled() {
      return modulesOn(await read());
    },
    async list() {
      return toList(await read());
    },
    async set(changes) {
      return inRetriedTransaction(strapi, async ({ onCommit }) => {
        const switches = { ...(await read()), ...changes };
        await store().set({ value: switches });
        onCommit(() => listeners.get(strapi)?.());
        return toList(switches);
      });
    },
  };
};

export const getModules = (strapi: Core.Strapi): ModulesService =>
  strapi.service('plugin::switchboard.modules') as unknown as ModulesService;

const answer = (strapi: Core.Strapi, data: Module[]): ModulesAnswer => ({
  data,
  features: getOptions(strapi).features,
});

const controller = ({ strapi }: { strapi: Core.Strapi }) => ({
  async find(ctx: Context) {
    ctx.body = answer(strapi, await getModules(strapi).list());
  },
  async update(ctx: Context) {
    const changes = parseInput(changesSchema(offeredModules(strapi)), ctx.request.body);
    ctx.body = answer(strapi, await getModules(strapi).set(changes));
  },
});

/** `config.policies: [requireModule('companies')]`: routes of a module that is off answer 404 and say why. */
const moduleEnabled = async (
  _ctx: unknown,
  config: { module: ModuleId },
  { strapi }: { strapi: Core.Strapi }
): Promise<boolean> => {
  if (await getModules(strapi).isEnabled(config.module)) return true;
  throw new errors.NotFoundError(
    `The module ${NAMES[config.module]} is switched off. A CRM manager can switch it on in the CRM modules settings.`,
    codeOf({ code: 'module_off', values: { module: config.module } })
  );
};

export const requireModule = (module: ModuleId) => ({
  name: 'plugin::switchboard.module-enabled',
  config: { module },
});

export const modules: Feature = {
  services: { modules: createModulesService },
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
