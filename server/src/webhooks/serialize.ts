import type { Webhook, WebhookWithSecret } from '../../../shared/contracts/webhooks';
import { isoTime, isoTimeOrNull } from '../runtime/iso-time';
import type { WebhookRow } from './tables';

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
