import type { Core } from '@strapi/strapi';
import { KEPT_VALUE } from '../../../shared/contracts/webhooks';
import { isRecord } from '../runtime/is-record';
import { seal, unseal } from '../secrets/secret-box';
import type { WebhookRow } from './tables';

/** Each value sealed by itself, so that the names can be read without the key; by their names. */
type Sealed = Readonly<Record<string, string>>;

const sealedHeaders = ({ headers }: Pick<WebhookRow, 'headers'>): Sealed => {
  if (!headers) return {};
  try {
    const stored: unknown = JSON.parse(headers);
    return isRecord(stored) ? (stored as Sealed) : {};
  } catch {
    // Nobody but somebody else's statement writes what is no JSON.
    return {};
  }
};

/** The names of a webhook's own headers, which anybody may see who sees the webhook. */
export const headerNames = (row: Pick<WebhookRow, 'headers'>): string[] =>
  Object.keys(sealedHeaders(row));

/** The values, null where one can no longer be decrypted. */
export const openHeaders = (
  strapi: Core.Strapi,
  row: Pick<WebhookRow, 'headers'>,
  open: typeof unseal = unseal
): Record<string, string | null> =>
  Object.fromEntries(
    Object.entries(sealedHeaders(row)).map(([name, sealed]) => [name, open(strapi, sealed)])
  );

/**
 * What is stored of headers that were given; null for none. A value `***` stays as it is sealed, which
 * takes no key.
 * @throws ApplicationError (400) where the site has no key to seal with
 */
export const sealHeaders = (
  strapi: Core.Strapi,
  given: Readonly<Record<string, string>> | null,
  before: Pick<WebhookRow, 'headers'> = { headers: null }
): Sealed | null => {
  const kept = new Map(
    Object.entries(sealedHeaders(before)).map(([name, sealed]) => [name.toLowerCase(), sealed])
  );
  const entries = Object.entries(given ?? {}).flatMap(([name, value]) => {
    const text = value.trim();
    const sealed = text === KEPT_VALUE ? kept.get(name.toLowerCase()) : seal(strapi, text);
    return sealed === undefined ? [] : [[name, sealed] as const];
  });
  return entries.length === 0 ? null : Object.fromEntries(entries);
};
