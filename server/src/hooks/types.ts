import type { Webhook } from '../../../shared/contracts/webhooks';

/** A plugin's declaration of an event of its own: an entry of the `service_crm_webhook_events` map. */
export interface EventDeclaration {
  label: string;
  group: string;
  /** The module whose switch decides whether the event is offered and sent. */
  module?: string;
  description?: string;
  /** JSON Schema of `data`. */
  schema?: Record<string, unknown>;
  example?: unknown;
}

export type EventMap = Record<string, EventDeclaration>;

export interface EventToSend {
  /** The event's name, such as `loyalty.points_earned`. */
  event: string;
  /** An object; `{}` where none is given. A handler is handed a copy of its own. */
  data: object;
}

export interface PayloadFilterValue {
  /** The event's `data`: an object. */
  payload: unknown;
  event: string;
  /** Without its secret. */
  webhook: Webhook;
}

export interface RequestArgs {
  url: string;
  headers: Record<string, string>;
}

export interface RequestFilterValue {
  args: RequestArgs;
  webhook: Webhook;
  event: string;
}

export interface DeliveredResult {
  ok: boolean;
  event: string;
  /** The delivery's status after this attempt. */
  status: 'pending' | 'sent' | 'failed';
  tries: number;
  /** HTTP status of the answer; null if none came. */
  response_code: number | null;
  /** Readable cause of a failure; null after a success. */
  error: string | null;
  duration_ms: number;
  /** ISO 8601; null if no attempt follows. */
  next_attempt_at: string | null;
}

export interface DeliveredValue {
  delivery_id: string;
  result: DeliveredResult;
  webhook: Webhook;
}

/** Arguments and results of each hook's handlers. */
export interface HookTypes {
  service_crm_webhook_events: { in: EventMap; out: EventMap };
  service_crm_webhook: { in: EventToSend; out: void };
  service_crm_webhook_payload: { in: PayloadFilterValue; out: PayloadFilterValue | null };
  service_crm_webhook_request_args: { in: RequestFilterValue; out: RequestFilterValue };
  service_crm_webhook_delivered: { in: DeliveredValue; out: void };
  service_crm_webhook_allow_local: { in: boolean; out: boolean };
  service_crm_webhook_log_days: { in: number; out: number };
}
