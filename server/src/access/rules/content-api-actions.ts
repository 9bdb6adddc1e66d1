import type { AdminAction } from '../../../../shared/contracts/permissions';

const PREFIX = 'plugin::switchboard.';

const WEBHOOKS: Readonly<Record<string, AdminAction>> = {
  find: 'webhooks.read',
  findOne: 'webhooks.read',
  create: 'webhooks.create',
  update: 'webhooks.update',
  revealSecret: 'webhooks.reveal',
  rotateSecret: 'webhooks.update',
  test: 'webhooks.update',
  previewFilter: 'webhooks.update',
  replay: 'webhooks.update',
  delete: 'webhooks.delete',
};

const DELIVERIES: Readonly<Record<string, AdminAction>> = {
  find: 'webhooks.read',
  findOne: 'webhooks.read',
  retry: 'webhooks.update',
  skip: 'webhooks.update',
  release: 'webhooks.update',
};

const DELIVERY_CAUSES: Readonly<Record<string, AdminAction>> = { find: 'webhooks.read' };

const RECOVERIES: Readonly<Record<string, AdminAction>> = {
  find: 'webhooks.read',
  findOne: 'webhooks.read',
  preview: 'webhooks.update',
  create: 'webhooks.update',
  pause: 'webhooks.update',
  resume: 'webhooks.update',
  cancel: 'webhooks.update',
};

const WEBHOOK_EVENTS: Readonly<Record<string, AdminAction>> = { find: 'webhooks.read' };

const JOURNAL: Readonly<Record<string, AdminAction>> = { find: 'journal.read' };

const METRICS: Readonly<Record<string, AdminAction>> = { find: 'metrics.read' };

const CRM_CONTROLLERS: ReadonlySet<string> = new Set([
  'contacts',
  'tags',
  'companies',
  'deals',
  'deal-stages',
  'tasks',
  'campaigns',
  'contact-purchases',
]);

const crmAction = (action: string): AdminAction => {
  if (action === 'find' || action === 'findOne') return 'crm.read';
  return action === 'import' ? 'crm.import' : 'crm.write';
};

const own = (table: Readonly<Record<string, AdminAction>>, action: string): AdminAction | null =>
  Object.hasOwn(table, action) ? (table[action] ?? null) : null;

/**
 * Which admin action a person needs, under Basic authentication, for an action of the content API
 * such as `plugin::switchboard.webhooks.find`.
 * @returns null for an action that is not listed: nobody reaches it through Basic. A new action of
 * the webhooks has to be added here; one of the CRM that does not read counts as a write.
 */
export const adminActionFor = (contentApiAction: string): AdminAction | null => {
  if (!contentApiAction.startsWith(PREFIX)) return null;
  const [controller, action, ...rest] = contentApiAction.slice(PREFIX.length).split('.');
  if (!controller || !action || rest.length > 0) return null;
  if (CRM_CONTROLLERS.has(controller)) return crmAction(action);
  switch (controller) {
    case 'webhooks':
      return own(WEBHOOKS, action);
    case 'deliveries':
      return own(DELIVERIES, action);
    case 'delivery-causes':
      return own(DELIVERY_CAUSES, action);
    case 'recoveries':
      return own(RECOVERIES, action);
    case 'webhook-events':
      return own(WEBHOOK_EVENTS, action);
    case 'journal':
      return own(JOURNAL, action);
    case 'metrics':
      return own(METRICS, action);
    default:
      return null;
  }
};
