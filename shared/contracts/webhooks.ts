/** Types of `/api/fw-crm/v1/webhooks…` and `/switchboard/webhooks…`; docs/contract-webhooks.md#management-routes. */

export const DELIVERY_STATUSES = ['pending', 'sent', 'failed'] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** The payload of a delivery: the full event, or its ids. */
export const WEBHOOK_PAYLOADS = ['full', 'thin'] as const;
export type WebhookPayload = (typeof WEBHOOK_PAYLOADS)[number];

/** Ordering of the events of one record: with `by_record`, a later one waits for the end of an earlier one. */
export const WEBHOOK_ORDERINGS = ['none', 'by_record'] as const;
export type WebhookOrdering = (typeof WEBHOOK_ORDERINGS)[number];

/** The attempts a second that a webhook may be limited to. */
export const RATE_LIMITS = { least: 0.01, most: 10_000 } as const;
/** The simultaneous attempts that a webhook may be limited to. */
export const CONCURRENCY_LIMITS = { least: 1, most: 256 } as const;

/** The headers of its own that a webhook may have, and how long they may be, in characters. */
export const HEADER_LIMITS = { most: 20, name: 128, value: 4096, total: 8192 } as const;
/** In place of a header's value: what is not shown. Sent back, it keeps the value. */
export const KEPT_VALUE = '***';

/**
 * The state of a delivery, more exactly than its status: `waiting` has no attempt that counts,
 * `failing` has failed and will be retried, `failed` will not, `test` was requested by a person.
 */
export const DELIVERY_STATES = ['waiting', 'failing', 'failed', 'sent', 'test'] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

export const SUBJECT_TYPES = [
  ...(['contact', 'tag', 'company', 'deal', 'task', 'campaign'] as const),
  ...(['item', 'till', 'till_record'] as const),
] as const;
/** A kind of CRM record, an item of the stock, a till or one of its records, or the uid of a content type that the option `sources.entries` names. */
export type SubjectType = (typeof SUBJECT_TYPES)[number] | `${string}::${string}`;

/** The record that an event is about, as it was when the event happened. */
export interface Subject {
  type: SubjectType;
  /** As in the payload; the document id of an entry. */
  id: string;
  /** The label for people: a name, a title, an e-mail address; its id where it has none of them. */
  label: string;
}

export const DISABLED_CODES = [
  'failed_deliveries',
  'failing_hours',
  'gone',
  'filter',
  'other_site',
] as const;
export type DisabledCode = (typeof DISABLED_CODES)[number];

/**
 * The reason of a switch-off, for clients that speak another language than English: `failed_deliveries`
 * has the number `deliveries`, `failing_hours` has `hours`.
 */
export interface DisabledBecause {
  code: DisabledCode;
  values: Readonly<Record<string, number>>;
}

/** As handlers of hooks get it. Times are ISO 8601 with an explicit offset. */
export interface Webhook {
  id: number;
  name: string;
  url: string;
  /** Event names, or `['*']` alone: every event, also ones added later. */
  events: string[];
  active: boolean;
  disabled_reason: string | null;
  /** The reason as a code; null, too, for a reason that the plugin did not give. */
  disabled_because: DisabledBecause | null;
  disabled_at: string | null;
  consecutive_failures: number;
  payload: WebhookPayload;
  /** A JSON Schema (2020-12) of `data`: only events that match are sent. */
  filter: Record<string, unknown> | null;
  /** Attempts a second over all nodes; null: as many as fit. */
  rate_per_second: number | null;
  /** Simultaneous attempts; null: the option `concurrencyPerWebhook`. */
  concurrency: number | null;
  ordering: WebhookOrdering;
  /** Until then posts are signed with the secret before the last rotation, too. */
  previous_secret_until: string | null;
  created_at: string;
  updated_at: string;
}

export const HEALTH_STATES = ['healthy', 'failing', 'paused', 'off', 'new'] as const;
export type HealthState = (typeof HEALTH_STATES)[number];

/** How a webhook does, by its last attempt; tests never count. docs/contract-webhooks.md#health. */
export interface Health {
  state: HealthState;
  /** When the first attempt after the last success failed; null: the last one succeeded, or none was made. */
  failing_since: string | null;
  /** Until when its receiver asked to be left alone. */
  paused_until: string | null;
  /** Deliveries of which no attempt counts yet; counting stops at 10,000, in lists of many earlier. */
  waiting: number;
  /** Deliveries that were tried in vain and will be tried again; counting stops likewise. */
  failing: number;
  /**
   * When the oldest delivery that waits was made. In the answers for a single webhook that is off,
   * and in the one that switches it on.
   */
  waiting_since?: string | null;
  /** The oldest waiting or failing delivery. */
  oldest_at?: string | null;
}

/** A webhook as the management routes show it. */
export interface ManagedWebhook extends Webhook {
  /** The headers of its own that its posts carry, by their names alone. */
  header_names: string[];
  /**
   * True if the receiver has answered 2xx since the current rotation began, to a post that was signed
   * with both secrets; null: no rotation is under way.
   */
  answered_since_rotation: boolean | null;
  health: Health;
}

/** The newest attempted delivery of a webhook. */
export interface LastAnswer {
  delivery_id: number;
  status: DeliveryStatus;
  /** Cause of the latest failed attempt, such as `timeout` or `http_500`. */
  error: string | null;
  tries: number;
  at: string;
}

/** A row of `GET /webhooks`. */
export interface ListedWebhook extends ManagedWebhook {
  /** null if none of the latest thousand deliveries was attempted. */
  last: LastAnswer | null;
}

/** Lists are answered whole, or with what a table shows of a row. */
export const LIST_VIEWS = ['full', 'summary'] as const;

/** A row of `GET /webhooks?view=summary`. */
export interface WebhookSummary extends Pick<ManagedWebhook, 'id' | 'name' | 'url' | 'active'> {
  /** The first two names that it chose; `event_count` says how many there are. */
  events: string[];
  event_count: number;
  /** Without what is null or 0. */
  health: Pick<Health, 'state'> & Partial<Health>;
  last: (Pick<LastAnswer, 'error' | 'at'> & { state: DeliveryState }) | null;
}

export interface WebhookWithSecret extends ManagedWebhook {
  /**
   * `null` where the stored secret can no longer be decrypted: rotate it. Absent for callers who may
   * not reveal secrets (content API action `webhooks.revealSecret`, admin action `webhooks.reveal`).
   */
  secret?: string | null;
  /** The headers of its own, where `secret` is; a value is null if it can no longer be decrypted. */
  headers?: Record<string, string | null>;
}

export interface WebhookInput {
  name: string;
  url: string;
  events: string[];
  /** Default: true. */
  active?: boolean;
  /** Default: full. */
  payload?: WebhookPayload;
  /** Default: none. */
  filter?: Record<string, unknown> | null;
  /** 0.01 to 10,000; default: null, no limit. */
  rate_per_second?: number | null;
  /** 1 to 256; default: null, the site's. */
  concurrency?: number | null;
  /** Default: none. */
  ordering?: WebhookOrdering;
  /**
   * Headers of its own, at most 20; all of them: what is not named goes. `***` keeps the value that a
   * header has. Default: none.
   */
  headers?: Record<string, string> | null;
}

/** Choice for the waiting deliveries when a webhook is switched on; default: they are sent. */
export const WAITING_CHOICES = ['send', 'discard'] as const;
export type WaitingChoice = (typeof WAITING_CHOICES)[number];

/** `PUT` and `PATCH /webhooks/{id}` */
export interface WebhookChanges extends Partial<WebhookInput> {
  /** Only if this switches the webhook on. */
  waiting?: WaitingChoice;
  /** The `updated_at` that the change is based on; 409 `changed_meanwhile` if the webhook has another one. */
  if_updated_at?: string;
}

/** `POST /webhooks/{id}/secret` */
export interface RotateSecretInput {
  /** How long the old secret goes on signing together with the new one, 0 to 168; default: not at all. */
  overlap_hours?: number;
}

/** `POST /webhooks/{id}/filter/preview` */
export interface FilterPreviewInput {
  filter: Record<string, unknown>;
  /** Only deliveries of this event, and its example. */
  event?: string;
}

/** The result of a filter for one event. */
export interface FilterSample {
  event: string;
  /** The delivery whose data it is; null: it is the event's example. */
  delivery_id: string | null;
  matched: boolean;
  data: unknown;
}

export interface FilterPreview {
  matched: number;
  of: number;
  /** The newest first, examples last; 10 at most. */
  samples: FilterSample[];
}

export interface SentRequest {
  url: string;
  headers: Record<string, string>;
  body: string;
}

export interface ReceivedAnswer {
  status: number;
  headers: Record<string, string>;
  body: string;
  /** The answer was longer than 20,000 bytes; the rest was not read. */
  truncated: boolean;
}

/** One HTTP request of a delivery. */
export interface Attempt {
  at: string;
  request: Omit<SentRequest, 'body'>;
  answer: ReceivedAnswer | null;
  /** Readable cause of a failure, such as `timeout` or `http_500`; null when it succeeded. */
  error: string | null;
  duration_ms: number;
  /** Asked for by a person (Send again now, Send a test), not by the schedule. */
  manual: boolean;
}

export interface Delivery {
  id: number;
  /** The `id` of the envelope and of the delivery header; the same on every try. */
  delivery_id: string;
  webhook_id: number;
  /** null if the webhook is gone. */
  webhook_name: string | null;
  event: string;
  /** null for tests, for events that are about no record, and for those of versions before 0.2. */
  subject: Subject | null;
  status: DeliveryStatus;
  state: DeliveryState;
  /** True if it was created again from the journal. */
  replayed: boolean;
  tries: number;
  first_attempt_at: string | null;
  next_attempt_at: string | null;
  created_at: string;
  finished_at: string | null;
  request: SentRequest;
  answer: ReceivedAnswer | null;
  error: string | null;
  duration_ms: number | null;
  attempts: Attempt[];
}

/** A row of `GET /webhook-deliveries?view=summary`. */
export interface DeliverySummary extends Pick<
  Delivery,
  | 'id'
  | 'webhook_id'
  | 'webhook_name'
  | 'event'
  | 'subject'
  | 'state'
  | 'tries'
  | 'next_attempt_at'
  | 'created_at'
  | 'error'
> {
  /** The webhook is on. */
  webhook_active: boolean;
  /** The status of the last answer; null: there was none. */
  response_code: number | null;
}

export interface TestResult {
  ok: boolean;
  response_code: number | null;
  error: string | null;
  duration_ms: number;
  delivery_id: string;
}

/** One row of `GET /webhooks/events`. */
export interface CatalogueEvent {
  event: string;
  label: string;
  group: string;
  module: string | null;
  description: string | null;
  /** JSON Schema of `data`. */
  schema: Record<string, unknown> | null;
  example: unknown;
}

/** A row of `GET /webhooks/events?view=summary`. */
export type EventSummary = Omit<CatalogueEvent, 'schema' | 'example'>;

export interface Pagination {
  page: number;
  per_page: number;
  page_count: number;
  total: number;
  /** `total` is a lower bound: counting stops at 10,000 so that a large log stays fast. */
  total_capped?: boolean;
}

export interface Page<T> {
  data: T[];
  meta: {
    pagination: Pagination;
    /** Text searches only: when the oldest searched delivery was created; null: there is none. */
    searched_from?: string | null;
  };
}

/** A page of a list that is read on by a cursor. */
export interface CursorPage<T> {
  data: T[];
  meta: {
    /** Cursor of the next page; null: there is none. */
    next_cursor: string | null;
    total: number;
    /** `total` is a lower bound: counting stops at 10,000. */
    total_capped: boolean;
    /** Text searches only: when the oldest searched delivery was created; null: there is none. */
    searched_from?: string | null;
  };
}

/** The body of a post; docs/contract-webhooks.md#envelope. */
export interface Envelope {
  id: string;
  event: string;
  created_at: string;
  site: string;
  data: Record<string, unknown>;
}

/** `GET /webhooks/journal` */
export interface JournalPage {
  data: Envelope[];
  /** Cursor of the next page; if `data` is empty, nothing has come since. */
  next_cursor: string;
}

/** `GET /webhook-deliveries/causes` */
export interface FailureCauses {
  data: FailureCause[];
  /** When the oldest delivery was made that was counted; null: there was none. */
  meta: { searched_from: string | null };
}

/** One cause with which deliveries of a webhook are failing or failed. */
export interface FailureCause {
  cause: string;
  /** Absent with `by=cause`, which counts those of all webhooks together. */
  webhook_id?: number;
  /** Deliveries that are failing or failed with it. */
  count: number;
  /** When the oldest and the newest of them were made. */
  first_at: string;
  last_at: string;
}

/** The filters of the log, as `POST /webhook-recoveries` and its preview take them. */
export interface RecoveryFilter {
  webhook?: number;
  event?: string;
  status?: DeliveryStatus;
  state?: DeliveryState;
  cause?: string;
  subject_type?: SubjectType;
  subject_id?: string;
  /** RFC 3339. */
  from?: string;
  to?: string;
  q?: string;
  /** Only the deliveries of another recovery. */
  recovery?: number;
  /** At most 500: of rows, or as receivers know them. */
  ids?: (number | string)[];
}

export const RECOVERY_STATES = ['running', 'paused', 'done', 'cancelled'] as const;
export type RecoveryState = (typeof RECOVERY_STATES)[number];

/** Failed deliveries that are sent again; docs/contract-webhooks.md#recoveries. */
export interface Recovery {
  id: number;
  state: RecoveryState;
  /** Deliveries that it is about. */
  matching: number;
  /** Deliveries that were queued so far. */
  queued: number;
  /** How the first attempt of each ended after that. */
  sent: number;
  failed: number;
  created_at: string;
  finished_at: string | null;
}

/** `POST /webhook-recoveries/preview` */
export interface RecoveryPreview {
  /** Starts exactly this, once, within a day. */
  preview_id: string;
  matching: number;
  by_webhook: { webhook_id: number; count: number }[];
  oldest_at: string | null;
  /** The newest of them, 10 at most. */
  sample: Delivery[];
}

/** `POST /webhook-recoveries`: one of the two. */
export type RecoveryInput = { filter: RecoveryFilter } | { preview_id: string };
