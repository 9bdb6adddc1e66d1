import type { AdminAction } from '../../../../shared/contracts/permissions';

const PREFIX = 'plugin::switchboard.';

/** Actions of the content API outside the CRM, by the admin action that each needs. */
const ALLOWED: Partial<Readonly<Record<AdminAction, readonly string[]>>> = {
  'webhooks.read': [
    ...['webhooks.find', 'webhooks.findOne', 'deliveries.find', 'deliveries.findOne'],
    ...['delivery-causes.find', 'recoveries.find', 'recoveries.findOne', 'webhook-events.find'],
  ],
  'webhooks.create': ['webhooks.create'],
  'webhooks.update': [
    ...['webhooks.update', 'webhooks.rotateSecret', 'webhooks.test', 'webhooks.previewFilter'],
    ...['webhooks.replay', 'deliveries.retry', 'deliveries.skip', 'deliveries.release'],
    ...['recoveries.preview', 'recoveries.create', 'recoveries.pause', 'recoveries.resume'],
    'recoveries.cancel',
  ],
  'webhooks.delete': ['webhooks.delete'],
  'webhooks.reveal': ['webhooks.revealSecret'],
  'journal.read': ['journal.find'],
  'metrics.read': ['metrics.find'],
};

const BY_ACTION = new Map(
  Object.entries(ALLOWED).flatMap(([admin, actions]) =>
    actions.map((action) => [action, admin as AdminAction])
  )
);

const CRM_CONTROLLERS: ReadonlySet<string> = new Set([
  ...['contacts', 'tags', 'companies', 'deals', 'deal-stages', 'tasks', 'campaigns'],
  'contact-purchases',
]);

const crmAction = (action: string): AdminAction => {
  if (action === 'find' || action === 'findOne') return 'crm.read';
  return action === 'import' ? 'crm.import' : 'crm.write';
};

/** The admin action that a Basic user needs for an action of the content API; null: no Basic user may call it. */
export const adminActionFor = (contentApiAction: string): AdminAction | null => {
  if (!contentApiAction.startsWith(PREFIX)) return null;
  const named = contentApiAction.slice(PREFIX.length);
  const [controller, action, ...rest] = named.split('.');
  if (!controller || !action || rest.length > 0) return null;
  return CRM_CONTROLLERS.has(controller) ? crmAction(action) : (BY_ACTION.get(named) ?? null);
};
