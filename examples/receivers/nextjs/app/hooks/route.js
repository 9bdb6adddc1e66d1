// A receiver of Switchboard's webhooks as a route handler of Next.js (App Router).
//
//   npm install
//   WEBHOOK_SECRET=whsec_… PORT=8080 npx next start --hostname 127.0.0.1
//
// `request.json()` would give away the bytes: they are read first, and parsed when they are verified.
import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto';
import { link, mkdir, unlink, writeFile } from 'node:fs/promises';
import path from 'node:path';

export const runtime = 'nodejs';
export const dynamic = 'force-dynamic';

const TOLERANCE_SECONDS = 300;
const MAX_BODY_BYTES = 5 * 1024 * 1024;

/** @param {Buffer} rawBody the bytes as they came @param {number} now Unix seconds */
const isGenuine = (secret, headers, rawBody, now) => {
  const timestamp = headers.get('x-service-timestamp') ?? '';
  if (!/^\d{1,12}$/.test(timestamp)) return false;
  if (Math.abs(now - Number(timestamp)) > TOLERANCE_SECONDS) return false;
  const given = /^sha256=([0-9a-f]{64})$/.exec(headers.get('x-service-signature') ?? '');
  if (!given) return false;
  const expected = createHmac('sha256', secret).update(`${timestamp}.`).update(rawBody).digest();
  return timingSafeEqual(expected, Buffer.from(given[1], 'hex'));
};

/** Stores an event unless it is stored already. @returns whether it is new */
const store = async (deliveryId, rawBody) => {
  const folder = process.env.EVENTS_FOLDER ?? 'events';
  await mkdir(folder, { recursive: true });
  const temporary = path.join(folder, `${randomUUID()}.tmp`);
  await writeFile(temporary, rawBody, { flag: 'wx', flush: true });
  try {
    // Made whole or not at all, and never over a file that is there.
    await link(temporary, path.join(folder, `${deliveryId}.json`));
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  } finally {
    await unlink(temporary);
  }
};

/** The bytes as they came, or null where they are too many. */
const readBody = async (request) => {
  const chunks = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
};

const answer = (status) => new Response(null, { status });

export async function POST(request) {
  // instrumentation.js lets no server start without a secret.
  const secret = process.env.WEBHOOK_SECRET;
  const rawBody = await readBody(request);
  if (rawBody === null) return answer(413);
  if (!isGenuine(secret, request.headers, rawBody, Date.now() / 1000)) return answer(401);
  // From the signed body, not from the header, which is not signed.
  const { id, event } = JSON.parse(rawBody.toString('utf8'));
  if (!/^[0-9a-f-]{36}$/.test(id)) return answer(400);
  // What cannot be stored is a 500 of Next.js, which asks for the next try.
  const isNew = await store(id, rawBody);
  console.log(`${isNew ? 'stored' : 'seen before'} ${event} ${id}`);
  return answer(204);
}
