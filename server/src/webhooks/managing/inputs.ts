import { z } from '@strapi/utils';
import { DELIVERY_STATUSES } from '../../../../shared/contracts/webhooks';
import { pageQuery } from '../../http/pagination';
import { labelText } from '../../http/validation';
import { EVENT_NAME_MAX } from '../subscriptions/catalogue';

/** zod schemas of the management routes: they validate, and `strapi openapi generate` reads them. */

const events = z
  .array(z.string().min(1).max(EVENT_NAME_MAX))
  .min(1, { message: 'must name at least one event, or be ["*"]' })
  .max(500)
  .refine((names) => !names.includes('*') || names.length === 1, {
    message: '"*" stands alone: it already means every event',
  })
  .transform((names) => [...new Set(names)])
  // A type after the transform, so that the OpenAPI document can name it.
  .pipe(z.array(z.string()));

const name = labelText();
const url = z.string().trim().min(1).max(2048);

export const createWebhookInput = z.object({
  name,
  url,
  events,
  active: z.boolean().default(true),
});

export const updateWebhookInput = z.object({
  name: name.optional(),
  url: url.optional(),
  events: events.optional(),
  active: z.boolean().optional(),
});

export const testInput = z.object({
  /** Sends this event's example instead of a ping. */
  event: z.string().min(1).max(EVENT_NAME_MAX).optional(),
});

export const listQuery = z.object({ ...pageQuery });

export const deliveriesQuery = z.object({
  ...pageQuery,
  status: z.enum(DELIVERY_STATUSES).optional(),
  event: z.string().max(EVENT_NAME_MAX).optional(),
});

export type CreateWebhook = z.infer<typeof createWebhookInput>;
export type UpdateWebhook = z.infer<typeof updateWebhookInput>;
export type DeliveriesQuery = z.infer<typeof deliveriesQuery>;

const isoDate = z.string();
const nullable = <T extends z.ZodType>(type: T) => type.nullable();

export const webhookOutput = z.object({
  id: z.number().int(),
  name: z.string(),
  url: z.string(),
  events: z.array(z.string()),
  active: z.boolean(),
  disabled_reason: nullable(z.string()),
  disabled_at: nullable(isoDate),
  consecutive_failures: z.number().int(),
  created_at: isoDate,
  updated_at: isoDate,
});

export const webhookWithSecretOutput = webhookOutput.extend({
  /** Absent for whoever may not reveal secrets. */
  secret: nullable(z.string()).optional(),
});

const answerOutput = z.object({
  status: z.number().int(),
  headers: z.record(z.string(), z.string()),
  body: z.string(),
  truncated: z.boolean(),
});

const sentHeaders = { url: z.string(), headers: z.record(z.string(), z.string()) };

export const deliveryOutput = z.object({
  id: z.number().int(),
  delivery_id: z.string(),
  webhook_id: z.number().int(),
  event: z.string(),
  status: z.enum(DELIVERY_STATUSES),
  tries: z.number().int(),
  next_attempt_at: nullable(isoDate),
  created_at: isoDate,
  finished_at: nullable(isoDate),
  request: z.object({ ...sentHeaders, body: z.string() }),
  answer: nullable(answerOutput),
  error: nullable(z.string()),
  duration_ms: nullable(z.number().int()),
  attempts: z.array(
    z.object({
      at: isoDate,
      request: z.object(sentHeaders),
      answer: nullable(answerOutput),
      error: nullable(z.string()),
      duration_ms: z.number().int(),
      manual: z.boolean(),
    })
  ),
});

export const testOutput = z.object({
  ok: z.boolean(),
  response_code: nullable(z.number().int()),
  error: nullable(z.string()),
  duration_ms: z.number().int(),
  delivery_id: z.string(),
});

export const secretOutput = z.object({ secret: z.string() });
export const revealedSecretOutput = z.object({ secret: nullable(z.string()) });

export const eventOutput = z.object({
  event: z.string(),
  label: z.string(),
  group: z.string(),
  module: nullable(z.string()),
  description: nullable(z.string()),
  schema: nullable(z.record(z.string(), z.unknown())),
  example: z.unknown(),
});

export const pageOf = <T extends z.ZodType>(row: T) =>
  z.object({
    data: z.array(row),
    meta: z.object({
      pagination: z.object({
        page: z.number().int(),
        per_page: z.number().int(),
        page_count: z.number().int(),
        total: z.number().int(),
        total_capped: z.boolean().optional(),
      }),
    }),
  });
