// A receiver of Switchboard's webhooks, with nothing but Node (20 or later).
//
//   WEBHOOK_SECRET=whsec_… PORT=8080 node receiver.mjs
//
// It stores each event once, as a file named after the delivery id, and answers when it is stored.
// What is to be done with events is done afterwards, from the files, by whatever you like.
import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto';
import { link, mkdir, unlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import path from 'node:path';

const SECRET = process.env.WEBHOOK_SECRET ?? '';
const FOLDER = process.env.EVENTS_FOLDER ?? 'events';
const TOLERANCE_SECONDS = 300;
const MAX_BODY_BYTES = 5 * 1024 * 1024;

/** @param {Buffer} rawBody the bytes as they came @param {number} now Unix seconds */
const isGenuine = (secret, headers, rawBody, now) => {
  const timestamp = headers['x-service-timestamp'] ?? '';
  if (!/^\d{1,12}$/.test(timestamp)) return false;
  if (Math.abs(now - Number(timestamp)) > TOLERANCE_SECONDS) return false;
  const given = /^sha256=([0-9a-f]{64})$/.exec(headers['x-service-signature'] ?? '');
  if (!given) return false;
  const expected = createHmac('sha256', secret).update(`${timestamp}.`).update(rawBody).digest();
  return timingSafeEqual(expected, Buffer.from(given[1], 'hex'));
};

const readBody = async (request) => {
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
};

/**
 * Stores an event unless it is stored already. Written under another name first: a crash half way
 * must not leave half an event that looks like a whole one.
 * @returns whether it is new.
 */
const store = async (deliveryId, rawBody) => {
  const temporary = path.join(FOLDER, `${randomUUID()}.tmp`);
  await writeFile(temporary, rawBody, { flag: 'wx', flush: true });
  try {
    await link(temporary, path.join(FOLDER, `${deliveryId}.json`));
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  } finally {
    await unlink(temporary);
  }
};

const receive = async (request) => {
  if (request.method !== 'POST') return 405;
  const rawBody = await readBody(request);
  if (rawBody === null) return 413;
  if (!isGenuine(SECRET, request.headers, rawBody, Date.now() / 1000)) return 401;
  // From the signed body, not from the header, which is not signed.
  const { id, event } = JSON.parse(rawBody.toString('utf8'));
  if (!/^[0-9a-f-]{36}$/.test(id)) return 400;
  const isNew = await store(id, rawBody);
  console.log(`${isNew ? 'stored' : 'seen before'} ${event} ${id}`);
  return 204;
};

// The prefix alone would be a secret that everybody knows.
if (!/^whsec_\S+$/.test(SECRET)) {
  console.error('Set WEBHOOK_SECRET to the secret of the webhook.');
  process.exit(1);
}
await mkdir(FOLDER, { recursive: true });

const server = createServer((request, response) => {
  receive(request).then(
    (status) => response.writeHead(status).end(),
    (error) => {
      console.error(error);
      // Not stored: a 5xx asks for the next try.
      response.writeHead(500).end();
    }
  );
});
server.listen(Number(process.env.PORT ?? 8080), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});
