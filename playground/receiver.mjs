// A receiver of Switchboard's webhooks, written from docs/contract-webhooks.md, with nothing but Node:
// it verifies each signature over the raw body, refuses what is older than five minutes, skips what
// it already has, and shows what arrived on a page that updates itself.
//
//   WEBHOOK_SECRET=whsec_… PORT=4400 node playground/receiver.mjs
import crypto from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { PAGE_HEADERS } from './page-shell.mjs';
import { receiverPage } from './receiver-page.mjs';

const HOST = process.env.HOST ?? '127.0.0.1';
const PORT = Number(process.env.PORT ?? 4400);
/** Of the site that sends, where it is one of the playground's. */
const page = receiverPage(process.env.SITE_URL);
const TOLERANCE_SECONDS = 300;
const MAX_BODY_BYTES = 1024 * 1024;
const KEPT = 200;

/**
 * Why a post must be refused, or null where it is genuine.
 * @param {{ secret: string, timestamp: unknown, signature: unknown, rawBody: Buffer, nowSeconds: number }} post
 */
export const refusal = ({ secret, timestamp, signature, rawBody, nowSeconds }) => {
  if (typeof timestamp !== 'string' || !/^\d{1,12}$/.test(timestamp)) return 'no timestamp';
  if (typeof signature !== 'string') return 'no signature';
  const expected = `sha256=${crypto
    .createHmac('sha256', secret)
    .update(`${timestamp}.`)
    .update(rawBody)
    .digest('hex')}`;
  const given = Buffer.from(signature);
  const wanted = Buffer.from(expected);
  // In constant time: how long a comparison takes must not tell how much of it was right.
  if (given.length !== wanted.length || !crypto.timingSafeEqual(given, wanted)) {
    return 'wrong signature';
  }
  if (Math.abs(nowSeconds - Number(timestamp)) > TOLERANCE_SECONDS) return 'too old';
  return null;
};

// The secret: from the environment, from the process that started this one, or from the page.
const SECRET_FILE = process.env.DATA && path.join(process.env.DATA, 'receiver-secret');
let secret = process.env.WEBHOOK_SECRET?.trim();
if (!secret && SECRET_FILE && fs.existsSync(SECRET_FILE)) {
  secret = fs.readFileSync(SECRET_FILE, 'utf8').trim();
}
const useSecret = (value) => {
  secret = value;
  if (SECRET_FILE) fs.writeFileSync(SECRET_FILE, value, { mode: 0o600 });
  broadcast({ type: 'state', ...state() });
};

/** What the page can ask for, to see retries: `ok`, `fail` (500), `slow` (11 s) or `redirect`. */
let mode = 'ok';
const MODES = ['ok', 'fail', 'slow', 'redirect'];
const state = () => ({ mode, hasSecret: Boolean(secret) });

const arrivals = [];
const handled = new Set();
const watchers = new Set();

const broadcast = (message) => {
  const text = `data: ${JSON.stringify(message)}\n\n`;
  for (const response of watchers) response.write(text);
};

const remember = (arrival) => {
  arrivals.push(arrival);
  if (arrivals.length > KEPT) arrivals.shift();
  broadcast({ type: 'arrival', arrival });
};

const readBody = async (request) => {
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
};

const reply = (response, status, text, headers = {}) => {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', ...headers });
  response.end(text);
};

const receive = async (request, response) => {
  const rawBody = await readBody(request);
  if (!rawBody) return reply(response, 413, 'too long');
  const id = String(request.headers['x-service-delivery'] ?? '');
  const arrival = {
    at: new Date().toISOString(),
    id,
    event: String(request.headers['x-service-event'] ?? '?'),
    body: rawBody.toString('utf8'),
    refused: null,
    duplicate: false,
    answered: 200,
  };
  if (!secret) arrival.refused = 'this receiver has no secret yet';
  else {
    arrival.refused = refusal({
      secret,
      timestamp: request.headers['x-service-timestamp'],
      signature: request.headers['x-service-signature'],
      rawBody,
      nowSeconds: Math.floor(Date.now() / 1000),
    });
  }
  if (arrival.refused) arrival.answered = 401;
  else if (mode === 'fail') arrival.answered = 500;
  else if (mode === 'redirect') arrival.answered = 307;
  else if (mode === 'ok') {
    // Stored first, answered then; a delivery that comes again was answered, but the answer got lost.
    arrival.duplicate = handled.has(id);
    handled.add(id);
  }
  remember(arrival);
  if (mode === 'slow' && !arrival.refused) await new Promise((go) => setTimeout(go, 11_000));
  const headers = arrival.answered === 307 ? { location: '/elsewhere' } : {};
  reply(
    response,
    arrival.answered,
    arrival.refused ?? (arrival.duplicate ? 'known' : 'stored'),
    headers
  );
};

const watch = (response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  response.write(`data: ${JSON.stringify({ type: 'all', arrivals, ...state() })}\n\n`);
  watchers.add(response);
  response.once('close', () => watchers.delete(response));
};

/** From the page's own buttons. Another site's page cannot send this header without asking first. */
const configure = async (request, response) => {
  if (request.headers['x-receiver'] !== '1') return reply(response, 403, 'forbidden');
  const given = JSON.parse((await readBody(request))?.toString('utf8') || '{}');
  if (MODES.includes(given.mode)) mode = given.mode;
  if (typeof given.secret === 'string' && given.secret.startsWith('whsec_'))
    useSecret(given.secret);
  broadcast({ type: 'state', ...state() });
  return reply(response, 200, 'ok');
};

const route = async (request, response) => {
  const { pathname } = new URL(request.url, 'http://receiver');
  const asked = `${request.method} ${pathname}`;
  if (asked === 'GET /') return reply(response, 200, page, PAGE_HEADERS);
  if (asked === 'GET /arrivals') return watch(response);
  if (asked === 'GET /arrivals.json') {
    return reply(response, 200, JSON.stringify(arrivals), { 'content-type': 'application/json' });
  }
  if (asked === 'POST /configure') return configure(request, response);
  if (request.method === 'POST') return receive(request, response);
  return reply(response, 404, 'not here');
};

const server = http.createServer((request, response) => {
  route(request, response).catch((error) => {
    console.error(`receiver: ${error.message}`);
    if (!response.headersSent) reply(response, 500, 'failed');
  });
});

const stop = () => {
  for (const response of watchers) response.end();
  server.close(() => process.exit(0));
  server.closeIdleConnections();
  setTimeout(() => process.exit(0), 2000).unref();
};

process.on('SIGTERM', stop);
process.on('SIGINT', stop);
process.on('disconnect', stop);
process.on('message', (message) => {
  if (message?.secret) useSecret(message.secret);
});

server.on('error', (error) => {
  console.error(
    error.code === 'EADDRINUSE' ? `Port ${PORT} is in use: set PORT.` : `receiver: ${error.message}`
  );
  process.exit(1);
});
server.listen(PORT, HOST, () => {
  if (process.send) process.send({ ready: true });
  else console.log(`Receiver: http://${HOST}:${PORT}/  (webhooks go to /hooks)`);
});
