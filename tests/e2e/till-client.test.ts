import fs from 'node:fs';
import path from 'node:path';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import vectors from '../../docs/vectors/pos-signatures.json';
import { verifySignature } from '../../server/src/pos/intake/authentication';
import type * as Client from '../../till-client/browser.mjs';
import { FakeService, type Received, refusal } from '../unit/till-client/support';
import { launchBrowser } from './support/browser';

/** A till that is a page: the module that the package gives browsers, in one. */

jest.setTimeout(180_000);

const MODULE = fs.readFileSync(path.resolve(__dirname, '../../till-client/browser.mjs'), 'utf8');
/** Asks for no icon. */
const PAGE = '<title>Till</title><link rel="icon" href="data:,">';
const SECRET = 'pos_secret_x';

declare global {
  interface Window {
    client: typeof Client;
    till: Client.OfflineTill;
    outcomes: string[];
  }
}

let browser: Browser;
let context: BrowserContext;
let service: FakeService;

beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(() => browser?.close());

const isRecord = ({ path: route }: Received) => !['/till', '/client.mjs'].includes(route);

beforeEach(async () => {
  service = await FakeService.start();
  const accept = service.respond;
  service.respond = (request) => {
    if (request.path === '/till') return { status: 200, body: PAGE };
    const headers = { 'content-type': 'text/javascript' };
    if (request.path === '/client.mjs') return { status: 200, body: MODULE, headers };
    return accept(request);
  };
  context = await browser.newContext();
});
afterEach(async () => {
  await context.close();
  await service.close();
});

/** A window of the till, with its queue. */
const openTill = async (): Promise<Page> => {
  const page = await context.newPage();
  await page.goto(`${service.url}/till`);
  await page.evaluate(
    async ({ url, secret }) => {
      const address = '/client.mjs';
      window.client = (await import(address)) as typeof Client;
      window.outcomes = [];
      window.till = window.client.createOfflineTill({
        url,
        key: 'pos_live_x',
        secret,
        folder: 'counter',
        onSettled: ({ outcome }) => window.outcomes.push(outcome),
      });
    },
    { url: service.url, secret: SECRET }
  );
  return page;
};

const keep = (page: Page, id: string) =>
  page.evaluate(
    (external_id) =>
      window.till.sale({
        external_id,
        occurred_at: '2026-01-01T00:00:00Z',
        currency: 'GBP',
        total: 1,
        line_items: [{ sku: 'X', quantity: 1 }],
      }),
    id
  );
const flush = (page: Page) =>
  page.evaluate(async () => {
    const { sent, remaining, error } = await window.till.flush();
    return { sent, remaining, error: error && error.message };
  });
const pending = (page: Page) => page.evaluate(() => window.till.pending());
const records = () => service.received.filter(isRecord);
const ids = () =>
  records().map(({ body }) => (JSON.parse(body) as { external_id: string }).external_id);

it('signs every vector as the site does', async () => {
  const page = await openTill();
  const signed = await page.evaluate(
    (all) =>
      Promise.all(
        all.map(({ secret, timestamp, body_base64: base64 }) => {
          const body = Uint8Array.from(atob(base64), (one) => one.charCodeAt(0));
          return window.client.sign({ secret, timestamp, body });
        })
      ),
    vectors.vectors
  );
  expect(signed).toEqual(vectors.vectors.map(({ signature }) => signature));
});

it('sends what it signed, corrects its clock, and says what was refused', async () => {
  const page = await openTill();
  service.replies.push(
    { status: 401, body: refusal('timestamp_outside_window', { skew_seconds: -1000 }) },
    { status: 202, body: { ok: true, event_id: 1, state: 'pending', duplicate: false } },
    { status: 200, body: { ok: true, results: [] } },
    { status: 400, body: refusal('schema_invalid', { field: 'total' }) }
  );
  const told = await page.evaluate(
    async ({ url, secret }) => {
      const now = () => 1_772_370_300_000;
      const till = window.client.createTill({ url, key: 'pos_live_x', secret, now });
      const sale = await till.sale('{ "external_id" : "ä" }');
      const batch = await till.batch([{ kind: 'sale', body: new TextEncoder().encode('{"a":1}') }]);
      const error = await till.refund({} as Client.Refund).catch((thrown: unknown) => thrown);
      if (!(error instanceof window.client.TillError)) throw error;
      const { status, code, retryable, body } = error;
      return { sale: sale.status, batch: batch.status, status, code, retryable, body };
    },
    { url: service.url, secret: SECRET }
  );
  expect(told).toMatchObject({
    sale: 202,
    batch: 200,
    status: 400,
    code: 'schema_invalid',
    retryable: false,
    body: { field: 'total' },
  });
  expect(records().map(({ body }) => body)).toEqual([
    '{ "external_id" : "ä" }',
    '{ "external_id" : "ä" }',
    '{"records":[{"kind":"sale","body":{"a":1}}]}',
    '{}',
  ]);
  const times = records().map(({ headers }) => headers['x-pos-timestamp']);
  expect(times).toEqual(['1772370300', '1772371300', '1772371300', '1772371300']);
  for (const { headers, body } of records()) {
    const timestamp = String(headers['x-pos-timestamp']);
    const signature = String(headers['x-pos-signature']);
    const signed = { timestamp, signature, body: Buffer.from(body) };
    expect(verifySignature(SECRET, signed)).toBe(true);
  }
});

it('keeps records over an outage, a reload and a window that dies, and sends them in order', async () => {
  const first = await openTill();
  await context.setOffline(true);
  await keep(first, 'a');
  await keep(first, 'b');
  expect(await flush(first)).toMatchObject({ sent: 0, remaining: 2, error: expect.any(String) });
  await context.setOffline(false);
  const died = new Promise((resolve) => first.once('crash', resolve));
  void first.goto('chrome://crash').catch(() => undefined);
  await died;

  const second = await openTill();
  await keep(second, 'c');
  expect(await pending(second)).toEqual([
    '000000000001.sale.json',
    '000000000002.sale.json',
    '000000000003.sale.json',
  ]);
  expect(await flush(second)).toEqual({ sent: 3, remaining: 0, error: null });
  expect(ids()).toEqual(['a', 'b', 'c']);
  expect(await second.evaluate(() => window.outcomes)).toEqual([
    'accepted',
    'accepted',
    'accepted',
  ]);
});

it('sends by itself when the network is back', async () => {
  const page = await openTill();
  await context.setOffline(true);
  await page.evaluate(() => void window.till.run());
  await keep(page, 'a');
  await page.waitForFunction(() => window.outcomes.includes('waiting'));
  await context.setOffline(false);
  await page.waitForFunction(() => window.outcomes.includes('accepted'));
  expect(ids()).toEqual(['a']);
  await page.evaluate(() => window.till.stop());
});

it('puts aside what is refused, and takes it back behind what waits', async () => {
  const page = await openTill();
  service.replies.push({ status: 403, body: refusal('insufficient_scope') });
  await keep(page, 'refused');
  await flush(page);
  expect(await page.evaluate(() => window.till.refused())).toEqual(['000000000001.sale.json']);
  await keep(page, 'later');
  expect(await page.evaluate(() => window.till.requeue())).toBe(1);
  expect(await page.evaluate(() => window.till.refused())).toEqual([]);
  expect(await flush(page)).toMatchObject({ sent: 2, remaining: 0 });
  expect(ids()).toEqual(['refused', 'later', 'refused']);
});

it('two windows take turns: each record is sent once, in order', async () => {
  const windows = [await openTill(), await openTill()];
  const kept: string[] = [];
  for (let n = 0; n < 20; n += 1) {
    await keep(windows[n % 2]!, String(n));
    kept.push(String(n));
  }
  await Promise.all(windows.map(flush));
  expect(ids()).toEqual(kept);
  expect(await pending(windows[0]!)).toEqual([]);
});
