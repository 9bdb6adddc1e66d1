import { z } from '@strapi/utils';
import {
  DELIVERY_STATES,
  DELIVERY_STATUSES,
  DISABLED_CODES,
  HEALTH_STATES,
  RECOVERY_STATES,
} from '../../../../shared/contracts/webhooks';
import { payload, ordering, filter, subjectType } from './inputs';

/** zod schemas of what the management routes answer, as `strapi openapi generate` reads them. */

const isoDate = z.string();

export const webhookHealthOutput = z.object({
  state: z.enum(HEALTH_STATES),
  failing_since: isoDate.nullable(),
  paused_until: isoDate.nullable(),
  waiting: z.number().int(),
  failing: z.number().int(),
  /** Only if the webhook is off, and in the answer that switches one on. */
  waiting_since: isoDate.nullable().optional(),
  oldest_at: isoDate.nullable().optional(),
});

export const webhookOutput = z.object({
  id: z.number().int(),
  name: z.string(),
  url: z.string(),
  events: z.array(z.string()),
  active: z.boolean(),
  disabled_reason: z.string().nullable(),
  disabled_because: z
    .object({ code: z.enum(DISABLED_CODES), values: z.record(z.string(), z.number()) })
    .nullable(),
  disabled_at: isoDate.nullable(),
  consecutive_failures: z.number().int(),
  payload,
  filter: filter.nullable(),
  rate_per_second: z.number().nullable(),
  concurrency: z.number().int().nullable(),
  ordering,
  header_names: z.array(z.string()),
  previous_secret_until: isoDate.nullable(),
  answered_since_rotation: z.boolean().nullable(),
  health: webhookHealthOutput,
  created_at: isoDate,
  updated_at: isoDate,
});

const lastOutput = z.object({
  delivery_id: z.number().int(),
  status: z.enum(DELIVERY_STATUSES),
  error: z.string().nullable(),
  tries: z.number().int(),
  at: isoDate,
});

export const listedWebhookOutput = webhookOutput.extend({ last: lastOutput.nullable() });

export const webhookWithSecretOutput = webhookOutput.extend({
  /** Absent for users who may not reveal secrets. */
  secret: z.string().nullable().optional(),
  headers: z.record(z.string(), z.string().nullable()).optional(),
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
  webhook_name: z.string().nullable(),
  event: z.string(),
  subject: z.object({ type: subjectType, id: z.string(), label: z.string() }).nullable(),
  status: z.enum(DELIVERY_STATUSES),
  state: z.enum(DELIVERY_STATES),
  replayed: z.boolean(),
  tries: z.number().int(),
  first_attempt_at: isoDate.nullable(),
  next_attempt_at: isoDate.nullable(),
  created_at: isoDate,
  finished_at: isoDate.nullable(),
  request: z.object({ ...sentHeaders, body: z.string() }),
  answer: answerOutput.nullable(),
  error: z.string().nullable(),
  duration_ms: z.number().int().nullable(),
  attempts: z.array(
    z.object({
      at: isoDate,
      request: z.object(sentHeaders),
      answer: answerOutput.nullable(),
      error: z.string().nullable(),
      duration_ms: z.number().int(),
      manual: z.boolean(),
    })
  ),
});

export const recoveryOutput = z.object({
  id: z.number().int(),
  state: z.enum(RECOVERY_STATES),
  matching: z.number().int(),
  queued: z.number().int(),
  sent: z.number().int(),
  failed: z.number().int(),
  created_at: isoDate,
  finished_at: isoDate.nullable(),
});

export const replayOutput = z.union([z.object({ matching: z.number().int() }), recoveryOutput]);

export const recoveryPreviewOutput = z.object({
  preview_id: z.string(),
  matching: z.number().int(),
  by_webhook: z.array(z.object({ webhook_id: z.number().int(), count: z.number().int() })),
  oldest_at: isoDate.nullable(),
  sample: z.array(deliveryOutput),
});

export const testOutput = z.object({
  ok: z.boolean(),
  response_code: z.number().int().nullable(),
  error: z.string().nullable(),
  duration_ms: z.number().int(),
  delivery_id: z.string(),
});

export const secretOutput = z.object({ secret: z.string() });
export const revealedSecretOutput = z.object({ secret: z.string().nullable() });

export const filterPreviewOutput = z.object({
  matched: z.number().int(),
  of: z.number().int(),
  samples: z.array(
    z.object({
      event: z.string(),
      delivery_id: z.string().nullable(),
      matched: z.boolean(),
      data: z.unknown(),
    })
  ),
});

export const eventOutput = z.object({
  event: z.string(),
  label: z.string(),
  group: z.string(),
  module: z.string().nullable(),
  description: z.string().nullable(),
  schema: z.record(z.string(), z.unknown()).nullable(),
  example: z.unknown(),
});

export const logOutput = z.object({
  data: z.array(deliveryOutput),
  meta: z.object({
    next_cursor: z.string().nullable(),
    total: z.number().int(),
    total_capped: z.boolean(),
    searched_from: isoDate.nullable().optional(),
  }),
});

export const journalOutput = z.object({
  data: z.array(
    z.object({
      id: z.string(),
      event: z.string(),
      created_at: isoDate,
      site: z.string(),
      data: z.record(z.string(), z.unknown()),
    })
  ),
  next_cursor: z.string(),
});

export const causesOutput = z.object({
  data: z.array(
    z.object({
      cause: z.string(),
      webhook_id: z.number().int().optional(),
      count: z.number().int(),
      first_at: isoDate,
      last_at: isoDate,
    })
  ),
  meta: z.object({ searched_from: isoDate.nullable() }),
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
      searched_from: isoDate.nullable().optional(),
    }),
  });
