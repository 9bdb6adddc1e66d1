import fs from 'node:fs';
import type { Browser, Page } from 'playwright-core';
import { waitFor } from '../support/wait';
import {
  chooseAction,
  expectText,
  launchBrowser,
  moveTo,
  PLUGIN,
  signIn,
  switchTo,
} from './support/browser';
import { type Playground, startPlayground } from './support/playground';
import { saleOf, sendRecord, type TillKeys } from './support/till';

const HOUR_MS = 3_600_000;

type Till = TillKeys & { id: number };

let site: Playground;
let browser: Browser;
let page: Page;
let till: Till;
let trainee: Till;

const create = async (route: string, body: unknown) =>
  (await site.admin('POST', `/switchboard${route}`, body)).body.data;

const iso = (fromNowMs: number): string => new Date(Date.now() + fromNowMs).toISOString();

const eventOf = async (connection: number, externalId: string) =>
  (
    await site.admin(
      'GET',
      `/switchboard/pos-events?connection=${connection}&external_id=${externalId}`
    )
  ).body.data[0];

const sale = (
  id: string,
  currency: string,
  line: { sku: string; quantity: number; unit_price: number },
  more: Record<string, unknown> = {}
) =>
  sendRecord(site.url, till, 'sale', {
    external_id: id,
    currency,
    total: line.quantity * line.unit_price,
    line_items: [line],
    ...more,
  });

/** A day at the counter: two sales, one of yesterday, refunds, a closing that forgets one, a bad sale. */
const workADay = async (): Promise<void> => {
  const mugs = { sku: 'MUG-BLUE', quantity: 2, unit_price: 899 };
  const bowl = { sku: 'BOWL-1', quantity: 1, unit_price: 1000 };
  const ada = { email: 'ada@example.test', first_name: 'Ada', last_name: 'Lovelace' };
  expect([
    await sale('S-1001', 'GBP', mugs, { customer: ada, meta: { cashier: 'Grace' } }),
    await sale('S-1002', 'GBP', bowl, { occurred_at: iso(-24 * HOUR_MS) }),
    await sale('S-1003', 'EUR', { ...bowl, unit_price: 500 }),
    await sendRecord(site.url, till, 'refund', {
      external_id: 'R-1',
      sale_external_id: 'S-1001',
      reason: 'chipped',
      restock: false,
      line_items: [{ sku: 'MUG-BLUE', quantity: 1 }],
    }),
    await sendRecord(site.url, till, 'refund', {
      external_id: 'R-held',
      sale_external_id: 'S-NEVER',
      line_items: [{ sku: 'MUG-BLUE', quantity: 1 }],
    }),
  ]).toEqual([202, 202, 202, 202, 202]);
  expect(await sendRecord(site.url, till, 'sale', { external_id: 'BAD-1' })).toBe(400);
  const settled = async (id: string, state: string) =>
    (await eventOf(till.id, id))?.state === state;
  await waitFor(async () => (await settled('R-1', 'applied')) && (await settled('R-held', 'held')));
  expect(
    await sendRecord(site.url, till, 'closing', {
      external_id: 'Z-1',
      from: iso(-HOUR_MS),
      to: iso(HOUR_MS),
      totals: [
        { currency: 'GBP', sales: { count: 2, total: 3596 }, refunds: { count: 1, total: 899 } },
        { currency: 'EUR', sales: { count: 1, total: 500 }, refunds: { count: 0, total: 0 } },
      ],
      external_ids: ['S-1001', 'S-1003', 'R-1', 'R-held', 'S-LOST'],
    })
  ).toBe(202);
  await sendRecord(site.url, trainee, 'sale', saleOf('T-1', 'NOBODY-KNOWS-IT', 1));
  await sendRecord(site.url, trainee, 'sale', saleOf('T-2', 'MUG-BLUE', 1));
  await waitFor(async () => (await eventOf(trainee.id, 'T-2'))?.state === 'simulated');
};

beforeAll(async () => {
  site = await startPlayground();
  browser = await launchBrowser();
  page = await signIn(browser, site, site.login);
  await create('/items', { sku: 'MUG-BLUE', name: 'Blue mug', opening: [{ quantity: 40 }] });
  await create('/items', { sku: 'BOWL-1', name: 'Bowl', opening: [{ quantity: 40 }] });
  const scopes = ['sale:write', 'refund:write', 'inventory:write', 'closing:write'];
  const live = { scopes, mode: 'live', customers: 'create', locations: [] };
  till = await create('/connections', { ...live, name: 'Counter of the day' });
  trainee = await create('/connections', { ...live, name: 'Trainee', mode: 'test' });
  await workADay();
}, 900_000);

afterAll(async () => {
  await browser?.close();
  await site?.stop();
});

const main = () => page.getByRole('main');
const region = (name: string) => page.getByRole('region', { name, exact: true });
const grid = (name: string) => page.getByRole('grid', { name, exact: true });

describe('the page of a till', () => {
  beforeAll(() => moveTo(page, `${PLUGIN}/tills/${till.id}`));

  test('says what it took today, yesterday and in the week, by currency', async () => {
    await expectText(
      region('Today'),
      /€5\.00[\s\S]*£8\.99[\s\S]*1 sale, 1 refund; 2 units sold, 1 returned/
    );
    await expectText(region('Yesterday'), /£10\.00[\s\S]*1 sale, 0 refunds; 1 unit sold/);
    await expectText(region('Last seven days'), /£18\.99[\s\S]*2 sales, 1 refund/);
    expect(await region('Yesterday').getByText('€').count()).toBe(0);
  });

  test('draws a bar a day, and has the numbers for who cannot see it', async () => {
    const chart = page.getByRole('img', { name: /daily takings in GBP/ });
    expect(await chart.locator('rect.gain').count()).toBe(7);
    await page.getByRole('button', { name: 'As numbers' }).click();
    const table = grid('Daily takings in GBP');
    const rows = table.getByRole('row');
    await waitFor(async () => (await rows.count()) === 8);
    await expectText(rows.nth(6), /£10\.00/);
    await expectText(rows.nth(7), /£8\.99/);
    await page.getByRole('button', { name: 'As charts' }).click();
    await chart.waitFor();
  });

  test('shows its closings with what is missing and which sums differ', async () => {
    const closings = grid('Closings');
    await expectText(closings, /Z-1[\s\S]*Differences/);
    await expectText(closings, 'Number of sales in GBP: till 2, site 1');
    await expectText(closings, 'Sales in GBP: till £35.96, site £17.98');
    await closings.getByRole('link', { name: 'Z-1' }).click();
    await expectText(region('Comparison with this site'), 'S-LOST');
    await expectText(grid('Totals of the till'), /GBP[\s\S]*£35\.96/);
    await page.goBack();
  });

  test('says how much its till does not list, and that the list of it is cut', async () => {
    const address = /\/switchboard\/pos-events\?.*kind=closing/;
    await page.route(address, async (route) => {
      const response = await route.fetch();
      const json = await response.json();
      Object.assign(json.data[0].closing_summary, { unexpected: 5002, unexpected_listed: 5000 });
      await route.fulfill({ response, json });
    });
    try {
      await page.reload();
      await expectText(grid('Closings'), '5,002 in total; the first 5,000 are shown');
    } finally {
      await page.unroute(address);
    }
    await page.reload();
  });

  test('shows what was refused, and its clock', async () => {
    await expectText(grid('Refused'), /BAD-1[\s\S]*schema_invalid/);
    await expectText(region('Status'), /Clock[\s\S]*In sync/);
  });

  test('goes back to test mode and live again, saying what that means', async () => {
    await chooseAction(page, 'Back to test mode');
    const dialog = page.getByRole('alertdialog');
    await expectText(dialog, 'no longer change stock or takings');
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    expect((await site.admin('GET', `/switchboard/connections/${till.id}`)).body.data.mode).toBe(
      'live'
    );
    await chooseAction(page, 'Back to test mode');
    await dialog.getByRole('button', { name: 'Back to test mode' }).click();
    await page.getByText('The till is in test mode.').waitFor();
    await page.getByRole('button', { name: 'Go live' }).click();
    await dialog.getByRole('button', { name: 'Go live' }).click();
    await page.getByText('The till is live.').waitFor();
    await page.getByRole('button', { name: 'Go live' }).waitFor({ state: 'detached' });
  });
});

describe('the sales', () => {
  const report = () => grid('Sales by day, till or product');
  const totals = () =>
    report()
      .locator('tbody tr')
      .filter({ hasText: /^Total/ });

  test('are reached by the menu, and add up by currency', async () => {
    await page.getByRole('link', { name: 'Sales', exact: true }).first().click();
    await page.waitForURL(/\/sales$/);
    await moveTo(page, `${PLUGIN}/sales?connection=${till.id}`);
    await waitFor(async () => (await totals().count()) === 2);
    await expectText(totals().nth(0), /EUR[\s\S]*€5\.00/);
    await expectText(totals().nth(1), /GBP[\s\S]*£27\.98[\s\S]*£8\.99[\s\S]*£18\.99/);
    await expectText(main(), /Days start at midnight in \S+/);
  });

  test('are those that are asked for; a range that ends before it begins is said to be wrong', async () => {
    await page.getByRole('button', { name: 'Yesterday' }).click();
    await waitFor(async () => (await totals().count()) === 1);
    await expectText(totals(), /£10\.00/);
    const choose = async (label: string, day: string): Promise<void> => {
      const field = page.getByRole('combobox', { name: label, exact: true });
      await field.fill(day);
      await field.press('Tab');
    };
    const { searchParams: shown } = new URL(page.url());
    await choose('To', '01/02/2020');
    await page.waitForURL(/to=2020-01-02/);
    await expectText(page.getByRole('alert'), 'The last day is before the first day.');
    expect(await page.getByRole('button', { name: 'Download CSV' }).isDisabled()).toBe(true);
    await choose('From', '01/01/2020');
    await page.waitForURL(/from=2020-01-01/);
    await expectText(main(), 'No sales or refunds in this period.');
    await moveTo(
      page,
      `${PLUGIN}/sales?connection=${till.id}&from=1999-01-01&to=${shown.get('to')}`
    );
    await expectText(page.getByRole('alert'), 'at most 1,100');
    await page.getByRole('button', { name: '7 days' }).click();
    await waitFor(async () => (await totals().count()) === 2);
  });

  test('are shown by till and by item, and narrowed to one item', async () => {
    await page.getByRole('button', { name: 'Till', exact: true }).click();
    await expectText(report().getByRole('link'), 'Counter of the day');
    await page.getByRole('button', { name: 'Product', exact: true }).click();
    await expectText(report(), /MUG-BLUE · Blue mug/);
    await expectText(main(), 'They may differ from sales totals');
    const item = page.getByRole('combobox', { name: 'All products' });
    await item.click();
    await item.pressSequentially('bowl');
    await page.getByRole('option', { name: 'BOWL-1 · Bowl' }).click();
    await page.waitForURL(/item=\d+/);
    await expectText(totals().nth(1), /GBP[\s\S]*£10\.00/);
    expect(await report().getByText('MUG-BLUE').count()).toBe(0);
  });

  test('are downloaded as the server writes them', async () => {
    await moveTo(page, `${PLUGIN}/sales?connection=${till.id}&group=connection`);
    await waitFor(async () => (await totals().count()) === 2);
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download CSV' }).click(),
    ]);
    expect(file.suggestedFilename()).toMatch(/^sales-by-connection-[\d-]+\.csv$/);
    const csv = fs.readFileSync((await file.path()) ?? '', 'utf8');
    expect(csv).toContain(`${till.id},GBP,2,2798,1,899,3,1,Counter of the day`);
  });
});

describe('the records', () => {
  const records = () => grid('Till records');

  test.each([
    ['part of an id', '1001', 'S-1001'],
    ['an amount', '17.98', 'S-1001'],
    ['a customer', 'ada love', 'S-1001'],
    ['part of an SKU', 'bowl', 'S-1002'],
  ])('are found by %s', async (_what, search, id) => {
    await moveTo(page, `${PLUGIN}/records?connection=${till.id}&_q=${encodeURIComponent(search)}`);
    await expectText(records(), id);
    expect(await records().getByRole('link', { name: 'R-held' }).count()).toBe(0);
    await expectText(main(), /Searched the latest 5,000 matching records/);
  });

  test('are searched from the page, and say so where nothing matches', async () => {
    await moveTo(page, `${PLUGIN}/records?connection=${till.id}`);
    await main().getByRole('button', { name: 'Search', exact: true }).click();
    const field = page.getByRole('searchbox', { name: /Search by ID/ });
    await field.fill('no such thing');
    await field.press('Enter');
    await expectText(main(), 'No results.');
  });

  test('read as receipts, with the JSON folded away', async () => {
    await moveTo(page, `${PLUGIN}/records/${(await eventOf(till.id, 'S-1001')).id}`);
    await expectText(grid('Lines'), /MUG-BLUE[\s\S]*2[\s\S]*£8\.99[\s\S]*£17\.98/);
    const receipt = region('Receipt');
    await expectText(receipt, /Total: £17\.98[\s\S]*Ada Lovelace[\s\S]*Grace/);
    await expectText(
      receipt.getByRole('link', { name: /Ada Lovelace/ }),
      'Ada Lovelace, ada@example.test'
    );
    await expectText(grid('Stock movements'), /MUG-BLUE[\s\S]*-2/);
    const json = page.getByRole('group', { name: 'Payload, exactly as received' });
    expect(await json.isVisible()).toBe(false);
    await page.getByText('Original payload (JSON)').click();
    await json.waitFor();

    await receipt.getByRole('link', { name: 'R-1' }).click();
    await expectText(region('Receipt'), /S-1001[\s\S]*Not put back[\s\S]*chipped/);
    await expectText(region('Receipt'), 'Total: £8.99');
  });

  test('that were refused have a tab of their own', async () => {
    await moveTo(page, `${PLUGIN}/records`);
    await page.getByRole('tab', { name: 'Refused' }).click();
    await page.waitForURL(/tab=refused/);
    await expectText(grid('Refused'), /Counter of the day[\s\S]*BAD-1[\s\S]*schema_invalid/);
  });

  test('a refund on hold says what it waits for before it is processed again', async () => {
    await moveTo(page, `${PLUGIN}/records/${(await eventOf(till.id, 'R-held')).id}`);
    await page.getByRole('button', { name: 'Process again' }).click();
    const dialog = page.getByRole('alertdialog');
    await expectText(dialog, /has not sent the sale S-NEVER[\s\S]*applied automatically at/);
    await dialog.getByRole('button', { name: 'Process again' }).click();
    await page.getByText('The record will be processed again.').waitFor();
  });

  test('a refund on hold can be accepted without its sale', async () => {
    const { id } = await eventOf(till.id, 'R-held');
    await moveTo(page, `${PLUGIN}/records/${id}`);
    await page.getByRole('button', { name: 'Accept without its sale' }).click();
    const dialog = page.getByRole('alertdialog');
    await expectText(dialog, 'nothing is counted twice');
    await dialog.getByRole('button', { name: 'Accept without its sale' }).click();
    await expectText(region('Details'), 'Applied');
    expect(await page.getByRole('button', { name: 'Accept without its sale' }).count()).toBe(0);
    await expectText(grid('Stock movements'), 'MUG-BLUE');
  });

  test('say who had them processed again and accepted, and when', async () => {
    const { made_by: name } = (
      await site.admin('GET', `/switchboard/pos-events/${(await eventOf(till.id, 'R-held')).id}`)
    ).body.data.by_hand[0];
    const trace = grid('Actions by users').getByRole('row');
    await waitFor(async () => (await trace.count()) === 3);
    await expectText(trace.nth(1), new RegExp(`Processed again[\\s\\S]*${name}[\\s\\S]*ago`));
    await expectText(trace.nth(2), new RegExp(`Accepted without its sale[\\s\\S]*${name}`));
  });

  test('of test mode with an unknown SKU need attention, others do not', async () => {
    await moveTo(page, `${PLUGIN}/records?connection=${trainee.id}`);
    const row = (id: string) => records().getByRole('row').filter({ hasText: id });
    await expectText(row('T-1'), /Simulated[\s\S]*Needs attention/);
    await expectText(row('T-2'), 'Simulated');
    expect(await row('T-2').getByText('Needs attention').count()).toBe(0);
    await row('T-1').getByRole('link').click();
    await expectText(region('Details'), 'In live mode this record would wait');
    await expectText(grid('Lines'), /NOBODY-KNOWS-IT[\s\S]*Unmapped product/);
  });
});

describe('the page of a contact', () => {
  const CONTACTS = '/admin/content-manager/collection-types/plugin::switchboard.contact';
  const contactId = async (): Promise<string> => {
    const { id } = await eventOf(till.id, 'S-1001');
    const event = await site.admin('GET', `/switchboard/pos-events/${id}`);
    return event.body.data.contact.id;
  };

  test('has what it bought and gave back, and what it is worth', async () => {
    await moveTo(page, `${CONTACTS}/${await contactId()}`);
    const purchases = page.getByRole('list', { name: 'Purchases' });
    await expectText(
      purchases,
      /R-1[\s\S]*Refund[\s\S]*-£8\.99[\s\S]*S-1001[\s\S]*Sale[\s\S]*£17\.98/
    );
    expect(await page.getByLabel('Lifetime value').inputValue()).toBe('8.99');
    await purchases.getByRole('link', { name: 'S-1001' }).click();
    await page.waitForURL(/records\?_q=S-1001/);
    await expectText(grid('Till records'), 'S-1001');
  });

  test('shows them to who may read contacts, and nothing of the log', async () => {
    const role = await site.admin('POST', '/admin/roles', { name: 'Clerk', description: '' });
    const none = { subject: null, properties: {}, conditions: [] };
    await site.admin('PUT', `/admin/roles/${role.body.data.id}/permissions`, {
      permissions: [
        { ...none, action: 'plugin::switchboard.crm.read' },
        {
          ...none,
          action: 'plugin::content-manager.explorer.read',
          subject: 'plugin::switchboard.contact',
          properties: { fields: ['email', 'first_name', 'last_name', 'lifetime_value'] },
        },
      ],
    });
    await switchTo(page, await site.createUser('Clerk'));
    await moveTo(page, `${CONTACTS}/${await contactId()}`);
    const purchases = page.getByRole('list', { name: 'Purchases' });
    await expectText(purchases, /S-1001[\s\S]*£17\.98/);
    expect(await purchases.getByRole('link').count()).toBe(0);
  });
});

describe('whoever may only read', () => {
  test('sees the day of a till and is offered nothing to do', async () => {
    await site.createRole('Day reader', ['connections.read', 'pos-events.read', 'sales.read']);
    await switchTo(page, await site.createUser('Day reader'));
    await moveTo(page, `${PLUGIN}/tills/${till.id}`);
    await expectText(page.getByRole('region', { name: 'Today', exact: true }), '£8.99');
    await expectText(page.getByRole('grid', { name: 'Closings' }), 'Z-1');
    for (const name of ['More actions', 'Save']) {
      expect(await page.getByRole('button', { name, exact: true }).count()).toBe(0);
    }
    await moveTo(page, `${PLUGIN}/records/${(await eventOf(till.id, 'R-held')).id}`);
    await expectText(page.getByRole('region', { name: 'Receipt' }), 'S-NEVER');
    for (const name of ['Process again', 'Accept without its sale'])
      expect(await page.getByRole('button', { name }).count()).toBe(0);
  });

  test('records sees no takings', async () => {
    await site.createRole('Record reader', ['connections.read', 'pos-events.read']);
    await switchTo(page, await site.createUser('Record reader'));
    await moveTo(page, `${PLUGIN}/tills/${till.id}`);
    await expectText(page.getByRole('grid', { name: 'Closings' }), 'Z-1');
    expect(await page.getByRole('region', { name: 'Today', exact: true }).count()).toBe(0);
    expect(await page.getByRole('link', { name: 'Sales', exact: true }).count()).toBe(0);
    await moveTo(page, `${PLUGIN}/sales`);
    await page.getByText("You don't have the permissions", { exact: false }).waitFor();
  });
});
