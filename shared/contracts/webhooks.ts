/** Types of `/api/fw-crm/v1/webhooks…` and `/switchboard/webhooks…`; docs/contract-webhooks.md#management-routes. */

export const DELIVERY_STATUSES = ['pending', 'sent', 'failed'] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** Times are ISO 8601 with an explicit offset. */
export interface Webhook {
  id: number;
  name: string;
  url: string;
  /** Event names, or `['*']` alone: every event, also ones added later. */
  events: string[];
  active: boolean;
  disabled_reason: string | null;
  disabled_at: string | null;
  consecutive_failures: number;
  created_at: string;
  updated_at: string;
}

export interface WebhookWithSecret extends Webhook {
  /**
   * `null` where the stored secret can no longer be decrypted: rotate it. Absent for whoever may not
   * reveal secrets (content API action `webhooks.revealSecret`, admin action `webhooks.reveal`).
   */
  secret?: string | null;
}

export interface WebhookInput {
  name: string;
  url: string;
  events: string[];
  /** Default: true. */
  active?: boolean;
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
  event: string;
  status: DeliveryStatus;
  tries: number;
  next_attempt_at: string | null;
  created_at: string;
  finished_at: string | null;
  request: SentRequest;
  answer: ReceivedAnswer | null;
  error: string | null;
  duration_ms: number | null;
  attempts: Attempt[];
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
  meta: { pagination: Pagination };
}
