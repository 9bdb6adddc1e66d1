import { z } from '@strapi/utils';
import {
  CONCURRENCY_LIMITS,
  DELIVERY_STATES,
  type DeliveryState,
  DELIVERY_STATUSES,
  RATE_LIMITS,
  SUBJECT_TYPES,
  WAITING_CHOICES,
  WEBHOOK_ORDERINGS,
  WEBHOOK_PAYLOADS,
} from '../../../../shared/contracts/webhooks';
import { limitQuery, pageQuery, viewQuery } from '../../http/pagination';
import { coded, idText, labelText, LARGEST_ID, readOnlyKeys } from '../../http/validation';
import { parseCursor } from '../deliveries/log-filter';
import { judgeHeaders } from '../rules/request-headers';
import { EVENT_NAME_MAX } from '../catalogue';

/** zod schemas of what the management routes take: they validate, and `strapi openapi generate` reads them. */

const events = z
  .array(z.string().min(1).max(EVENT_NAME_MAX))
  .min(1, { message: 'must name at least one event, or be ["*"]' })
  .max(500)
  .refine(
    (names) => !names.includes('*') || names.length === 1,
    coded('"*" already means every event: use it by itself', 'invalid')
  )
  .transform((names) => [...new Set(names)])
  // A type after the transform, so that the OpenAPI document can name it.
  .pipe(z.array(z.string()));

/** The longest that an old secret may go on signing, in hours. */
const LONGEST_OVERLAP = 168;
export const payload = z.enum(WEBHOOK_PAYLOADS);
export const ordering = z.enum(WEBHOOK_ORDERINGS);
/** Its contents are judged by `webhooks-service.ts`. */
export const filter = z.record(z.string(), z.unknown());
const headers = z.record(z.string(), z.string()).superRefine((given, ctx) => {
  for (const { name, wrong } of judgeHeaders(given)) {
    const path = name === null ? [] : [name];
    ctx.addIssue({ code: 'custom', path, ...coded(wrong.message, wrong.code, wrong.values) });
  }
});

/** Read-only keys of a webhook's answer: it may be sent back, or copied. */
const ofAnswers = readOnlyKeys(
  ...(['id', 'secret', 'health', 'header_names', 'created_at', 'updated_at'] as const),
  ...(['disabled_reason', 'disabled_because', 'disabled_at', 'consecutive_failures'] as const),
  ...(['previous_secret_until', 'answered_since_rotation'] as const)
);

const fields = {
  name: labelText(),
  url: z.string().trim().min(1).max(2048),
  events,
  active: z.boolean(),
  payload,
  filter: filter.nullable(),
  rate_per_second: z.number().min(RATE_LIMITS.least).max(RATE_LIMITS.most).nullable(),
  concurrency: z
    .number()
    .int()
    .min(CONCURRENCY_LIMITS.least)
    .max(CONCURRENCY_LIMITS.most)
    .nullable(),
  ordering,
  headers: headers.nullable(),
};

export const createWebhookInput = z.strictObject({
  ...ofAnswers,
  ...fields,
  active: fields.active.default(true),
  payload: payload.default('full'),
  filter: fields.filter.default(null),
  rate_per_second: fields.rate_per_second.default(null),
  concurrency: fields.concurrency.default(null),
  ordering: ordering.default('none'),
  headers: fields.headers.default(null),
});

export const updateWebhookInput = z.strictObject({
  ...ofAnswers,
  /** Choice for the waiting deliveries, if this switches the webhook on. */
  waiting: z.enum(WAITING_CHOICES).optional(),
  /** Only if this is still its `updated_at`; else 409. */
  if_updated_at: z.iso.datetime({ offset: true }).optional(),
  ...z.object(fields).partial().shape,
});

export const rotateInput = z.strictObject({
  overlap_hours: z.number().min(0).max(LONGEST_OVERLAP).default(0),
});

export const webhookQuery = z.object({
  /** Omits the secret and the values of own headers, for clients that poll. */
  secrets: z.enum(['true', 'false']).default('true'),
});

export const filterPreviewInput = z.strictObject({
  filter,
  event: z.string().min(1).max(EVENT_NAME_MAX).optional(),
});

export const testInput = z.strictObject({
  /** Sends this event's example instead of a ping. */
  event: z.string().min(1).max(EVENT_NAME_MAX).optional(),
});

const SORTED_BY = ['id', 'name', 'url', 'active', 'created_at'] as const;

export const webhooksQuery = z.object({
  ...pageQuery,
  ...viewQuery,
  /** Part of a name or an address, in any case. */
  q: z.string().trim().min(1).max(255).optional(),
  sort: z
    .enum(SORTED_BY.flatMap((column) => [`${column}:asc`, `${column}:desc`] as const))
    .default('id:asc'),
});

/** An unencoded plus sign arrives as a space. */
const time = z
  .string()
  .transform((text) => text.replace(/ (?=\d\d:\d\d$)/, '+'))
  .pipe(
    z.iso.datetime({
      offset: true,
      message: 'must be a time with its offset, such as 2030-01-31T09:15:00Z',
    })
  );

const isState = (text: string): text is DeliveryState =>
  (DELIVERY_STATES as readonly string[]).includes(text);

/** A kind of CRM record, or the uid of a content type that `sources.entries` names. */
export const subjectType = z.union([
  z.enum(SUBJECT_TYPES),
  z
    .templateLiteral([z.string().regex(/[a-z][\w-]*/), '::', z.string().regex(/[\w.-]+/)])
    .meta({ examples: ['api::article.article'] }),
]);

/** The filters of the log; docs/management-api.md#finding-deliveries. */
const logFilters = {
  event: z.string().max(EVENT_NAME_MAX).optional(),
  status: z.enum(DELIVERY_STATUSES).optional(),
  /** One, or several with commas between them. */
  state: z
    .string()
    .refine((text) => text.split(',').every((one) => isState(one)), {
      message: `must be one or several of ${DELIVERY_STATES.join(', ')}, with commas between them`,
    })
    .transform((text) => text.split(',').filter(isState))
    // A type after the transform, so that the OpenAPI document can name it.
    .pipe(z.array(z.enum(DELIVERY_STATES)))
    .optional(),
  cause: z.string().min(1).max(255).optional(),
  subject_type: subjectType.optional(),
  subject_id: z.string().min(1).max(255).optional(),
  from: time.optional(),
  to: time.optional(),
  q: z.string().trim().min(1).max(255).optional(),
  recovery: idText('a recovery').optional(),
};

/** The id of a row in a body, which may be a number. */
const idValue = (what: string) =>
  z
    .union([z.number(), z.string()], { error: `must be the id of ${what}` })
    .transform(String)
    .pipe(idText(what));

const webhookFilter = { webhook: idText('a webhook').optional() };

export const deliveriesQuery = z.object({ ...pageQuery, ...logFilters });

export const logQuery = z.object({
  ...webhookFilter,
  ...logFilters,
  ...limitQuery,
  ...viewQuery,
  cursor: z
    .string()
    .refine((text) => parseCursor(text) !== null, {
      message: 'must be the next_cursor of a page before',
    })
    .optional(),
});

/** Each cause of each webhook, or of all webhooks together. */
const causesBy = z.enum(['webhook', 'cause']).default('webhook');
export const causesQuery = z.object({ ...webhookFilter, ...logFilters, by: causesBy });

const IDS_AT_MOST = 500;

/** The id of a delivery's row, or the one that its receiver knows. */
const deliveryIdValue = z.union([
  z.number().int().min(1).max(LARGEST_ID),
  z
    .string()
    .regex(/^[1-9]\d{0,9}$/)
    .transform(Number)
    .pipe(z.number().int().max(LARGEST_ID)),
  z
    .guid()
    .transform((id) => id.toLowerCase())
    .pipe(z.string()),
]);

/** The filters of the log, and deliveries by their ids. Strict: a misspelt filter must not leave everything. */
const recoveryFilter = z.strictObject({
  ...logFilters,
  state: z.enum(DELIVERY_STATES).optional(),
  webhook: idValue('a webhook').optional(),
  recovery: idValue('a recovery').optional(),
  ids: z
    .array(deliveryIdValue, { error: `must be a list of 1 to ${IDS_AT_MOST} ids of deliveries` })
    .min(1)
    .max(IDS_AT_MOST)
    .optional(),
});

export const recoveryPreviewInput = z.strictObject({ filter: recoveryFilter });

export const recoveryInput = z
  .strictObject({
    filter: recoveryFilter.optional(),
    preview_id: z.string().min(1).max(255).optional(),
  })
  .superRefine(({ filter: given, preview_id: preview }, ctx) => {
    if ((given === undefined) !== (preview === undefined)) return;
    const message =
      given === undefined ? 'filter or preview_id is required' : 'goes without the other one';
    for (const field of ['filter', 'preview_id']) {
      ctx.addIssue({ code: 'custom', path: [field], message });
    }
  });

export const replayInput = z
  .strictObject({
    from: time,
    to: time,
    events: events.optional(),
    dry_run: z.boolean().default(false),
  })
  .refine(({ from, to }) => Date.parse(from) < Date.parse(to), {
    path: ['to'],
    ...coded('must be later than from', 'before_from'),
  });

export const journalQuery = z.object({
  /** A place in the journal; empty or absent: its beginning. */
  after: z
    .string()
    .regex(/^\d{0,15}$/, { message: 'must be the next_cursor of a page before' })
    .transform(Number)
    // A type after the transform, so that the OpenAPI document can name it.
    .pipe(z.number().int())
    .default(0),
  ...limitQuery,
});

export type CreateWebhook = z.infer<typeof createWebhookInput>;
export type UpdateWebhook = z.infer<typeof updateWebhookInput>;
export type WebhooksQuery = z.infer<typeof webhooksQuery>;
export type RotateSecret = z.infer<typeof rotateInput>;
export type FilterPreviewQuery = z.infer<typeof filterPreviewInput>;
export type Replay = z.infer<typeof replayInput>;
export type DeliveriesQuery = z.infer<typeof deliveriesQuery>;
export type LogQuery = z.infer<typeof logQuery>;
export type CausesQuery = z.infer<typeof causesQuery>;
