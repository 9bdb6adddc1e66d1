import type { Browser, Page, Response } from 'playwright-core';
import { runSql } from '../support/databases';
import { type Receiver, startReceiver } from '../support/receiver';
import { sleep, waitFor } from '../support/wait';
import { expectText, launchBrowser, PLUGIN, signIn } from './support/browser';
import { type Playground, startPlayground } from './support/playground';

const WEBHOOKS = 5000;
const DELIVERIES = Number(process.env.LIGHT_DELIVERIES ?? 100_000);
const SHOP = 5000;
/** Bytes that a screen moves within `REST_MS` at most, and that one of its answers has. */
const LARGEST = 20_000;
const LARGEST_ANSWER = 15_500;
const REST_MS = 10_000;

let site: Playground;
let browser: Browser;
let page: Page;
let receiver: Receiver;
let first: number;
const shop = { till: 0, record: 0, item: 0, level: 0 };

const series = (most: number): string =>
  `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${most})`;

/** Copies one row many times, with other values in some columns; `n.i` is the number of the copy. */
const copies = async (
  table: string,
  id: number,
  most: number,
  others: Record<string, string>
): Promise<void> => {
  const [found] = await runSql(
    'sqlite',
    site.databaseFile,
    `SELECT group_concat(name) AS names FROM pragma_table_info('${table}') WHERE name <> 'id'`
  );
  const names = String(found?.names).split(',');
  const values = names.map((name) => others[name] ?? `r.${name}`);
  await runSql(
    'sqlite',
    site.databaseFile,
    `${series(most)} INSERT INTO ${table} (${names.join()})
     SELECT ${values.join()} FROM n, ${table} r WHERE r.id = ${id}`
  );
};

const firstId = async (table: string, where = '1 = 1'): Promise<number> => {
  const [row] = await runSql(
    'sqlite',
    site.databaseFile,
    `SELECT MIN(id) AS id FROM ${table} WHERE ${where}`
  );
  return Number(row?.id);
};

/** What a large shop has: tills, records, products, levels and one level's movements. */
const fillShop = async (): Promise<void> => {
  await copies('switchboard_connections', shop.till, 50, {
    document_id: `'till-' || n.i`,
    name: `'Till ' || n.i`,
    key: `'key-' || n.i`,
    key_digest: `'key-' || n.i`,
  });
  await copies('switchboard_pos_events', shop.record, SHOP, {
    external_id: `'R-' || n.i`,
    external_digest: `'R-' || n.i`,
  });
  await copies('switchboard_items', shop.item, SHOP, {
    sku: `printf('MANY-%05d', n.i)`,
    sku_digest: `'many-' || n.i`,
    name: `'A product with a name of usual length ' || n.i`,
    gtin: 'NULL',
    gtin_digest: 'NULL',
  });
  await copies('switchboard_levels', shop.level, SHOP, {
    item_id: `(SELECT id FROM switchboard_items WHERE sku_digest = 'many-' || n.i)`,
  });
  const movement = await firstId('switchboard_movements', `level_id = ${shop.level}`);
  await copies('switchboard_movements', movement, SHOP, { at: 'r.at + n.i', event_id: 'NULL' });
};

/** Thousands of webhooks, which nothing is sent to, with deliveries that were sent or failed. */
const fill = async (): Promise<void> => {
  const at = Date.now() - 60_000;
  await runSql(
    'sqlite',
    site.databaseFile,
    `${series(WEBHOOKS)} INSERT INTO switchboard_webhooks
       (document_id, site_instance, name, url, events, active, secret, attempted, created_at, updated_at)
     SELECT 'many' || i, w.site_instance, printf('Hook %05d', i), w.url, '["deal.won"]', 1, w.secret, 1,
       w.created_at, w.updated_at FROM n, switchboard_webhooks w WHERE w.id = ${first}`,
    `${series(DELIVERIES)} INSERT INTO switchboard_deliveries
       (document_id, webhook_id, event, status, tries, extra_tries, paused_ms, is_test, created_at,
        finished_at, error, subject_type, subject_id, subject_label, url, body, attempts)
     SELECT 'delivery-' || i, ${first} + 1 + i % ${WEBHOOKS}, 'deal.won',
       CASE WHEN i % 3 = 0 THEN 'failed' ELSE 'sent' END, 7, 0, 0, 0, ${at} + i, ${at} + i,
       CASE WHEN i % 3 = 0 THEN 'http_503' END, 'deal', 'd' || i, 'Deal number ' || i,
       'http://127.0.0.1/', '{}', '[]' FROM n`,
    `INSERT INTO switchboard_delivery_queue
       (id, group_id, state, due_at, section, error, event, created_at)
     SELECT id, webhook_id, 3, finished_at, 2, error, event, created_at FROM switchboard_deliveries
     WHERE status = 'failed' AND id NOT IN (SELECT id FROM switchboard_delivery_queue)`
  );
};

/** Switches the playground's webhooks off: a delivery that one of them attempts would change what is shown. */
const restDemo = async (): Promise<void> => {
  const { body } = await site.admin('GET', '/switchboard/webhooks?per_page=100');
  for (const { id } of body.data.filter((one: { id: number }) => one.id !== first)) {
    const answer = await site.admin('PATCH', `/switchboard/webhooks/${id}`, { active: false });
    expect(answer.status).toBe(200);
  }
};

beforeAll(async () => {
  receiver = await startReceiver();
  site = await startPlayground();
  const body = { name: 'The first', url: receiver.url, events: ['contact.created'] };
  first = (await site.admin('POST', '/switchboard/webhooks', body)).body.data.id;
  await restDemo();
  await fill();
  shop.till = await firstId('switchboard_connections');
  shop.record = await firstId('switchboard_pos_events', "kind = 'sale'");
  shop.item = await firstId('switchboard_items');
  shop.level = await firstId('switchboard_levels', `item_id = ${shop.item}`);
  await fillShop();
  browser = await launchBrowser();
  page = await signIn(browser, site, site.login);
}, 180_000);
afterAll(async () => {
  await browser?.close();
  await site?.stop();
  await receiver?.close();
}, 60_000);

const main = () => page.getByRole('main');

test('a webhook beyond the first thousand has its last answer in the list and its name in the log', async () => {
  await page.goto(`${PLUGIN}/webhooks?sort=name:desc&_q=Hook`);
  const row = page.getByRole('row', { name: /Hook 05000/ });
  await row.waitFor();
  await expectText(row, /HTTP 503|ago|minute/);
  await page.goto(`${PLUGIN}/deliveries`);
  await expectText(page.getByRole('grid').locator('tbody tr').first(), /Hook 0\d{4}/);
});

test('the log is filtered by any webhook, which is found by its name', async () => {
  await page.goto(`${PLUGIN}/deliveries`);
  const filter = page.getByRole('combobox', { name: 'Webhook' });
  await filter.click();
  await filter.pressSequentially('Hook 04321');
  await page.getByRole('option', { name: 'Hook 04321' }).click();
  await page.waitForURL(/webhook=\d+/);
  await expectText(main(), /Webhook: Hook 04321/);
  await expectText(page.getByRole('grid').locator('tbody tr').first(), 'Hook 04321');
});

test('the page numbers of a long list fit a phone', async () => {
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto(`${PLUGIN}/records?page=250&pageSize=10`);
  const links = main().getByRole('link', { name: /^Go to / });
  await links.nth(5).waitFor();
  for (const link of await links.all()) {
    const box = await link.boundingBox();
    expect((box?.x ?? 390) + (box?.width ?? 0)).toBeLessThanOrEqual(390);
  }
  await page.setViewportSize({ width: 1440, height: 900 });
});

test('a page that is none leads to one that is, and does not say that there is nothing', async () => {
  for (const [list, size] of [
    ['records', '20'],
    ['stock', '50'],
    ['webhooks', '20'],
  ]) {
    await page.goto(`${PLUGIN}/${list}?page=99999&pageSize=${size}`);
    await page.getByRole('grid').locator('tbody tr').nth(0).waitFor();
    await page.waitForURL((url) => url.searchParams.get('page') !== '99999');
    await expectText(main().getByRole('grid').locator('tbody'), /\w/);
    expect(
      await main()
        .getByText(/^(No |All products and locations)/)
        .count()
    ).toBe(0);
    await page.goto(`${PLUGIN}/${list}?page=-1&pageSize=abc`);
    await page.getByRole('grid').locator('tbody tr').nth(0).waitFor();
    expect(await main().getByText('Try again').count()).toBe(0);
  }
});

test('the tabs of a webhook fit a phone in German', async () => {
  await page.setViewportSize({ width: 390, height: 844 });
  await page.evaluate(() => localStorage.setItem('strapi-admin-language', 'de'));
  await page.goto(`${PLUGIN}/webhooks/${first}?tab=settings`);
  const tabs = main().getByRole('tab');
  await tabs.filter({ hasText: 'Einstellungen' }).waitFor();
  for (const tab of await tabs.all()) {
    const box = await tab.boundingBox();
    expect((box?.x ?? 390) + (box?.width ?? 0)).toBeLessThanOrEqual(390);
  }
  await page.evaluate(() => localStorage.removeItem('strapi-admin-language'));
  await page.setViewportSize({ width: 1440, height: 900 });
});

/** The plugin's answers to the browser, in bytes, by their address. */
const watchAnswers = () => {
  const pending: Promise<void>[] = [];
  const sizes: Record<string, number> = {};
  const onResponse = (response: Response): void => {
    const [, address] = response.url().split('/switchboard/');
    if (address === undefined || !response.ok()) return;
    const read = response.body().then((body) => void (sizes[address] = body.length));
    pending.push(read.catch(() => undefined));
  };
  page.on('response', onResponse);
  return async (): Promise<Record<string, number>> => {
    // A page that is still being built is idle, too.
    const hasAsked = async (): Promise<boolean> => {
      const before = pending.length;
      await sleep(500);
      return before > 0 && pending.length === before;
    };
    await waitFor(hasAsked, 60_000, 'the page to have asked');
    page.off('response', onResponse);
    await Promise.all(pending);
    return sizes;
  };
};

const SCREENS: [name: string, address: () => string][] = [
  ['the overview', () => `${PLUGIN}/overview`],
  ['the webhooks', () => `${PLUGIN}/webhooks?page=1&pageSize=50`],
  ['the deliveries', () => `${PLUGIN}/deliveries`],
  ['a webhook', () => `${PLUGIN}/webhooks/${first + 7}`],
  ['the sales', () => `${PLUGIN}/sales`],
  ['the tills', () => `${PLUGIN}/tills`],
  ['a till', () => `${PLUGIN}/tills/${shop.till}`],
  ['the till records', () => `${PLUGIN}/records?page=1&pageSize=50`],
  ['a till record', () => `${PLUGIN}/records/${shop.record}`],
  ['the unmapped products', () => `${PLUGIN}/unmapped`],
  ['the stock', () => `${PLUGIN}/stock?page=1&pageSize=50`],
  ['an item', () => `${PLUGIN}/stock/items/${shop.item}`],
  ['a level', () => `${PLUGIN}/stock/levels/${shop.level}`],
  ['the import', () => `${PLUGIN}/import`],
  ['the home page', () => '/admin'],
];

test.each(SCREENS)('%s asks for little, and for less at rest', async (name, address) => {
  const answers = watchAnswers();
  await page.goto(address());
  await page.waitForLoadState('networkidle');
  const sizes = await answers();
  expect(Object.keys(sizes).length).toBeGreaterThan(0);
  const large = Object.entries(sizes).filter(([, bytes]) => bytes > LARGEST_ANSWER);
  expect(large).toEqual([]);

  const session = await page.context().newCDPSession(page);
  await session.send('Network.enable');
  let bytes = 0;
  session.on('Network.loadingFinished', ({ encodedDataLength }) => (bytes += encodedDataLength));
  await sleep(REST_MS);
  await session.detach();
  if (process.env.LIGHT_FIGURES) console.log(`${name}: ${bytes} bytes in 10 s`);
  expect(bytes).toBeLessThan(LARGEST);
});

test('the secret is fetched when somebody asks to see it, and not before', async () => {
  const seen: string[] = [];
  page.on('response', (response) => {
    if (response.url().includes('/switchboard/')) {
      void response.text().then(
        (text) => seen.push(text),
        () => undefined
      );
    }
  });
  await page.goto(`${PLUGIN}/webhooks/${first}?tab=settings`);
  await page.getByRole('button', { name: 'Reveal' }).waitFor();
  await sleep(REST_MS + 1000);
  expect(seen.length).toBeGreaterThan(0);
  expect(seen.filter((text) => text.includes('whsec_'))).toEqual([]);
  await page.getByRole('button', { name: 'Reveal' }).click();
  const secret = page.locator('input[name=secret]');
  await secret.waitFor();
  expect(await secret.inputValue()).toMatch(/^whsec_/);
});
