import type {
  Health,
  ManagedWebhook,
  Webhook,
  WebhookWithSecret,
} from '../../../shared/contracts/webhooks';
import { isoTime, isoTimeOrNull } from '../runtime/iso-time';
import { headerNames } from './own-headers';
import { storedFilter } from './rules/data-filter';
import { disabledBecause } from './rules/disabled-because';
import type { Spell } from './rules/health';
import { chosenEvents } from './rules/chosen-events';
import type { WebhookRow } from './tables';

type Rotated = Pick<WebhookRow, 'previous_secret' | 'previous_secret_until' | 'answered_rotation'>;

/** The sealed secret before the last rotation, while posts are signed with it too; else null. */
export const previousSecret = (row: Rotated): string | null =>
  row.previous_secret !== null && Number(row.previous_secret_until) > Date.now()
    ? row.previous_secret
    : null;

/**
 * Whether a post since the last rotation was answered 2xx; null where posts are signed with one secret
 * alone.
 */
export const answeredSinceRotation = (row: Rotated): boolean | null =>
  previousSecret(row) === null
    ? null
    : Number(row.answered_rotation) === Number(row.previous_secret_until);

const numberOrNull = (value: number | string | null): number | null =>
  value === null ? null : Number(value);

/** A webhook as hooks show it: never with its secret, nor with the headers of its own. */
export const toWebhook = (row: WebhookRow): Webhook => ({
  id: Number(row.id),
  name: row.name,
  url: row.url,
  events: chosenEvents(row.events),
  active: Boolean(row.active),
  disabled_reason: row.disabled_reason,
  disabled_because: disabledBecause(row.disabled_reason),
  disabled_at: isoTimeOrNull(row.disabled_at),
  consecutive_failures: Number(row.consecutive_failures),
  payload: row.payload ?? 'full',
  filter: storedFilter(row.filter),
  rate_per_second: numberOrNull(row.rate_per_second),
  concurrency: numberOrNull(row.concurrency),
  ordering: row.ordering ?? 'none',
  previous_secret_until:
    previousSecret(row) === null ? null : isoTimeOrNull(row.previous_secret_until),
  created_at: isoTime(Number(row.created_at)),
  updated_at: isoTime(Number(row.updated_at)),
});

/** What a webhook's row keeps of how its attempts went. */
export const spellOf = (row: Pick<WebhookRow, 'attempted' | 'unwell_since'>): Spell => ({
  attempted: Boolean(row.attempted),
  unwellSince: row.unwell_since === null ? null : Number(row.unwell_since),
});

/** A webhook as the management routes show it. */
export const toManaged = (row: WebhookRow, health: Health): ManagedWebhook => ({
  ...toWebhook(row),
  header_names: headerNames(row),
  answered_since_rotation: answeredSinceRotation(row),
  health,
});

export const toWebhookWithSecret = (
  row: WebhookRow,
  health: Health,
  secrets: Required<Pick<WebhookWithSecret, 'secret' | 'headers'>>
): WebhookWithSecret => ({ ...toManaged(row, health), ...secrets });
