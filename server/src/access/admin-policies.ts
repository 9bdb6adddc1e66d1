import { type AdminAction, adminActionId } from '../../../shared/contracts/permissions';

/**
 * `config.policies` of an admin route: somebody is logged in, and their roles hold **every** one of
 * these actions. Else the host answers 401, or 403.
 */
export const adminPolicies = (...actions: AdminAction[]) => [
  'admin::isAuthenticatedAdmin',
  { name: 'admin::hasPermissions', config: { actions: actions.map(adminActionId) } },
];
