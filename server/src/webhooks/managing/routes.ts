import { z } from '@strapi/utils';
import type { AdminAction } from '../../../../shared/contracts/permissions';
import { adminPolicies } from '../../access/admin-policies';
import { requireModule } from '../../modules';
import type { FeatureRoutes, RouteConfig } from '../../feature';
import {
  causesQuery,
  createWebhookInput,
  deliveriesQuery,
  filterPreviewInput,
  journalQuery,
  listQuery,
  logQuery,
  recoveryInput,
  recoveryPreviewInput,
  replayInput,
  rotateInput,
  testInput,
  updateWebhookInput,
  webhooksQuery,
} from './inputs';
import {
  causesOutput,
  deliveryOutput,
  eventOutput,
  filterPreviewOutput,
  journalOutput,
  logOutput,
  pageOf,
  recoveryOutput,
  recoveryPreviewOutput,
  replayOutput,
  revealedSecretOutput,
  secretOutput,
  testOutput,
  webhookOutput,
  webhookWithSecretOutput,
} from './outputs';

const idParam = { id: z.string().regex(/^[1-9]\d*$/) };
const json = (schema: z.ZodType) => ({ body: { 'application/json': schema } });

/** The table of docs/contract-webhooks.md#management-routes; each route's `request` and `response` document it. */
const table: Omit<RouteConfig, 'config'>[] = [
  {
    method: 'GET',
    path: '/webhooks',
    handler: 'webhooks.find',
    request: { query: webhooksQuery.shape },
    response: pageOf(webhookOutput),
  },
  {
    method: 'POST',
    path: '/webhooks',
    handler: 'webhooks.create',
    request: json(createWebhookInput),
    response: webhookWithSecretOutput,
  },
  // These before `/webhooks/:id`, which would take "events" for an id.
  {
    method: 'GET',
    path: '/webhooks/events',
    handler: 'webhook-events.find',
    response: z.object({ data: z.array(eventOutput) }),
  },
  {
    method: 'GET',
    path: '/webhooks/journal',
    handler: 'journal.find',
    request: { query: journalQuery.shape },
    response: journalOutput,
  },
  {
    method: 'GET',
    path: '/webhooks/:id',
    handler: 'webhooks.findOne',
    request: { params: idParam },
    response: webhookWithSecretOutput,
  },
  ...(['PUT', 'PATCH'] as const).map((method) => ({
    method,
    path: '/webhooks/:id',
    handler: 'webhooks.update',
    request: { params: idParam, ...json(updateWebhookInput) },
    response: webhookOutput,
  })),
  {
    method: 'DELETE',
    path: '/webhooks/:id',
    handler: 'webhooks.delete',
    request: { params: idParam },
    response: z.null(),
  },
  {
    method: 'POST',
    path: '/webhooks/:id/test',
    handler: 'webhooks.test',
    request: { params: idParam, ...json(testInput) },
    response: testOutput,
  },
  {
    method: 'GET',
    path: '/webhooks/:id/secret',
    handler: 'webhooks.revealSecret',
    request: { params: idParam },
    response: revealedSecretOutput,
  },
  {
    method: 'POST',
    path: '/webhooks/:id/secret',
    handler: 'webhooks.rotateSecret',
    request: { params: idParam, ...json(rotateInput) },
    response: secretOutput,
  },
  {
    method: 'POST',
    path: '/webhooks/:id/filter/preview',
    handler: 'webhooks.previewFilter',
    request: { params: idParam, ...json(filterPreviewInput) },
    response: filterPreviewOutput,
  },
  {
    method: 'POST',
    path: '/webhooks/:id/replay',
    handler: 'webhooks.replay',
    request: { params: idParam, ...json(replayInput) },
    response: replayOutput,
  },
  {
    method: 'GET',
    path: '/webhooks/:id/deliveries',
    handler: 'deliveries.find',
    request: { params: idParam, query: deliveriesQuery.shape },
    response: pageOf(deliveryOutput),
  },
  {
    method: 'GET',
    path: '/webhook-deliveries',
    handler: 'deliveries.find',
    request: { query: logQuery.shape },
    response: logOutput,
  },
  // Before `/webhook-deliveries/:id`, which would take "causes" for an id.
  {
    method: 'GET',
    path: '/webhook-deliveries/causes',
    handler: 'delivery-causes.find',
    request: { query: causesQuery.shape },
    response: causesOutput,
  },
  {
    method: 'GET',
    path: '/webhook-deliveries/:id',
    handler: 'deliveries.findOne',
    request: { params: { id: z.string() } },
    response: deliveryOutput,
  },
  {
    method: 'POST',
    path: '/webhook-deliveries/:id/retry',
    handler: 'deliveries.retry',
    request: { params: idParam },
    response: deliveryOutput,
  },
  ...(['skip', 'release'] as const).map((action) => ({
    method: 'POST' as const,
    path: `/webhook-deliveries/:id/${action}`,
    handler: `deliveries.${action}`,
    request: { params: idParam },
    response: deliveryOutput,
  })),
  {
    method: 'GET',
    path: '/webhook-recoveries',
    handler: 'recoveries.find',
    request: { query: listQuery.shape },
    response: pageOf(recoveryOutput),
  },
  {
    method: 'POST',
    path: '/webhook-recoveries',
    handler: 'recoveries.create',
    request: json(recoveryInput),
    response: recoveryOutput,
  },
  {
    method: 'POST',
    path: '/webhook-recoveries/preview',
    handler: 'recoveries.preview',
    request: json(recoveryPreviewInput),
    response: recoveryPreviewOutput,
  },
  {
    method: 'GET',
    path: '/webhook-recoveries/:id',
    handler: 'recoveries.findOne',
    request: { params: idParam },
    response: recoveryOutput,
  },
  ...(['pause', 'resume', 'cancel'] as const).map((action) => ({
    method: 'POST' as const,
    path: `/webhook-recoveries/:id/${action}`,
    handler: `recoveries.${action}`,
    request: { params: idParam },
    response: recoveryOutput,
  })),
];

const ACTION_OF = {
  GET: 'webhooks.read',
  POST: 'webhooks.update',
  PUT: 'webhooks.update',
  PATCH: 'webhooks.update',
  DELETE: 'webhooks.delete',
} as const;

const adminActionOf = ({ method, handler }: Omit<RouteConfig, 'config'>): AdminAction => {
  if (handler === 'webhooks.create') return 'webhooks.create';
  if (handler === 'journal.find') return 'journal.read';
  return handler === 'webhooks.revealSecret' ? 'webhooks.reveal' : ACTION_OF[method];
};

/** A replay sends what is in the journal. */
const adminActionsOf = (route: Omit<RouteConfig, 'config'>): AdminAction[] => [
  adminActionOf(route),
  ...(route.handler === 'webhooks.replay' ? (['journal.read'] as const) : []),
];

const forAdmin = (route: Omit<RouteConfig, 'config'>): RouteConfig => ({
  method: route.method,
  path: route.path,
  handler: route.handler.replace(/^(webhooks|deliveries|recoveries)\./, '$1-admin.'),
  config: {
    policies: [...adminPolicies(...adminActionsOf(route)), requireModule('webhooks')],
  },
});

export const routes: FeatureRoutes = {
  crm: table.map((route) => ({ ...route, config: { policies: [requireModule('webhooks')] } })),
  admin: table.map(forAdmin),
};
