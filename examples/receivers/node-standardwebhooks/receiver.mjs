// A receiver of Switchboard's webhooks that leaves verifying to the package `standardwebhooks`.
//
//   npm install standardwebhooks
//   WEBHOOK_SECRET=whsec_… PORT=8080 node receiver.mjs
//
// The package looks at webhook-id, webhook-timestamp and webhook-signature, and allows 5 minutes.
import { createServer } from 'node:http';
import { Webhook, WebhookVerificationError } from 'standardwebhooks';

const SECRET = process.env.WEBHOOK_SECRET ?? '';
// The prefix alone would be a secret that everybody knows.
if (!/^whsec_\S+$/.test(SECRET)) {
  console.error('Set WEBHOOK_SECRET to the secret of the webhook.');
  process.exit(1);
}
const webhook = new Webhook(SECRET);
/** In memory for the example's sake; a real receiver asks a database with a unique key. */
const stored = new Set();

const readText = async (request) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
};

const receive = async (request) => {
  if (request.method !== 'POST') return 405;
  const rawBody = await readText(request);
  try {
    const { id, event } = webhook.verify(rawBody, request.headers);
    const isNew = !stored.has(id);
    stored.add(id);
    console.log(`${isNew ? 'stored' : 'seen before'} ${event} ${id}`);
    return 204;
  } catch (error) {
    if (error instanceof WebhookVerificationError) return 401;
    throw error;
  }
};

const server = createServer((request, response) => {
  receive(request).then(
    (status) => response.writeHead(status).end(),
    (error) => {
      console.error(error);
      response.writeHead(500).end();
    }
  );
});
server.listen(Number(process.env.PORT ?? 8080), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});
