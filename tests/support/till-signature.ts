import { createHmac } from 'node:crypto';

/**
 * The value of `X-POS-Signature` (docs/contract-pos.md#authentication): `sha256=` and the hex HMAC-SHA256
 * of `timestamp`, a newline and the exact body bytes, keyed with the secret's UTF-8 bytes (the whole
 * string, prefix included).
 */
export const signBody = (secret: string, timestamp: string, body: Uint8Array): string =>
  `sha256=${createHmac('sha256', secret).update(`${timestamp}\n`).update(body).digest('hex')}`;
