import type { IncomingMessage } from 'node:http';
import type { Core } from '@strapi/strapi';
import { unsealOften } from '../../secrets/secret-box';
import { Refusal } from './answers';
import {
  judgeTimestamp,
  KEY_HEADER,
  SIGNATURE_HEADER,
  spendVerification,
  TIMESTAMP_HEADER,
  verifySignature,
} from '../rules/signature';
import type { ConnectionRow } from '../tables';

/** A header's value; undefined where it is missing or was sent more than once. */
const singleHeader = (request: IncomingMessage, name: string): string | undefined => {
  const values = request.headersDistinct[name];
  return values?.length === 1 ? values[0] : undefined;
};

export interface SignedHeaders {
  key: string | undefined;
  timestamp: string | undefined;
  signature: string | undefined;
}

export const signedHeaders = (request: IncomingMessage): SignedHeaders => ({
  key: singleHeader(request, KEY_HEADER),
  timestamp: singleHeader(request, TIMESTAMP_HEADER),
  signature: singleHeader(request, SIGNATURE_HEADER),
});

/**
 * The checks of who sent a request (docs/contract-pos.md#authentication); `checks.ts` has their
 * order. Each throws its Refusal (401).
 */

/** @param spend  what an unknown key costs: how long the answer takes must not tell which exist */
export const requireConnection = (row: ConnectionRow | null, spend: () => void): ConnectionRow => {
  if (!row || row.deleted_at !== null) {
    spend();
    throw new Refusal('unknown_key', 'X-POS-Key is missing or is no key of this site.');
  }
  if (row.revoked_at !== null) {
    throw new Refusal('revoked_key', 'The connection of this key was revoked.');
  }
  if (!row.active) {
    throw new Refusal(
      'revoked_key',
      `The connection of this key is switched off.${row.disabled_reason ? ` ${row.disabled_reason}` : ''}`
    );
  }
  return row;
};

/** `requireConnection` for a request that is signed. */
export const requireSigner = (
  row: ConnectionRow | null,
  { timestamp, signature }: SignedHeaders,
  body: Uint8Array
): ConnectionRow =>
  requireConnection(row, () => spendVerification({ timestamp: timestamp ?? '', signature, body }));

export const requireSecret = (strapi: Core.Strapi, connection: ConnectionRow): string => {
  const secret = unsealOften(strapi, connection.secret);
  if (secret !== null) return secret;
  throw new Refusal(
    'secret_unavailable',
    'The stored secret of this connection cannot be read any more: it has to be issued again.'
  );
};

/** A timestamp within the window; `skewSeconds` is the till's clock minus ours. */
export const requireTime = (
  { timestamp }: SignedHeaders,
  nowMs: number,
  windowSeconds: number
): { timestamp: string; skewSeconds: number } => {
  const time = judgeTimestamp(timestamp, nowMs, windowSeconds);
  if (time.ok) return time;
  throw new Refusal(
    'timestamp_outside_window',
    time.skewSeconds === null
      ? 'X-POS-Timestamp must be sent once, as whole Unix seconds.'
      : `X-POS-Timestamp is more than ${windowSeconds} seconds from the server’s time: check the clock.`,
    { skew_seconds: time.skewSeconds }
  );
};

/** @param timestamp  as `requireTime` found it good */
export const requireSignature = (
  secret: string,
  timestamp: string,
  { signature }: SignedHeaders,
  body: Uint8Array
): void => {
  if (verifySignature(secret, { timestamp, signature, body })) return;
  throw new Refusal(
    'signature_mismatch',
    'X-POS-Signature does not fit: sign the timestamp, a newline and the exact body bytes.'
  );
};
