import { createHmac, randomBytes } from 'node:crypto';

const PREFIX = 'whsec_';

/** A new signing secret: `whsec_` and the base64 of 32 random bytes. */
export const generateSecret = (random: (size: number) => Buffer = randomBytes): string =>
  PREFIX + random(32).toString('base64');

/**
 * The value of `X-Service-Signature`: `sha256=` and the lowercase hex HMAC-SHA256 of
 * `<timestamp>.<body>`, keyed with the whole secret string. docs/contract-webhooks.md#signatures.
 * @param timestamp Unix seconds.
 */
export const serviceSignature = (secret: string, timestamp: number, body: string): string =>
  `sha256=${createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex')}`;

/**
 * The value of `webhook-signature` of the Standard Webhooks convention: `v1,` and the base64
 * HMAC-SHA256 of `<id>.<timestamp>.<body>`, keyed with the bytes that the secret encodes.
 */
export const standardSignature = (
  secret: string,
  id: string,
  timestamp: number,
  body: string
): string => {
  const key = Buffer.from(
    secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret,
    'base64'
  );
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
};

export interface SignedParts {
  secret: string;
  /** The one before it, while both are to be accepted. */
  previousSecret?: string | null;
  deliveryId: string;
  event: string;
  /** Unix seconds, of this attempt. */
  timestamp: number;
  body: string;
}

/**
 * Every header an attempt is signed with: ours and the Standard Webhooks ones. The standard's headers
 * take several signatures each; ours has a header for each.
 */
export const signatureHeaders = ({
  secret,
  previousSecret = null,
  deliveryId,
  event,
  timestamp,
  body,
}: SignedParts): Record<string, string> => ({
  'X-Service-Event': event,
  'X-Service-Delivery': deliveryId,
  'X-Service-Timestamp': String(timestamp),
  'X-Service-Signature': serviceSignature(secret, timestamp, body),
  'webhook-id': deliveryId,
  'webhook-timestamp': String(timestamp),
  'webhook-signature': [secret, previousSecret]
    .flatMap((key) => (key === null ? [] : standardSignature(key, deliveryId, timestamp, body)))
    .join(' '),
  ...(previousSecret !== null && {
    'X-Service-Signature-Previous': serviceSignature(previousSecret, timestamp, body),
  }),
});
