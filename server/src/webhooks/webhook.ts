import {
  type DisabledBecause,
  type Health,
  KEPT_VALUE,
  type ManagedWebhook,
  type Webhook,
} from '../../../shared/contracts/webhooks';
import { isoTime, isoTimeOrNull, isRecord, jsonIn } from '../runtime/text';
import { seal, unseal } from '../secrets/secret-box';
import { storedFilter } from './rules/data-filter';
import type { Spell } from './rules/failing';
import type { WebhookRow } from './tables';
import type { App } from '../app';

/** Each value sealed by itself, so that the names can be read without the key; by their names. */
type Sealed = Readonly<Record<string, string>>;

const sealedHeaders = ({ headers }: Pick<WebhookRow, 'headers'>): Sealed => {
  // Only a foreign statement can have written invalid JSON.
  const stored = headers && jsonIn(headers);
  return isRecord(stored) ? (stored as Sealed) : {};
};

/** The names of a webhook's own headers, which anybody may see who sees the webhook. */
export const headerNames = (row: Pick<WebhookRow, 'headers'>): string[] =>
  Object.keys(sealedHeaders(row));

/** The values, null if one can no longer be decrypted. */
export const openHeaders = (
  app: App,
  row: Pick<WebhookRow, 'headers'>,
  open: (app: App, sealed: string) => string | null = unseal
): Record<string, string | null> =>
  Object.fromEntries(
    Object.entries(sealedHeaders(row)).map(([name, sealed]) => [name, open(app, sealed)])
  );

/**
 * Seals headers for storage; null for none. `***` keeps the sealed value, without a key.
 * @throws ApplicationError (400) if the site has no key to seal with
 */
export const sealHeaders = (
  app: App,
  given: Readonly<Record<string, string>> | null,
  before: Pick<WebhookRow, 'headers'> = { headers: null }
): Sealed | null => {
  const kept = new Map(
    Object.entries(sealedHeaders(before)).map(([name, sealed]) => [name.toLowerCase(), sealed])
  );
  const entries = Object.entries(given ?? {}).flatMap(([name, value]) => {
    const text = value.trim();
    const sealed = text === KEPT_VALUE ? kept.get(name.toLowerCase()) : seal(app, text);
    return sealed === undefined ? [] : [[name, sealed] as const];
  });
  return entries.length === 0 ? null : Object.fromEntries(entries);
};

/** How the reason begins if a filter may not be used; the problem follows. */
export const UNFIT_FILTER = 'Its filter may not be used:';

/** How the reason begins if a webhook or a connection came from another site. */
export const FROM_ELSEWHERE = 'It came from another site';

/** The sentences that are stored as reasons, those of earlier versions too. */
const SENTENCES: readonly (readonly [RegExp, (number: number) => DisabledBecause])[] = [
  [
    /after (\d+) failed deliver/,
    (deliveries) => ({ code: 'failed_deliveries', values: { deliveries } }),
  ],
  [
    /no attempt succeeded for ([\d.]+) hour/,
    (hours) => ({ code: 'failing_hours', values: { hours } }),
  ],
  [/answered 410/, () => ({ code: 'gone', values: {} })],
  [new RegExp(`^${UNFIT_FILTER}`), () => ({ code: 'filter', values: {} })],
  [new RegExp(`^${FROM_ELSEWHERE}`), () => ({ code: 'other_site', values: {} })],
];

/** A stored reason as a code with numbers; null if none or unknown. docs/contract-webhooks.md#switching-off */
export const disabledBecause = (reason: string | null): DisabledBecause | null => {
  if (reason === null) return null;
  for (const [sentence, because] of SENTENCES) {
    const found = sentence.exec(reason);
    if (found) return because(Number(found[1]));
  }
  return null;
};

/** The events that a row chose; none if a foreign write left an invalid list, which must not fail a write. */
export const chosenEvents = (text: string | null): string[] => {
  const chosen = text && jsonIn(text);
  return Array.isArray(chosen) ? chosen.filter((event) => typeof event === 'string') : [];
};

type Rotated = Pick<WebhookRow, 'previous_secret' | 'previous_secret_until' | 'answered_rotation'>;

/** The sealed secret before the last rotation, while posts are signed with it too; else null. */
export const previousSecret = (row: Rotated): string | null =>
  row.previous_secret !== null && Number(row.previous_secret_until) > Date.now()
    ? row.previous_secret
    : null;

/** True if a post since the last rotation was answered 2xx; null if posts are signed with one secret only. */
export const answeredSinceRotation = (row: Rotated): boolean | null =>
  previousSecret(row) === null
    ? null
    : Number(row.answered_rotation) === Number(row.previous_secret_until);

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
  filter: row.filter === null ? null : storedFilter(row.filter),
  rate_per_second: row.rate_per_second === null ? null : Number(row.rate_per_second),
  concurrency: row.concurrency === null ? null : Number(row.concurrency),
  ordering: row.ordering ?? 'none',
  previous_secret_until:
    previousSecret(row) === null ? null : isoTimeOrNull(row.previous_secret_until),
  created_at: isoTime(Number(row.created_at)),
  updated_at: isoTime(Number(row.updated_at)),
});

export const spellOf = (row: Pick<WebhookRow, 'attempted' | 'unwell_since'>): Spell => ({
  attempted: Boolean(row.attempted),
  unwellSince: row.unwell_since === null ? null : Number(row.unwell_since),
});

export const toManaged = (row: WebhookRow, health: Health): ManagedWebhook => ({
  ...toWebhook(row),
  header_names: headerNames(row),
  answered_since_rotation: answeredSinceRotation(row),
  health,
});
