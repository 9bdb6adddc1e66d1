import type { IncomingMessage } from 'node:http';
import type { Core } from '@strapi/strapi';
import { unseal } from '../secrets/secret-box';
import { Refusal } from './answers';
import {
  judgeTimestamp,
  KEY_HEADER,
  SIGNATURE_HEADER,
  spendVerification,
  TIMESTAMP_HEADER,
  verifySignature,
} from './rules/signature';
import type { ConnectionRow } from './tables';

/** A header's value; undefined where it is missing or was sent more than once. */
export const singleHeader = (request: IncomingMessage, name: string): string | undefined => {
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

export interface Authenticated {
  connection: ConnectionRow;
  /** The till's clock minus ours. */
  skewSeconds: number;
}

/** @throws Refusal `unknown_key` or `revoked_key` */
export const requireConnection = (row: ConnectionRow | null, spend: () => void): ConnectionRow => {
  if (!row || row.deleted_at !== null) {
    spend();
    throw new Refusal('unknown_key', 'X-POS-Key is missing or is no key of this site.');
  }
  if (row.revoked_at !== null) {
    throw new Refusal('revoked_key', 'The connection of this key was revoked.');
  }
  return row;
};

/**
 * Who signed a request (specification 2, Authentication), in the order of ARCHITECTURE.md: key,
 * revocation, secret, time, signature.
 * @throws Refusal (401)
 */
export const authenticate = (
  strapi: Core.Strapi,
  row: ConnectionRow | null,
  headers: SignedHeaders,
  body: Uint8Array,
  { nowMs, windowSeconds }: { nowMs: number; windowSeconds: number }
): Authenticated => {
  const { signature } = headers;
  const connection = requireConnection(row, () =>
    spendVerification({ timestamp: headers.timestamp ?? '', signature, body })
  );
  const secret = unseal(strapi, connection.secret);
  if (secret === null) {
    throw new Refusal(
      'secret_unavailable',
      'The stored secret of this connection cannot be read any more: it has to be issued again.'
    );
  }
  const time = judgeTimestamp(headers.timestamp, nowMs, windowSeconds);
  if (!time.ok) {
    throw new Refusal(
      'timestamp_outside_window',
      time.skewSeconds === null
        ? 'X-POS-Timestamp must be sent once, as whole Unix seconds.'
        : `X-POS-Timestamp is more than ${windowSeconds} seconds from the server’s time: check the clock.`,
      { skew_seconds: time.skewSeconds }
    );
  }
  if (!verifySignature(secret, { timestamp: time.timestamp, signature, body })) {
    throw new Refusal(
      'signature_mismatch',
      'X-POS-Signature does not fit: sign the timestamp, a newline and the exact body bytes.'
    );
  }
  return { connection, skewSeconds: time.skewSeconds };
};
