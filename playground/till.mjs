// A till of the playground: sells, takes goods back before their sale is known, and counts, with the
// package's own client. What cannot be sent waits in `<DATA>/till-queue` and goes out in order.
//
//   SITE_URL=http://127.0.0.1:1337 TILL_KEY=pos_live_… TILL_SECRET=pos_secret_… node playground/till.mjs
//
// Without a key and a secret it makes itself a connection, signed in as the playground's owner.
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import tillClient from '../till-client/index.js';
import { openTillPage } from './till-page.mjs';

const { createOfflineTill } = tillClient;

const SITE_URL = process.env.SITE_URL ?? 'http://127.0.0.1:1337';
const HOST = process.env.HOST ?? '127.0.0.1';
const PORT = Number(process.env.TILL_PORT ?? 4500);
const DATA = path.resolve(process.env.DATA ?? 'playground/.tmp');
const BETWEEN_MS = Number(process.env.TILL_INTERVAL_MS ?? 15_000);
const CREDENTIALS = path.join(DATA, 'till.json');

const ITEMS = [
  { sku: 'MUG-BLUE', gtin: '4006381333931', name: 'Blue mug', opening: [{ quantity: 40 }] },
  { sku: 'MUG-RED', name: 'Red mug', opening: [{ quantity: 25 }] },
  { sku: 'TEA-GREEN', name: 'Green tea', low_at: 5, opening: [{ quantity: 60 }] },
];

const readJson = (file) => {
  try {
    return JSON.parse(fs.readFileSync(file, 'utf8'));
  } catch {
    return null;
  }
};

const request = async (method, route, { token, body } = {}) => {
  const response = await fetch(`${SITE_URL}${route}`, {
    method,
    headers: {
      'content-type': 'application/json',
      ...(token && { authorization: `Bearer ${token}` }),
    },
    body: body && JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${route}: ${response.status} ${text.slice(0, 200)}`);
  return text ? JSON.parse(text) : null;
};

/** Credentials from the environment, from the last start, or of a new connection; else null. */
const findCredentials = async () => {
  const { TILL_KEY: key, TILL_SECRET: secret } = process.env;
  if (key && secret) return { key, secret };
  const kept = readJson(CREDENTIALS);
  if (kept && (await isKnown(kept.key))) return kept;
  const login = readJson(path.join(DATA, 'playground.json'))?.login;
  if (!login) return null;
  const session = await request('POST', '/admin/login', { body: login }).catch(() => null);
  if (!session) return null;
  const { token } = session.data;
  const { data: levels } = await request('GET', '/switchboard/levels?per_page=100', { token });
  for (const item of ITEMS) {
    if (levels.some(({ sku }) => sku === item.sku)) continue;
    await request('POST', '/switchboard/items', { token, body: item });
  }
  const { data } = await request('POST', '/switchboard/connections', {
    token,
    body: {
      name: 'Playground till',
      scopes: ['sale:write', 'refund:write', 'inventory:write'],
      mode: 'live',
      locations: [],
    },
  });
  const made = { key: data.key, secret: data.secret };
  fs.writeFileSync(CREDENTIALS, JSON.stringify(made, null, 2), { mode: 0o600 });
  return made;
};

/** False where the database was taken away and this file was not. */
const isKnown = async (key) => {
  const response = await fetch(`${SITE_URL}/api/service-pos/v1/ping`, {
    headers: { 'X-POS-Key': key },
  });
  return response.status !== 401;
};

const now = (agoSeconds = 0) => new Date(Date.now() - agoSeconds * 1000).toISOString();
const pick = (list) => list[Math.floor(Math.random() * list.length)];

const sale = (lines, more = {}) => ({
  external_id: `till-${randomUUID()}`,
  occurred_at: now(),
  currency: 'GBP',
  total: lines.reduce((sum, { quantity, unit_price: price }) => sum + quantity * price, 0),
  line_items: lines,
  meta: { cashier: 'Ada' },
  ...more,
});

const line = () => ({
  sku: pick(ITEMS).sku,
  quantity: 1 + Math.floor(Math.random() * 3),
  unit_price: 899,
});

const STEP_NAMES = ['A sale', 'A refund, then its sale', 'A sale of two', 'A delivery', 'A count'];

/** One of everything: a sale, a refund that comes before its sale, an adjustment, a count. */
const STEPS = [
  (till) => till.sale(sale([line()])),
  async (till) => {
    const sold = sale([{ sku: 'MUG-BLUE', quantity: 2, unit_price: 899 }], {
      occurred_at: now(60),
    });
    await till.refund({
      external_id: `till-${randomUUID()}`,
      sale_external_id: sold.external_id,
      occurred_at: now(),
      reason: 'Wrong colour',
      line_items: [{ sku: 'MUG-BLUE', quantity: 1 }],
    });
    await till.sale(sold);
  },
  (till) => till.sale(sale([line(), { sku: 'TEA-GREEN', quantity: 1, unit_price: 450 }])),
  (till) =>
    till.inventory({
      external_id: `till-${randomUUID()}`,
      occurred_at: now(),
      mode: 'relative',
      counts: [
        { sku: 'MUG-RED', quantity: 6, reason: 'Delivery' },
        { sku: 'MUG-BLUE', quantity: 3, reason: 'Delivery' },
      ],
    }),
  (till) =>
    till.inventory({
      external_id: `till-${randomUUID()}`,
      occurred_at: now(),
      mode: 'absolute',
      counts: [{ sku: 'TEA-GREEN', quantity: 50 + Math.floor(Math.random() * 10) }],
    }),
];

const main = async () => {
  const ready = (note, url) => process.send?.({ ready: true, note, url });
  const credentials = await findCredentials();
  if (!credentials) {
    // Somebody registered the owner by hand: the till cannot sign in, and waits to be stopped.
    ready('asleep: set TILL_KEY and TILL_SECRET to a connection of yours');
    setInterval(() => {}, 2 ** 30);
    process.once('disconnect', () => process.exit(0));
    return;
  }
  let tillPage;
  const till = createOfflineTill({
    ...credentials,
    url: `${SITE_URL}/api/service-pos/v1`,
    folder: path.join(DATA, 'till-queue'),
    onSettled(settlement) {
      const { outcome, kind, error } = settlement;
      tillPage?.show(settlement);
      if (outcome === 'refused') console.error(`Till: a ${kind} was refused: ${error.message}`);
    },
  });
  const actions = Object.fromEntries(
    STEPS.map((step, index) => [STEP_NAMES[index], () => step(till)])
  );
  tillPage = await openTillPage({
    host: HOST,
    port: PORT,
    siteUrl: SITE_URL,
    note: 'What was sent, and what the site answered. Stock follows under CRM > Stock.',
    actions,
  });
  till.run();
  let step = 0;
  let timer;
  const next = async () => {
    await STEPS[step % STEPS.length](till);
    step += 1;
    timer = setTimeout(next, step < STEPS.length ? 200 : BETWEEN_MS);
  };
  await next();
  ready(`${tillPage.url}  (sells every ${BETWEEN_MS / 1000} s)`, tillPage.url);
  const stop = async () => {
    clearTimeout(timer);
    tillPage.close();
    await till.stop();
    process.exit(0);
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  process.once('disconnect', stop);
};

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
