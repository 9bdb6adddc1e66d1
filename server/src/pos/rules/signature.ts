import { createHmac, timingSafeEqual } from 'node:crypto';

import { LIMITS } from './states';

/** Header names (docs/contract-pos.md#authentication) in the lower case that Node reports. */
export const KEY_HEADER = 'x-pos-key';
export const TIMESTAMP_HEADER = 'x-pos-timestamp';
export const SIGNATURE_HEADER = 'x-pos-signature';

/** Unix seconds without sign, leading zero or fraction. */
const TIMESTAMP = /^[1-9]\d{0,11}$/;
const SIGNATURE = /^sha256=([0-9a-f]{64})$/i;

const digest = (secret: string, timestamp: string, body: Uint8Array): Buffer =>
  createHmac('sha256', secret).update(`${timestamp}\n`, 'utf8').update(body).digest();

/**
 * The value of `X-POS-Signature`: `sha256=` and the hex HMAC-SHA256 of `timestamp`, a newline and
 * the exact body bytes, keyed with the secret's UTF-8 bytes (the whole string, prefix included).
 */
export const signBody = (secret: string, timestamp: string, body: Uint8Array): string =>
  `sha256=${digest(secret, timestamp, body).toString('hex')}`;

export interface SignedRequest {
  /** `X-POS-Timestamp` exactly as received. */
  timestamp: string;
  /** `X-POS-Signature` as received; undefined when missing or sent more than once. */
  signature: string | undefined;
  /** The body bytes exactly as received. */
  body: Uint8Array;
}

/**
 * True if the signature fits. The hex may be in either case. The HMAC is worked out even for a
 * malformed header and compared in constant time, so the answer's time tells nothing.
 */
export const verifySignature = (secret: string, request: SignedRequest): boolean => {
  const expected = digest(secret, request.timestamp, request.body);
  const hex = SIGNATURE.exec(request.signature ?? '')?.[1];
  const given = hex === undefined ? Buffer.alloc(expected.length) : Buffer.from(hex, 'hex');
  return timingSafeEqual(expected, given) && hex !== undefined;
};

const DUMMY_SECRET = 'no connection has this secret';

/**
 * Spends what a verification costs, for a request whose key is unknown: how long the answer takes
 * must not tell which keys exist.
 */
export const spendVerification = (request: SignedRequest): void => {
  verifySignature(DUMMY_SECRET, request);
};

export type TimestampVerdict =
  | { ok: true; timestamp: string; skewSeconds: number }
  /** `skewSeconds` is null if the header is missing or unreadable. */
  | { ok: false; skewSeconds: number | null };

/**
 * Judges `X-POS-Timestamp` against the server's clock. The skew is the sender's clock minus ours,
 * in whole seconds: positive when the till is ahead. A skew of exactly the window passes.
 *
 * @param header  the header as received; undefined when missing or sent more than once
 * @param nowMs  the server's time in epoch milliseconds
 */
export const judgeTimestamp = (
  header: string | undefined,
  nowMs: number,
  windowSeconds: number = LIMITS.timestampWindowSeconds
): TimestampVerdict => {
  if (header === undefined || !TIMESTAMP.test(header)) return { ok: false, skewSeconds: null };
  const skewSeconds = Number(header) - Math.floor(nowMs / 1000);
  return Math.abs(skewSeconds) <= windowSeconds
    ? { ok: true, timestamp: header, skewSeconds }
    : { ok: false, skewSeconds };
};
