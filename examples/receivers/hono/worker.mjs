// The receiver for Cloudflare Workers, which have no files: a D1 database with a unique key keeps
// each event once.
//
//   npx wrangler d1 execute events --command "CREATE TABLE events (id TEXT PRIMARY KEY, body TEXT NOT NULL)"
//   npx wrangler secret put WEBHOOK_SECRET
//
// with a binding DB to that database in wrangler.toml, and this file as `main`.
import { createApp, isSecret } from './webhook.mjs';

const storeInDatabase = async (c, deliveryId, rawBody) => {
  const statement = 'INSERT INTO events (id, body) VALUES (?, ?) ON CONFLICT DO NOTHING';
  const text = new TextDecoder().decode(rawBody);
  const { meta } = await c.env.DB.prepare(statement).bind(deliveryId, text).run();
  return meta.changes === 1;
};

const secretOf = (c) => {
  // An empty key is one that everybody knows: better no answer than a wrong one.
  if (!isSecret(c.env.WEBHOOK_SECRET)) throw new Error('Set WEBHOOK_SECRET.');
  return c.env.WEBHOOK_SECRET;
};

export default createApp(secretOf, storeInDatabase);
