import crypto from 'node:crypto';
import type { Browser, Page } from 'playwright-core';
import { runSql } from '../support/databases';
import { type Receiver, startReceiver } from '../support/receiver';
import { expectText, launchBrowser, PLUGIN, signIn } from './support/browser';
import { type Playground, startPlayground } from './support/playground';

const NAMES = ['First', 'Second', 'Third'];
const MANY = 10_000;
/** Given up for another reason: these stay where they are. */
const OTHERS = 40;
/** So many of a recovery's deliveries may be queued and untried at once. */
const UNTRIED_AT_MOST = 100;
const ROWS_AT_ONCE = 250;
const UNDER_WAY = /Sending: [\d,]+ of 10,000 delivered, 0 failed/;

let site: Playground;
let browser: Browser;
let page: Page;
let receiver: Receiver;
const webhooks: number[] = [];

const createWebhook = async (name: string): Promise<number> => {
  const url = `${receiver.url}${name.toLowerCase()}`;
  const body = { name, url, events: ['contact.created'] };
  return (await site.admin('POST', '/switchboard/webhooks', body)).body.data.id;
};

const failedRow = (webhook: number, at: number, error: string, nth: number): string => {
  const id = crypto.randomUUID();
  const body = JSON.stringify({ id, event: 'contact.created', data: { nth } });
  return `('${id}', ${webhook}, 'contact.created', 'failed', 7, 0, ${at}, ${at}, '${error}',
    'contact', 'c${nth}', 'Customer ${nth}', 'http://127.0.0.1/', '${body}', '[]')`;
};

/** Deliveries that were given up, one after the other of each webhook in turn. */
const insertFailed = async (count: number, error: string): Promise<void> => {
  const at = Date.now() - 60_000;
  const statements: string[] = [];
  for (let from = 0; from < count; from += ROWS_AT_ONCE) {
    const rows = Array.from({ length: Math.min(ROWS_AT_ONCE, count - from) }, (_none, index) => {
      const nth = from + index;
      return failedRow(webhooks[nth % webhooks.length] ?? 0, at + nth, error, nth);
    });
    statements.push(`INSERT INTO switchboard_deliveries (document_id, webhook_id, event, status, tries,
      is_test, created_at, finished_at, error, subject_type, subject_id, subject_label, url, body, attempts)
      VALUES ${rows.join(', ')}`);
  }
  statements.push(`INSERT INTO switchboard_delivery_queue
      (id, group_id, state, due_at, section, error, event, created_at)
    SELECT id, webhook_id, 3, finished_at, 2, error, event, created_at FROM switchboard_deliveries
    WHERE status = 'failed' AND id NOT IN (SELECT id FROM switchboard_delivery_queue)`);
  await runSql('sqlite', site.databaseFile, ...statements);
};

/** The ids of deliveries in the database, as receivers know them, whether the site is up or not. */
const idsWhere = async (condition: string): Promise<string[]> =>
  (
    await runSql(
      'sqlite',
      site.databaseFile,
      `SELECT document_id FROM switchboard_deliveries
       WHERE webhook_id IN (${webhooks.join(', ')}) AND ${condition}`
    )
  ).map(({ document_id: id }) => String(id));

/** Keeps answers back from now on, so that what goes on is still going on when it is looked at. */
const holdAnswers = (): (() => void) => {
  let release = () => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  receiver.respond(() => released.then(() => ({})));
  return release;
};

const main = () => page.getByRole('main');
const progress = () => main().getByRole('group', { name: /^Resend \d+$/ });

beforeAll(async () => {
  receiver = await startReceiver();
  site = await startPlayground({ timeoutMs: 60_000 });
  browser = await launchBrowser();
  for (const name of NAMES) webhooks.push(await createWebhook(name));
  await insertFailed(MANY, 'http_503');
  await insertFailed(OTHERS, 'http_404');
  page = await signIn(browser, site, site.login);
}, 900_000);

afterAll(async () => {
  await browser?.close();
  await receiver?.close();
  await site?.stop();
});

test('10,000 failed deliveries are found, looked at and recovered, though the site is killed meanwhile', async () => {
  const expected = await idsWhere("error = 'http_503'");
  expect(expected).toHaveLength(MANY);

  await page.goto(`${PLUGIN}/deliveries`);
  await page.getByRole('button', { name: 'HTTP 503 · 10,000' }).click();
  await page.waitForURL(/cause=http_503/);
  await expectText(main(), '10,000 deliveries');
  await page.getByRole('button', { name: 'Resend all 10,000 matching' }).click();
  const dialog = page.getByRole('dialog');
  await expectText(dialog, '10,000 failed deliveries will be resent');
  await expectText(
    dialog,
    /First\s*3,334 deliveries[\s\S]*Second\s*3,333 deliveries[\s\S]*Third\s*3,333 deliveries/
  );
  await expectText(dialog, /contact\.created\s*Customer \d+/);
  expect(receiver.requests).toHaveLength(0);
  await dialog.getByRole('button', { name: 'Resend 10,000' }).click();

  await page.goto(`${PLUGIN}/tills`);
  await receiver.waitFor(2000, 180_000);
  let release = holdAnswers();
  await page.goto(`${PLUGIN}/deliveries`);
  await expectText(progress(), UNDER_WAY);
  release();

  const seen = receiver.requests.length;
  await receiver.waitFor(seen + 500, 180_000);
  await site.kill();
  await receiver.settle(300);
  const arrivedBefore = receiver.requests.map(({ json }) => String(json.id));
  expect(arrivedBefore.length).toBeLessThan(MANY);
  const recorded = new Set(await idsWhere("status = 'sent'"));
  const underWay = new Set(arrivedBefore.filter((id) => !recorded.has(id)));
  expect(underWay.size).toBeLessThanOrEqual(UNTRIED_AT_MOST);

  release = holdAnswers();
  await site.again();
  await page.goto(`${PLUGIN}/deliveries`);
  await expectText(progress(), UNDER_WAY);
  release();
  await page.goto(`${PLUGIN}/tills`);
  await receiver.waitFor(MANY, 300_000);
  await page.goto(`${PLUGIN}/deliveries`);
  await expectText(progress(), 'Done: 10,000 of 10,000 delivered, 0 failed', 180_000);

  const arrived = new Map<string, number>();
  for (const { json } of receiver.requests) arrived.set(json.id, (arrived.get(json.id) ?? 0) + 1);
  expect([...arrived.keys()].sort()).toEqual([...expected].sort());
  const twice = [...arrived].filter(([, times]) => times > 1);
  expect(twice.filter(([id, times]) => times > 2 || !underWay.has(id))).toEqual([]);
  expect((await idsWhere("status = 'sent'")).sort()).toEqual([...expected].sort());
  expect(await idsWhere("status = 'failed' AND error = 'http_404'")).toHaveLength(OTHERS);

  await page.getByRole('link', { name: 'View results' }).click();
  await page.waitForURL(/recovery=\d+/);
  await expectText(main(), '10,000 deliveries');
}, 400_000);
