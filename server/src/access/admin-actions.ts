import { featureOfAction } from '../../../shared/contracts/features';
import {
  ADMIN_ACTIONS,
  type AdminAction,
  adminActionId,
} from '../../../shared/contracts/permissions';
import type { RouteConfig } from '../feature';
import { controllersOf, type Endpoints, handledBy, type Shape } from '../http/endpoint';
import type { App } from '../app';

interface ActionLabel {
  /** Heading in the host's role editor. */
  subCategory: string;
  displayName: string;
}

const label = (subCategory: string, displayName: string): ActionLabel => ({
  subCategory,
  displayName,
});

const LABELS: Readonly<Record<AdminAction, ActionLabel>> = {
  'webhooks.read': label('Webhooks', 'See webhooks and their deliveries'),
  'webhooks.create': label('Webhooks', 'Create'),
  'webhooks.update': label('Webhooks', 'Change, test, rotate the secret, send again'),
  'webhooks.delete': label('Webhooks', 'Delete'),
  'webhooks.reveal': label('Webhooks', 'Reveal signing secrets'),
  'journal.read': label('Webhooks', 'Read the journal: every event with its data'),
  'metrics.read': label('Operations', 'Read metrics'),
  'crm.read': label('CRM', 'Read records through the API'),
  'crm.write': label('CRM', 'Change records through the API'),
  'crm.import': label('CRM', 'Import contacts'),
  'modules.update': label('CRM', 'Switch modules on and off'),
  'application-passwords.manage': label('Application passwords', 'Make and revoke one’s own'),
  'connections.read': label('Point of sale', 'See connections'),
  'connections.manage': label('Point of sale', 'Create, change and revoke connections'),
  'pos-events.read': label('Point of sale', 'See events'),
  'pos-events.manage': label('Point of sale', 'Reprocess events and map what is unknown'),
  'sales.read': label('Point of sale', 'See takings'),
  'mapping.manage': label('Point of sale', 'Map unknown SKUs, barcodes and locations'),
  'stock.read': label('Stock', 'See items, locations, levels and movements'),
  'stock.manage': label('Stock', 'Change items and locations, adjust levels, move and count stock'),
  'stock.import': label('Stock', 'Import items'),
};

interface PermissionService {
  actionProvider: { registerMany(actions: unknown[]): Promise<unknown> };
}

/** The actions that mean something on this site. */
export const offeredActions = (app: App): AdminAction[] => {
  const { features } = app.options;
  return ADMIN_ACTIONS.filter((action) => {
    const feature = featureOfAction(action);
    return feature === undefined || features[feature];
  });
};

/** Makes the plugin's actions known to the host's roles. The host gives each of them to super admins. */
export const registerAdminActions = async (app: App): Promise<void> => {
  const { actionProvider } = app.strapi.service(
    'admin::permission'
  ) as unknown as PermissionService;
  await actionProvider.registerMany(
    offeredActions(app).map((uid) => ({
      section: 'plugins',
      pluginName: 'switchboard',
      uid,
      ...LABELS[uid],
    }))
  );
};

/**
 * `config.policies` of an admin route: somebody is logged in, and their roles hold **every** one of
 * these actions. Else the host answers 401, or 403.
 */
export const adminPolicies = (...actions: AdminAction[]) => [
  'admin::isAuthenticatedAdmin',
  { name: 'admin::hasPermissions', config: { actions: actions.map(adminActionId) } },
];

/** A route of the admin panel that takes one action. */
export const adminRoute = (
  method: RouteConfig['method'],
  path: string,
  handler: string,
  action: AdminAction,
  request?: RouteConfig['request']
): RouteConfig => ({
  ...{ method, path, handler, ...(request && { request }) },
  config: { policies: adminPolicies(action) },
});

/** A single object is put into `data`. */
export const inData: Shape = (data) => ({ data });

/** The routes and controllers of endpoints that the panel alone has. */
export const adminApi = (...tables: Endpoints[]) => ({
  routes: handledBy(tables).map(([handler, { method, path, request, may }]): RouteConfig => ({
    ...{ method, path, handler, ...(request && { request }) },
    config: { policies: adminPolicies(...may) },
  })),
  controllers: controllersOf(tables, inData),
});
