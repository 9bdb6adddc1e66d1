import crypto from 'node:crypto';

type Headers = Record<string, string>;

const header = (headers: Headers, name: string): string =>
  Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1] ?? '';

/**
 * A receiver written from docs/contract-webhooks.md#signatures alone and nothing of ours:
 * the timestamp, a dot and the raw body; HMAC-SHA256 keyed with the secret; `sha256=` and lowercase
 * hex; nothing older than 300 seconds.
 * @param now Unix seconds.
 */
export const verifyPost = (secret: string, headers: Headers, raw: Buffer, now: number): boolean => {
  const timestamp = header(headers, 'x-service-timestamp');
  if (!/^\d+$/.test(timestamp) || Math.abs(now - Number(timestamp)) > 300) return false;
  const expected = crypto
    .createHmac('sha256', secret)
    .update(Buffer.concat([Buffer.from(`${timestamp}.`), raw]))
    .digest('hex');
  const given = header(headers, 'x-service-signature');
  return (
    given.length === expected.length + 7 &&
    crypto.timingSafeEqual(Buffer.from(given), Buffer.from(`sha256=${expected}`))
  );
};
