import { z } from '@strapi/utils';
import type { AdminAction } from '../../../../shared/contracts/permissions';
import { adminPolicies } from '../../access/admin-actions';
import { requireModule } from '../../modules';
import type { FeatureRoutes, RouteConfig } from '../../feature';
import { jsonBody, queryOf } from '../../http/guarded-route';
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

/** The table of docs/contract-webhooks.md#management-routes; each route's `request` and `response` document it. */
const table: Omit<RouteConfig, 'config'>[] = [
  {
    method: 'GET',
    path: '/webhooks',
    handler: 'webhooks.find',
    request: queryOf(webhooksQuery),
    response: pageOf(webhookOutput),
  },
  {
    method: 'POST',
    path: '/webhooks',
    handler: 'webhooks.create',
    request: jsonBody(createWebhookInput),
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
    request: queryOf(journalQuery),
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
    request: { params: idParam, ...jsonBody(updateWebhookInput) },
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
    request: { params: idParam, ...jsonBody(testInput) },
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
    request: { params: idParam, ...jsonBody(rotateInput) },
    response: secretOutput,
  },
  {
    method: 'POST',
    path: '/webhooks/:id/filter/preview',
    handler: 'webhooks.previewFilter',
    request: { params: idParam, ...jsonBody(filterPreviewInput) },
    response: filterPreviewOutput,
  },
  {
    method: 'POST',
    path: '/webhooks/:id/replay',
    handler: 'webhooks.replay',
    request: { params: idParam, ...jsonBody(replayInput) },
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
    request: queryOf(logQuery),
    response: logOutput,
  },
  // Before `/webhook-deliveries/:id`, which would take "causes" for an id.
  {
    method: 'GET',
    path: '/webhook-deliveries/causes',
    handler: 'delivery-causes.find',
    request: queryOf(causesQuery),
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
    request: queryOf(listQuery),
    response: pageOf(recoveryOutput),
  },
  {
    method: 'POST',
    path: '/webhook-recoveries',
    handler: 'recoveries.create',
    request: jsonBody(recoveryInput),
    response: recoveryOutput,
  },
  {
    method: 'POST',
    path: '/webhook-recoveries/preview',
    handler: 'recoveries.preview',
    request: jsonBody(recoveryPreviewInput),
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
  request: route.request,
  config: {
    policies: [...adminPolicies(...adminActionsOf(route)), requireModule('webhooks')],
  },
});

export const routes: FeatureRoutes = {
  crm: table.map((route) => ({ ...route, config: { policies: [requireModule('webhooks')] } })),
  admin: table.map(forAdmin),
};
