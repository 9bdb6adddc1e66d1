// What Node and Workers have in common: a Hono app that verifies with Web Crypto. It reads the body
// once, as bytes; `c.req.json()` before that would parse what nobody has vouched for.
import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';

const TOLERANCE_SECONDS = 300;
const encoder = new TextEncoder();

/** The prefix alone would be a secret that everybody knows. */
export const isSecret = (secret) => /^whsec_\S+$/.test(secret ?? '');

/**
 * @param {{ timestamp?: string, signature?: string }} given the header values
 * @param {Uint8Array} rawBody the bytes as they came
 * @param {number} now Unix seconds
 */
const isGenuine = async (secret, { timestamp = '', signature = '' }, rawBody, now) => {
  if (!/^\d{1,12}$/.test(timestamp)) return false;
  if (Math.abs(now - Number(timestamp)) > TOLERANCE_SECONDS) return false;
  const hex = /^sha256=([0-9a-f]{64})$/.exec(signature)?.[1];
  if (!hex) return false;
  const bytes = Uint8Array.from(hex.match(/../g), (pair) => Number.parseInt(pair, 16));
  const hmac = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', encoder.encode(secret), hmac, false, ['verify']);
  const signed = await new Blob([`${timestamp}.`, rawBody]).arrayBuffer();
  // Compares in constant time.
  return crypto.subtle.verify('HMAC', key, bytes, signed);
};

/**
 * @param {(c: import('hono').Context) => string} secretOf
 * @param {(c: import('hono').Context, id: string, rawBody: Uint8Array) => Promise<boolean>} store
 *   stores an event unless it is stored already; says whether it is new
 */
export const createApp = (secretOf, store) => {
  const app = new Hono();
  app.post('/hooks', bodyLimit({ maxSize: 5 * 1024 * 1024 }), async (c) => {
    const rawBody = new Uint8Array(await c.req.arrayBuffer());
    const given = {
      timestamp: c.req.header('x-service-timestamp'),
      signature: c.req.header('x-service-signature'),
    };
    if (!(await isGenuine(secretOf(c), given, rawBody, Date.now() / 1000))) {
      return c.body(null, 401);
    }
    // From the signed body, not from the header, which is not signed.
    const { id, event } = JSON.parse(new TextDecoder().decode(rawBody));
    if (!/^[0-9a-f-]{36}$/.test(id)) return c.body(null, 400);
    // What cannot be stored is Hono's 500, which asks for the next try.
    const isNew = await store(c, id, rawBody);
    console.log(`${isNew ? 'stored' : 'seen before'} ${event} ${id}`);
    return c.body(null, 204);
  });
  return app;
};
