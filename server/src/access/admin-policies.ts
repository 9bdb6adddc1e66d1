import { type AdminAction, adminActionId } from '../../../shared/contracts/permissions';
import type { RouteConfig } from '../feature';

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
