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

type Route = Omit<RouteConfig, 'config'>;

const id = { params: { id: z.string().regex(/^[1-9]\d*$/) } };

/** @param call method and path */
const route = (
  call: string,
  handler: string,
  response: z.ZodType,
  request?: RouteConfig['request']
): Route => {
  const [method, path] = call.split(' ') as [Route['method'], string];
  return { method, path, handler, request, response };
};

/** The table of docs/contract-webhooks.md#management-routes; each route's `request` and `response` document it. */
const table: Route[] = [
  route('GET /webhooks', 'webhooks.find', pageOf(webhookOutput), queryOf(webhooksQuery)),
  route('POST /webhooks', 'webhooks.create', webhookWithSecretOutput, jsonBody(createWebhookInput)),
  // These before `/webhooks/:id`, which would take "events" for an id.
  route('GET /webhooks/events', 'webhook-events.find', z.object({ data: z.array(eventOutput) })),
  route('GET /webhooks/journal', 'journal.find', journalOutput, queryOf(journalQuery)),
  route('GET /webhooks/:id', 'webhooks.findOne', webhookWithSecretOutput, id),
  ...['PUT', 'PATCH'].map((method) => {
    const request = { ...id, ...jsonBody(updateWebhookInput) };
    return route(`${method} /webhooks/:id`, 'webhooks.update', webhookOutput, request);
  }),
  route('DELETE /webhooks/:id', 'webhooks.delete', z.null(), id),
  route('POST /webhooks/:id/test', 'webhooks.test', testOutput, { ...id, ...jsonBody(testInput) }),
  route('GET /webhooks/:id/secret', 'webhooks.revealSecret', revealedSecretOutput, id),
  route('POST /webhooks/:id/secret', 'webhooks.rotateSecret', secretOutput, {
    ...id,
    ...jsonBody(rotateInput),
  }),
  route('POST /webhooks/:id/filter/preview', 'webhooks.previewFilter', filterPreviewOutput, {
    ...id,
    ...jsonBody(filterPreviewInput),
  }),
  route('POST /webhooks/:id/replay', 'webhooks.replay', replayOutput, {
    ...id,
    ...jsonBody(replayInput),
  }),
  route('GET /webhooks/:id/deliveries', 'deliveries.find', pageOf(deliveryOutput), {
    ...id,
    ...queryOf(deliveriesQuery),
  }),
  route('GET /webhook-deliveries', 'deliveries.find', logOutput, queryOf(logQuery)),
  // Before `/webhook-deliveries/:id`, which would take "causes" for an id.
  route(
    'GET /webhook-deliveries/causes',
    'delivery-causes.find',
    causesOutput,
    queryOf(causesQuery)
  ),
  route('GET /webhook-deliveries/:id', 'deliveries.findOne', deliveryOutput, {
    params: { id: z.string() },
  }),
  ...['retry', 'skip', 'release'].map((action) =>
    route(`POST /webhook-deliveries/:id/${action}`, `deliveries.${action}`, deliveryOutput, id)
  ),
  route('GET /webhook-recoveries', 'recoveries.find', pageOf(recoveryOutput), queryOf(listQuery)),
  route('POST /webhook-recoveries', 'recoveries.create', recoveryOutput, jsonBody(recoveryInput)),
  route(
    'POST /webhook-recoveries/preview',
    'recoveries.preview',
    recoveryPreviewOutput,
    jsonBody(recoveryPreviewInput)
  ),
  route('GET /webhook-recoveries/:id', 'recoveries.findOne', recoveryOutput, id),
  ...['pause', 'resume', 'cancel'].map((action) =>
    route(`POST /webhook-recoveries/:id/${action}`, `recoveries.${action}`, recoveryOutput, id)
  ),
];

const ACTION_OF = {
  GET: 'webhooks.read',
  POST: 'webhooks.update',
  PUT: 'webhooks.update',
  PATCH: 'webhooks.update',
  DELETE: 'webhooks.delete',
} as const;

/** Those that need other actions than their method says. */
const ACTIONS: Readonly<Record<string, readonly AdminAction[]>> = {
  'webhooks.create': ['webhooks.create'],
  'webhooks.revealSecret': ['webhooks.reveal'],
  'journal.find': ['journal.read'],
  // It sends what is in the journal.
  'webhooks.replay': ['webhooks.update', 'journal.read'],
};

const forAdmin = ({ method, path, handler, request }: Route): RouteConfig => ({
  method,
  path,
  handler: handler.replace(/^(webhooks|deliveries|recoveries)\./, '$1-admin.'),
  request,
  config: {
    policies: [
      ...adminPolicies(...(ACTIONS[handler] ?? [ACTION_OF[method]])),
      requireModule('webhooks'),
    ],
  },
});

export const routes: FeatureRoutes = {
  crm: table.map((one) => ({ ...one, config: { policies: [requireModule('webhooks')] } })),
  admin: table.map(forAdmin),
};
