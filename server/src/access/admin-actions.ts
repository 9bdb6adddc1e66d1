import { featureOfAction } from '../../../shared/contracts/features';
import {
  ADMIN_ACTIONS,
  type AdminAction,
  adminActionId,
} from '../../../shared/contracts/permissions';
import type { RouteConfig } from '../feature';
import { controllersOf, type Endpoints, handledBy, type Shape } from '../http/endpoint';
import type { App } from '../app';

/** A heading in the host's role editor, and a line below it. */
const label = (subCategory: string, displayName: string) => ({ subCategory, displayName });

const LABELS: Readonly<Record<AdminAction, ReturnType<typeof label>>> = {
  'webhooks.read': label('Webhooks', 'View webhooks and their deliveries'),
  'webhooks.create': label('Webhooks', 'Create'),
  'webhooks.update': label('Webhooks', 'Change, test, rotate the secret, resend'),
  'webhooks.delete': label('Webhooks', 'Delete'),
  'webhooks.reveal': label('Webhooks', 'Reveal signing secrets'),
  'journal.read': label('Webhooks', 'Read the journal: every event with its data'),
  'metrics.read': label('Operations', 'Read metrics'),
  'crm.read': label('CRM', 'Read records through the API'),
  'crm.write': label('CRM', 'Change records through the API'),
  'crm.import': label('CRM', 'Import contacts'),
  'modules.update': label('CRM', 'Switch modules on and off'),
  'application-passwords.manage': label('Application passwords', 'Create and revoke your own'),
  'connections.read': label('Shop', 'View tills'),
  'connections.manage': label('Shop', 'Create, change and revoke tills'),
  'pos-events.read': label('Shop', 'View till records'),
  'pos-events.manage': label('Shop', 'Process till records again and map values'),
  'sales.read': label('Shop', 'View sales'),
  'mapping.manage': label('Shop', 'Map unmapped products and locations'),
  'stock.read': label('Stock', 'View products, locations, levels and movements'),
  'stock.manage': label(
    'Stock',
    'Change products and locations, adjust levels, move and count stock'
  ),
  'stock.import': label('Stock', 'Import products'),
};

export interface Ability {
  can(action: string): boolean;
  rulesFor(action: string, type: string): { conditions?: object }[];
}

interface HostPermissions<Action> {
  actionProvider: { registerMany(actions: unknown[]): Promise<unknown>; values(): Action[] };
  engine: { generateUserAbility(user: unknown): Promise<Ability> };
  createPermissionsManager(of: { ability: Pick<Ability, 'rulesFor'>; model: string }): {
    addPermissionsQueryTo(query: object, action: string): { filters?: object };
  };
}

export const hostPermissions = <Action>({ strapi }: App): HostPermissions<Action> =>
  strapi.service('admin::permission') as unknown as HostPermissions<Action>;

/** The actions that mean something on this site. */
export const offeredActions = (app: App): AdminAction[] =>
  ADMIN_ACTIONS.filter((action) => {
    const feature = featureOfAction(action);
    return feature === undefined || app.options.features[feature];
  });

/** Makes the plugin's actions known to the host's roles. The host gives each of them to super admins. */
export const registerAdminActions = async (app: App): Promise<void> => {
  const host = { section: 'plugins', pluginName: 'switchboard' };
  const actions = offeredActions(app).map((uid) => ({ ...host, uid, ...LABELS[uid] }));
  await hostPermissions(app).actionProvider.registerMany(actions);
};

/** Policies of an admin route: the user is logged in (else 401) and their roles hold **every** action (else 403). */
export const adminPolicies = (...actions: AdminAction[]) => [
  'admin::isAuthenticatedAdmin',
  ...(actions.length > 0
    ? [{ name: 'admin::hasPermissions', config: { actions: actions.map(adminActionId) } }]
    : []),
];

export const inData: Shape = (data) => ({ data });

/** The routes and controllers of endpoints that only the panel has. */
export const adminApi = (...tables: Endpoints[]) => ({
  routes: handledBy(tables).map(
    ([handler, { method, path, request, may, policies }]): RouteConfig => ({
      method,
      path,
      handler,
      ...(request && { request }),
      config: { policies: [...adminPolicies(...may), ...policies] },
    })
  ),
  controllers: controllersOf(tables, inData),
});
