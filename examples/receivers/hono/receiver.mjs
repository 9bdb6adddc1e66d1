// A receiver of Switchboard's webhooks with Hono on Node. worker.mjs is the same for Workers.
//
//   npm install
//   WEBHOOK_SECRET=whsec_… PORT=8080 node receiver.mjs
import { randomUUID } from 'node:crypto';
import { link, mkdir, unlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { serve } from '@hono/node-server';
import { createApp, isSecret } from './webhook.mjs';

const SECRET = process.env.WEBHOOK_SECRET ?? '';
const FOLDER = process.env.EVENTS_FOLDER ?? 'events';

if (!isSecret(SECRET)) {
  console.error('Set WEBHOOK_SECRET to the secret of the webhook.');
  process.exit(1);
}

/** Made under another name first: a crash half way must not leave half an event. */
const storeAsFile = async (_context, deliveryId, rawBody) => {
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

await mkdir(FOLDER, { recursive: true });
const app = createApp(() => SECRET, storeAsFile);
const port = Number(process.env.PORT ?? 8080);
serve({ fetch: app.fetch, hostname: '127.0.0.1', port }, (info) => {
  console.log(`listening on http://127.0.0.1:${info.port}/hooks`);
});
