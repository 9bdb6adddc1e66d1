import { z } from '@strapi/utils';
import { adminPolicies } from '../access/admin-policies';
import { requireModule } from '../modules';
import type { RoomRoutes, RouteConfig } from '../room';
import {
  createWebhookInput,
  deliveriesQuery,
  deliveryOutput,
  eventOutput,
  listQuery,
  pageOf,
  secretOutput,
  testInput,
  testOutput,
  updateWebhookInput,
  webhookOutput,
  webhookWithSecretOutput,
} from './inputs';

const idParam = { id: z.string().regex(/^[1-9]\d*$/) };
const json = (schema: z.ZodType) => ({ body: { 'application/json': schema } });

/** The table of specification 1, Endpoints; each route's `request` and `response` document it. */
const table: Omit<RouteConfig, 'config'>[] = [
  {
    method: 'GET',
    path: '/webhooks',
    handler: 'webhooks.find',
    request: { query: listQuery.shape },
    response: pageOf(webhookOutput),
  },
  {
    method: 'POST',
    path: '/webhooks',
    handler: 'webhooks.create',
    request: json(createWebhookInput),
    response: webhookWithSecretOutput,
  },
  // Before `/webhooks/:id`, which would take "events" for an id.
  {
    method: 'GET',
    path: '/webhooks/events',
    handler: 'webhook-events.find',
    response: z.object({ data: z.array(eventOutput) }),
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
    method: 'POST',
    path: '/webhooks/:id/secret',
    handler: 'webhooks.rotateSecret',
    request: { params: idParam },
    response: secretOutput,
  },
  {
    method: 'GET',
    path: '/webhooks/:id/deliveries',
    handler: 'deliveries.find',
    request: { params: idParam, query: deliveriesQuery.shape },
    response: pageOf(deliveryOutput),
  },
  {
    method: 'POST',
    path: '/webhook-deliveries/:id/retry',
    handler: 'deliveries.retry',
    request: { params: idParam },
    response: deliveryOutput,
  },
];

const ACTION_OF = {
  GET: 'webhooks.read',
  POST: 'webhooks.update',
  PUT: 'webhooks.update',
  PATCH: 'webhooks.update',
  DELETE: 'webhooks.delete',
} as const;

const forAdmin = ({ method, path, handler }: Omit<RouteConfig, 'config'>): RouteConfig => ({
  method,
  path,
  handler: handler.replace(/^(webhooks|deliveries)\./, '$1-admin.'),
  config: {
    policies: [
      ...adminPolicies(handler === 'webhooks.create' ? 'webhooks.create' : ACTION_OF[method]),
      requireModule('webhooks'),
    ],
  },
});

export const routes: RoomRoutes = {
  crm: table.map((route) => ({ ...route, config: { policies: [requireModule('webhooks')] } })),
  admin: [
    ...table.map(forAdmin),
    forAdmin({ method: 'GET', path: '/webhook-deliveries/:id', handler: 'deliveries.findOne' }),
  ],
};
