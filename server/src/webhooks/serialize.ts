import type {
  Attempt,
  Delivery,
  Webhook,
  WebhookWithSecret,
} from '../../../shared/contracts/webhooks';
import { isoTime, isoTimeOrNull } from '../iso-time';
import type { DeliveryRow, WebhookRow } from './tables';

/** A webhook as lists and hooks show it: never with its secret. */
export const toWebhook = (row: WebhookRow): Webhook => ({
  id: Number(row.id),
  name: row.name,
  url: row.url,
  events: JSON.parse(row.events) as string[],
  active: Boolean(row.active),
  disabled_reason: row.disabled_reason,
  disabled_at: isoTimeOrNull(row.disabled_at),
  consecutive_failures: Number(row.consecutive_failures),
  created_at: isoTime(Number(row.created_at)),
  updated_at: isoTime(Number(row.updated_at)),
});

export const toWebhookWithSecret = (row: WebhookRow, secret: string | null): WebhookWithSecret => ({
  ...toWebhook(row),
  secret,
});

export const attemptsOf = (row: Pick<DeliveryRow, 'attempts'>): Attempt[] =>
  JSON.parse(row.attempts) as Attempt[];

export const toDelivery = (row: DeliveryRow): Delivery => {
  const attempts = attemptsOf(row);
  const last = attempts.at(-1);
  return {
    id: Number(row.id),
    delivery_id: row.delivery_id,
    webhook_id: Number(row.webhook_id),
    event: row.event,
    status: row.status,
    tries: Number(row.tries),
    next_attempt_at: isoTimeOrNull(row.next_attempt_at),
    created_at: isoTime(Number(row.created_at)),
    finished_at: isoTimeOrNull(row.finished_at),
    request: {
      url: last?.request.url ?? row.url,
      headers: last?.request.headers ?? {},
      body: row.body,
    },
    answer: last?.answer ?? null,
    error: row.error,
    duration_ms: last?.duration_ms ?? null,
    attempts,
  };
};
