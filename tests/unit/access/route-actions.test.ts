import plugin from '../../../server/src';

interface Route {
  method: string;
  path: string;
  config: { policies: (string | { config?: { actions?: string[] } })[] };
}

/** The panel's routes by the actions that a user needs, all of them; '': who is signed in may. */
const ROUTES: Record<string, string[]> = {
  '': [
    'GET /attention',
    // The content manager's own permissions of the content type decide.
    'GET /contacts/export',
    'GET /imports/:id',
    'GET /imports/:id/rejects',
    'GET /modules',
    'GET /record-types',
    'POST /contacts/merge',
  ],
  'modules.update': ['GET /mapped-types', 'PUT /modules'],
  'application-passwords.manage': [
    'DELETE /application-passwords/:id',
    'GET /application-passwords',
    'POST /application-passwords',
  ],
  'metrics.read': ['GET /metrics'],
  'webhooks.read': [
    'GET /delivery-figures',
    'GET /webhook-deliveries',
    'GET /webhook-deliveries/:id',
    'GET /webhook-deliveries/causes',
    'GET /webhook-recoveries',
    'GET /webhook-recoveries/:id',
    'GET /webhooks',
    'GET /webhooks-health',
    'GET /webhooks/:id',
    'GET /webhooks/:id/deliveries',
    'GET /webhooks/events',
  ],
  'webhooks.create': ['POST /webhooks'],
  'journal.read': ['GET /webhooks/journal'],
  'webhooks.update': [
    'PATCH /webhooks/:id',
    'POST /webhook-deliveries/:id/release',
    'POST /webhook-deliveries/:id/retry',
    'POST /webhook-deliveries/:id/skip',
    'POST /webhook-recoveries',
    'POST /webhook-recoveries/:id/cancel',
    'POST /webhook-recoveries/:id/pause',
    'POST /webhook-recoveries/:id/resume',
    'POST /webhook-recoveries/preview',
    'POST /webhooks/:id/filter/preview',
    'POST /webhooks/:id/secret',
    'POST /webhooks/:id/test',
    'PUT /webhooks/:id',
  ],
  'webhooks.delete': ['DELETE /webhooks/:id'],
  'webhooks.reveal': ['GET /webhooks/:id/secret'],
  'webhooks.update journal.read': ['POST /webhooks/:id/replay'],
  'crm.import': ['POST /contacts/import'],
  'crm.read': ['GET /contacts/:id/purchases'],
  'stock.read': [
    'GET /items',
    'GET /items/:id',
    'GET /levels',
    'GET /levels/:id',
    'GET /levels/:id/explanation',
    'GET /levels/:id/movements',
    'GET /locations',
    'GET /locations/:id',
    'GET /stock-grid',
    'GET /stocktakes',
    'GET /stocktakes/:id',
    'GET /transfers',
    'GET /transfers/:id',
  ],
  'stock.manage': [
    'DELETE /items/:id',
    'GET /stocktakes/clock',
    'POST /items',
    'POST /items/:id/adjust',
    'POST /levels/check',
    'POST /levels/rebuild',
    'POST /locations',
    'POST /stocktakes',
    'POST /transfers',
    'PUT /items/:id',
    'PUT /levels/:id',
    'PUT /locations/:id',
  ],
  'stock.import': ['POST /items/import'],
  'connections.read': [
    'GET /connections',
    'GET /connections/:id',
    'GET /connections/:id/refusals',
    'GET /pos-refusals',
  ],
  'connections.manage': [
    'DELETE /connections/:id',
    'POST /connections',
    'POST /connections/:id/revoke',
    'POST /connections/:id/secret',
    'PUT /connections/:id',
  ],
  'sales.read': ['GET /connections/:id/summary', 'GET /sales-days', 'GET /shop-day'],
  'mapping.manage': [
    'GET /mapping-inbox',
    'GET /mapping-inbox/resolved',
    'POST /mapping-inbox/resolve',
    'POST /mapping-inbox/undo',
  ],
  'pos-events.read': ['GET /pos-events', 'GET /pos-events/:id'],
  'pos-events.manage': [
    'POST /pos-events/:id/accept-without-sale',
    'POST /pos-events/:id/reprocess',
  ],
};

it('each route of the panel is for those who have its action, and nobody gets there signed out', () => {
  const found: Record<string, string[]> = {};
  for (const { method, path, config } of plugin.routes.admin.routes as Route[]) {
    const actions = config.policies.flatMap((one) =>
      typeof one === 'string' ? [] : (one.config?.actions ?? [])
    );
    const names = actions.map((action) => action.replace('plugin::switchboard.', '')).join(' ');
    (found[names] ??= []).push(`${method} ${path}`);
    expect(config.policies).toContain('admin::isAuthenticatedAdmin');
  }
  for (const calls of Object.values(found)) calls.sort();
  expect(found).toEqual(ROUTES);
});
