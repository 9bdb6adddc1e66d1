// A receiver of Switchboard's webhooks that leaves verifying to the package `standardwebhooks`.
//
//   npm install
//   WEBHOOK_SECRET=whsec_… PORT=8080 node receiver.mjs
//
// The package looks at webhook-id, webhook-timestamp and webhook-signature, and allows 5 minutes.
import { randomUUID } from 'node:crypto';
import { link, mkdir, unlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import path from 'node:path';
import { Webhook, WebhookVerificationError } from 'standardwebhooks';

const SECRET = process.env.WEBHOOK_SECRET ?? '';
const FOLDER = process.env.EVENTS_FOLDER ?? 'events';
const MAX_BODY_BYTES = 5 * 1024 * 1024;

// The prefix alone would be a secret that everybody knows.
if (!/^whsec_\S+$/.test(SECRET)) {
  console.error('Set WEBHOOK_SECRET to the secret of the webhook.');
  process.exit(1);
}
const webhook = new Webhook(SECRET);

const readText = async (request) => {
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
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

const receive = async (request) => {
  if (request.method !== 'POST') return 405;
  const rawBody = await readText(request);
  if (rawBody === null) return 413;
  try {
    const { id, event } = webhook.verify(rawBody, request.headers);
    if (!/^[0-9a-f-]{36}$/.test(id)) return 400;
    const isNew = await store(id, rawBody);
    console.log(`${isNew ? 'stored' : 'seen before'} ${event} ${id}`);
    return 204;
  } catch (error) {
    if (error instanceof WebhookVerificationError) return 401;
    throw error;
  }
};

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
