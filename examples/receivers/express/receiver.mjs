// A receiver of Switchboard's webhooks with Express (4 or 5).
//
//   npm install
//   WEBHOOK_SECRET=whsec_… PORT=8080 node receiver.mjs
//
// Express has no raw body of its own accord: `express.raw` reads it for this route. A parser for all
// routes, as `app.use(express.json())`, has to come after the route, or it takes the bytes first.
import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto';
import { link, mkdir, unlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import express from 'express';

const SECRET = process.env.WEBHOOK_SECRET ?? '';
const FOLDER = process.env.EVENTS_FOLDER ?? 'events';
const TOLERANCE_SECONDS = 300;

// The prefix alone would be a secret that everybody knows.
if (!/^whsec_\S+$/.test(SECRET)) {
  console.error('Set WEBHOOK_SECRET to the secret of the webhook.');
  process.exit(1);
}

/** @param {Buffer} rawBody the bytes as they came @param {number} now Unix seconds */
const isGenuine = (headers, rawBody, now) => {
  const timestamp = headers['x-service-timestamp'] ?? '';
  if (!/^\d{1,12}$/.test(timestamp)) return false;
  if (Math.abs(now - Number(timestamp)) > TOLERANCE_SECONDS) return false;
  const given = /^sha256=([0-9a-f]{64})$/.exec(headers['x-service-signature'] ?? '');
  if (!given) return false;
  const expected = createHmac('sha256', SECRET).update(`${timestamp}.`).update(rawBody).digest();
  return timingSafeEqual(expected, Buffer.from(given[1], 'hex'));
};

/** Stores an event unless it is stored already. @returns whether it is new */
const store = async (deliveryId, rawBody) => {
  const temporary = path.join(FOLDER, `${randomUUID()}.tmp`);
  await writeFile(temporary, rawBody, { flag: 'wx', flush: true });
  try {
    // Made whole or not at all, and never over a file that is there.
    await link(temporary, path.join(FOLDER, `${deliveryId}.json`));
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  } finally {
    await unlink(temporary);
  }
};

const app = express();

const rawBody = express.raw({ type: () => true, limit: '5mb', inflate: false });

app.post('/hooks', rawBody, (request, response, next) => {
  const receive = async () => {
    // Without a body there is no Buffer.
    const bytes = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
    if (!isGenuine(request.headers, bytes, Date.now() / 1000)) return 401;
    // From the signed body, not from the header, which is not signed.
    const { id, event } = JSON.parse(bytes.toString('utf8'));
    if (!/^[0-9a-f-]{36}$/.test(id)) return 400;
    const isNew = await store(id, bytes);
    console.log(`${isNew ? 'stored' : 'seen before'} ${event} ${id}`);
    return 204;
  };
  // What cannot be stored is Express's 500, which asks for the next try.
  receive().then((status) => response.status(status).end(), next);
});

await mkdir(FOLDER, { recursive: true });
const server = app.listen(Number(process.env.PORT ?? 8080), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}/hooks`);
});
