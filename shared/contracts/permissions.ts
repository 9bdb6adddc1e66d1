/**
 * The actions an admin role can be granted. An id in the host is `plugin::switchboard.<action>`.
 * Content API actions (API tokens, users-permissions) are named after controllers instead; which
 * admin action stands for which of them under Basic authentication is `server/src/access`'s matter.
 */
export const ADMIN_ACTIONS = [
  'webhooks.read',
  'webhooks.create',
  'webhooks.update',
  'webhooks.delete',
  'webhooks.reveal',
  'journal.read',
  'metrics.read',
  'crm.read',
  'crm.write',
  'crm.import',
  'modules.update',
  'application-passwords.manage',
  'connections.read',
  'connections.manage',
  'pos-events.read',
  'pos-events.manage',
  'sales.read',
  'mapping.manage',
  'stock.read',
  'stock.manage',
  'stock.import',
] as const;

export type AdminAction = (typeof ADMIN_ACTIONS)[number];

/** The id of an admin action as the host's permission engine knows it. */
export const adminActionId = (action: AdminAction): string => `plugin::switchboard.${action}`;
