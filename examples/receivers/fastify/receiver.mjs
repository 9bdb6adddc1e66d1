// A receiver of Switchboard's webhooks with Fastify (4 or 5).
//
//   npm install
//   WEBHOOK_SECRET=whsec_… PORT=8080 node receiver.mjs
//
// Fastify parses JSON before a handler sees it. The route stands in a plugin of its own whose parser
// hands the bytes on; routes outside of it keep theirs.
import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto';
import { link, mkdir, unlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import Fastify from 'fastify';

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

const webhooks = async (scope) => {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, bytes, done) =>
    done(null, bytes)
  );

  scope.post('/hooks', async (request, reply) => {
    const rawBody = request.body ?? Buffer.alloc(0);
    if (!isGenuine(request.headers, rawBody, Date.now() / 1000)) return reply.code(401).send();
    // From the signed body, not from the header, which is not signed.
    const { id, event } = JSON.parse(rawBody.toString('utf8'));
    if (!/^[0-9a-f-]{36}$/.test(id)) return reply.code(400).send();
    // What cannot be stored is Fastify's 500, which asks for the next try.
    const isNew = await store(id, rawBody);
    console.log(`${isNew ? 'stored' : 'seen before'} ${event} ${id}`);
    return reply.code(204).send();
  });
};

const app = Fastify({ bodyLimit: 5 * 1024 * 1024 });
app.setErrorHandler((error, _request, reply) => {
  if ((error.statusCode ?? 500) >= 500) console.error(error);
  reply.send(error);
});
app.register(webhooks);

await mkdir(FOLDER, { recursive: true });
const address = await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT ?? 8080) });
console.log(`listening on ${address}/hooks`);
