import type { Browser, Page } from 'playwright-core';
import { type Receiver, startReceiver } from '../support/receiver';
import { waitFor } from '../support/wait';
import {
  chooseAction,
  expectFocus,
  expectText,
  launchBrowser,
  moveTo,
  PLUGIN,
  signIn,
} from './support/browser';
import { type Playground, startPlayground } from './support/playground';
import { saleOf, sendRecord, type TillKeys } from './support/till';

const MODULES = '/admin/settings/switchboard/modules';

let site: Playground;
let browser: Browser;
let page: Page;
let receiver: Receiver;
/** The browser's own questions, answered with leaving. */
const asked: string[] = [];

const create = async (route: string, body: unknown) =>
  (await site.admin('POST', `/switchboard${route}`, body)).body.data;

const createWebhook = async (name: string): Promise<number> =>
  (
    await create('/webhooks', {
      name,
      url: `${receiver.url}${name.toLowerCase()}`,
      events: ['contact.created'],
      active: true,
    })
  ).id;

const webhookOf = async (id: number) =>
  (await site.admin('GET', `/switchboard/webhooks/${id}`)).body.data;

let contacts = 0;
const createContact = () => {
  contacts += 1;
  const route = '/content-manager/collection-types/plugin::switchboard.contact';
  return site.admin('POST', route, { email: `truth-${contacts}@example.test` });
};

const createTill = async (
  name: string,
  mode: 'live' | 'test'
): Promise<TillKeys & { id: number }> =>
  create('/connections', { name, scopes: ['sale:write'], mode, locations: [] });

const eventOf = async (connection: number, externalId: string) =>
  (
    await site.admin(
      'GET',
      `/switchboard/pos-events?connection=${connection}&external_id=${externalId}`
    )
  ).body.data[0];

const main = () => page.getByRole('main');

beforeAll(async () => {
  receiver = await startReceiver();
  // One retry, an hour later: what fails waits for it while these tests run.
  site = await startPlayground({ retryScheduleSeconds: [3600] });
  browser = await launchBrowser();
  page = await signIn(browser, site, site.login);
  page.on('dialog', (dialog) => {
    asked.push(dialog.type());
    void dialog.accept();
  });
}, 900_000);

afterAll(async () => {
  await browser?.close();
  await receiver?.close();
  await site?.stop();
});

describe('a webhook whose every attempt fails', () => {
  let id: number;
  beforeAll(async () => {
    receiver.respond(({ path }) => (path === '/collapsed' ? { status: 500 } : {}));
    id = await createWebhook('Collapsed');
    await createContact();
    await waitFor(async () => {
      const log = await site.admin('GET', `/switchboard/webhooks/${id}/deliveries`);
      return log.body.data[0]?.tries === 1;
    });
  });

  test('is said to be failing on its page, in the list and on the home page', async () => {
    await moveTo(page, `${PLUGIN}/webhooks/${id}`);
    await expectText(main(), '1 retrying');
    await expectText(page.getByRole('grid', { name: 'Deliveries' }), /Retrying[\s\S]*HTTP 500/);
    await moveTo(page, `${PLUGIN}/webhooks`);
    await expectText(page.getByRole('row', { name: /^Collapsed/ }), 'Failing');
    await expectText(page.getByRole('row', { name: /^Collapsed/ }), '1 retrying');
    await moveTo(page, '/admin');
    await expectText(main(), /\d retrying/);
  });

  test('is switched off only when asked twice, and then no next try is promised', async () => {
    await moveTo(page, `${PLUGIN}/webhooks`);
    const toggle = page.getByRole('switch', { name: 'Collapsed: active' });
    await toggle.click();
    const dialog = page.getByRole('alertdialog');
    await expectText(dialog, 'New events are not queued');
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    expect((await webhookOf(id)).active).toBe(true);
    await toggle.click();
    await dialog.getByRole('button', { name: 'Switch off' }).click();
    await waitFor(async () => (await webhookOf(id)).active === false);
    await moveTo(page, `${PLUGIN}/webhooks/${id}`);
    await expectText(page.getByRole('grid', { name: 'Deliveries' }), 'When the webhook is on');
  });

  test('is not said to send now what is tried in an hour', async () => {
    await moveTo(page, `${PLUGIN}/webhooks/${id}`);
    await page.getByRole('button', { name: 'Switch on', exact: true }).click();
    const dialog = page.getByRole('alertdialog');
    await expectText(dialog, /1 delivery/);
    await dialog.getByRole('button', { name: /and send/ }).click();
    await page.getByText('Waiting deliveries are sent at their next attempt').waitFor();
    await expectText(page.getByRole('grid', { name: 'Deliveries' }), /in 5\d minutes/);
    expect(await page.getByText('is sent now').count()).toBe(0);
  });

  test('asks what becomes of what waits when it is switched on in the list, too', async () => {
    await site.admin('PUT', `/switchboard/webhooks/${id}`, { active: false });
    await page.goto(`${PLUGIN}/webhooks`);
    const toggle = page.getByRole('switch', { name: 'Collapsed: active' });
    await toggle.click();
    const dialog = page.getByRole('alertdialog');
    await expectText(dialog, /1 delivery is waiting[\s\S]*Oldest:/);
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect((await webhookOf(id)).active).toBe(false);
    await toggle.click();
    await dialog.getByRole('button', { name: 'Switch on and send 1' }).click();
    await page.getByText('Waiting deliveries are sent at their next attempt').waitFor();
    expect((await webhookOf(id)).active).toBe(true);
    const waiting = await site.admin(
      'GET',
      `/switchboard/webhook-deliveries?webhook=${id}&state=failing`
    );
    expect(waiting.body.data).toHaveLength(1);
  });

  test('asks it when the form switches it on, and saves nothing without an answer', async () => {
    await site.admin('PUT', `/switchboard/webhooks/${id}`, { active: false });
    await page.goto(`${PLUGIN}/webhooks/${id}?tab=settings`);
    await page.getByRole('switch', { name: 'Active', exact: true }).click();
    const save = page.getByRole('button', { name: 'Save', exact: true });
    await save.click();
    const dialog = page.getByRole('alertdialog');
    await expectText(dialog, /1 delivery is waiting/);
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect((await webhookOf(id)).active).toBe(false);
    await save.click();
    await dialog.getByRole('button', { name: 'Switch on and discard 1' }).click();
    await page.getByText('Waiting deliveries were discarded').waitFor();
    expect((await webhookOf(id)).active).toBe(true);
    const [ended] = (
      await site.admin('GET', `/switchboard/webhook-deliveries?webhook=${id}&state=failed`)
    ).body.data;
    expect(ended.error).toBe('discarded');

    // Nothing waits any more: nothing is asked.
    await site.admin('PUT', `/switchboard/webhooks/${id}`, { active: false });
    await page.goto(`${PLUGIN}/webhooks`);
    await page.getByRole('switch', { name: 'Collapsed: active' }).click();
    await waitFor(async () => (await webhookOf(id)).active === true);
    expect(await dialog.count()).toBe(0);
  });
});

describe('edits that are not saved', () => {
  test('are not lost to a link, and stay when the question is answered so', async () => {
    const id = await createWebhook('Edited');
    await moveTo(page, `${PLUGIN}/webhooks/${id}?tab=settings`);
    const name = page.getByLabel('Name', { exact: false }).first();
    await name.fill('Another name');
    await page.getByRole('link', { name: 'Tills', exact: true }).click();
    const question = page.getByRole('alertdialog');
    await expectText(question, /leave this page/);
    await question.getByRole('button', { name: 'Cancel' }).click();
    expect(page.url()).toContain(`/webhooks/${id}`);
    expect(await name.inputValue()).toBe('Another name');

    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('Webhook saved').waitFor();
    await page.getByRole('link', { name: 'Tills', exact: true }).click();
    await page.waitForURL(/\/tills$/);
    expect((await webhookOf(id)).name).toBe('Another name');
  });

  test('outlive a change of the same webhook from elsewhere, and do not undo it', async () => {
    const id = await createWebhook('Shared');
    await moveTo(page, `${PLUGIN}/webhooks/${id}?tab=settings`);
    const name = page.getByLabel('Name', { exact: false }).first();
    await name.fill('Mine');
    await site.admin('PUT', `/switchboard/webhooks/${id}`, { active: false });
    // The page asks for its webhook again by itself.
    await page.getByText('This webhook is switched off').waitFor();
    expect(await name.inputValue()).toBe('Mine');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('Webhook saved').waitFor();
    expect(await webhookOf(id)).toMatchObject({ name: 'Mine', active: false });
  });

  test('do not overwrite in silence what somebody else changed in the same field', async () => {
    const id = await createWebhook('Contested');
    await moveTo(page, `${PLUGIN}/webhooks/${id}?tab=settings`);
    const name = page.getByLabel('Name', { exact: false }).first();
    await name.fill('Mine');
    await site.admin('PUT', `/switchboard/webhooks/${id}`, { name: 'Theirs' });
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    const question = page.getByRole('alertdialog');
    await expectText(question, /Changed meanwhile[\s\S]*changed this webhook/);
    await question.getByRole('button', { name: 'Cancel' }).click();
    expect((await webhookOf(id)).name).toBe('Theirs');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await question.getByRole('button', { name: 'Save my changes' }).click();
    await page.getByText('Webhook saved').waitFor();
    expect((await webhookOf(id)).name).toBe('Mine');
  });

  test.each([
    ['a new till', `${PLUGIN}/tills/create`],
    ['a new webhook', `${PLUGIN}/webhooks/create`],
  ])('of %s are asked about too', async (_name, address) => {
    await page.goto(address);
    await page.getByLabel('Name', { exact: false }).first().fill('Unsaved');
    await page.getByRole('link', { name: 'Stock', exact: true }).click();
    const question = page.getByRole('alertdialog');
    await question.getByRole('button', { name: 'Confirm' }).click();
    await page.waitForURL(/\/stock$/);
    // The address changes first; until the form is gone it takes any other back.
    await page.getByRole('heading', { level: 1, name: 'Stock', exact: true }).waitFor();
  });

  test('of a dialog are not lost to Escape', async () => {
    await moveTo(page, `${PLUGIN}/stock`);
    await page.getByRole('button', { name: 'Add product' }).click();
    const sku = page.getByLabel('SKU', { exact: false });
    await expectFocus(sku);
    await sku.fill('HALF');
    await page.keyboard.press('Escape');
    const question = page.getByRole('alertdialog');
    await expectText(question, 'unsaved changes');
    await page.keyboard.press('Escape');
    await expectFocus(sku);
    expect(await sku.inputValue()).toBe('HALF');
    await page.keyboard.press('Escape');
    await question.getByRole('button', { name: 'Discard changes' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  });
});

test('the page has the focus when a row is gone', async () => {
  await createWebhook('Gone');
  await moveTo(page, `${PLUGIN}/webhooks`);
  const button = main().getByRole('button', { name: 'Delete Gone' });
  await button.click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Delete Gone' }).click();
  await button.waitFor({ state: 'detached' });
  await expectFocus(main());
});

test('a module is switched off only when asked twice, and the screen says how a site begins', async () => {
  await moveTo(page, MODULES);
  await expectText(main(), 'On a new site, all modules are on.');
  await page.getByRole('switch', { name: 'Companies' }).click();
  const dialog = page.getByRole('alertdialog');
  await expectText(dialog, 'Waiting deliveries are sent when you switch it on again');
  await page.keyboard.press('Escape');
  await expectFocus(page.getByRole('switch', { name: 'Companies' }));
  const enabled = async () =>
    (await site.admin('GET', '/switchboard/modules')).body.data.find(
      ({ id }: { id: string }) => id === 'companies'
    ).enabled;
  expect(await enabled()).toBe(true);
  await page.getByRole('switch', { name: 'Companies' }).click();
  await dialog.getByRole('button', { name: 'Switch off' }).click();
  await waitFor(async () => !(await enabled()));
});

test('the stock shows every location of an item, however short the page is', async () => {
  const places = await Promise.all(
    ['East', 'West'].map((name) => create('/locations', { name, code: name }))
  );
  for (let n = 0; n < 12; n += 1) {
    await create('/items', {
      sku: `GRID-${n}`,
      opening: [{ quantity: 1 }, ...places.map(({ id }) => ({ location: id, quantity: n }))],
    });
  }
  await page.goto(`${PLUGIN}/stock?page=1&pageSize=10&_q=GRID`);
  const rows = page.getByRole('grid', { name: 'Stock levels' }).locator('tbody tr');
  await waitFor(async () => (await rows.count()) === 10);
  for (const row of await rows.all()) {
    const levels = row.getByRole('link', { name: /Explain this number$/ });
    await waitFor(async () => (await levels.count()) === 3);
  }
  await expectText(rows.nth(9), /19$/);
});

describe('a till in test mode', () => {
  test('that sent an unknown SKU is not said to be ready for live', async () => {
    const till = await createTill('Half known', 'test');
    await create('/items', { sku: 'HALF-KNOWN', opening: [{ quantity: 1 }] });
    await sendRecord(site.url, till, 'sale', saleOf('T-1', 'HALF-KNOWN', 1));
    await sendRecord(site.url, till, 'sale', saleOf('T-2', 'NO-SUCH-SKU', 1));
    await sendRecord(site.url, till, 'sale', { external_id: 'T-3' });
    await waitFor(async () => (await eventOf(till.id, 'T-2'))?.state === 'simulated');
    await moveTo(page, `${PLUGIN}/tills/${till.id}`);
    await page.getByRole('button', { name: 'Go live' }).click();
    const dialog = page.getByRole('alertdialog');
    await expectText(dialog, '1 passed, 1 need attention');
    await expectText(dialog, 'Latest requests refused: 1');
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await moveTo(page, `${PLUGIN}/records/${(await eventOf(till.id, 'T-2')).id}`);
    await expectText(main(), 'No product has the SKU NO-SUCH-SKU.');
  });

  test('is offered a signed test sale, one that is live is not', async () => {
    for (const mode of ['test', 'live'] as const) {
      const till = await createTill(`Credentials ${mode}`, mode);
      await moveTo(page, `${PLUGIN}/tills/${till.id}`);
      await chooseAction(page, 'Rotate secret');
      await page.getByRole('alertdialog').getByRole('button', { name: 'Rotate secret' }).click();
      const dialog = page.getByRole('dialog');
      await expectText(dialog, '/ping');
      const sales = await dialog.getByText('/service-pos/v1/sale').count();
      expect(sales).toBe(mode === 'test' ? 1 : 0);
      if (mode === 'live') await expectText(dialog, 'would change the stock');
      await dialog.getByRole('checkbox').click();
      await dialog.getByRole('button', { name: 'Done' }).click();
    }
  });
});

test('what was refused stands beside what was accepted, as the till was told', async () => {
  const till = await createTill('Refused', 'live');
  expect(await sendRecord(site.url, till, 'sale', { external_id: 'BAD-1' })).toBe(400);
  await moveTo(page, `${PLUGIN}/records?connection=${till.id}`);
  await expectText(main(), 'Sales, refunds, counts and closings from tills');
  await page.getByRole('tab', { name: 'Refused' }).click();
  await expectText(page.getByRole('grid', { name: 'Refused' }), /BAD-1[\s\S]*schema_invalid/);
});

test('the filter for missing mappings finds records that are partly applied', async () => {
  const till = await createTill('Partly', 'live');
  await create('/items', { sku: 'PART-KNOWN', opening: [{ quantity: 5 }] });
  const sale = saleOf('PARTLY-1', 'PART-KNOWN', 1);
  await sendRecord(site.url, till, 'sale', {
    ...sale,
    line_items: [
      { sku: 'PART-KNOWN', quantity: 1 },
      { sku: 'PART-UNKNOWN', quantity: 1 },
    ],
  });
  await waitFor(async () => (await eventOf(till.id, 'PARTLY-1'))?.state === 'partially_applied');
  await moveTo(page, `${PLUGIN}/records?connection=${till.id}`);
  await page.getByRole('combobox', { name: 'All states' }).click();
  await page.getByRole('option', { name: /^Unmapped/ }).click();
  await page.waitForURL(/state=needs_mapping/);
  await expectText(page.getByRole('grid', { name: 'Till records' }), 'PARTLY-1');
});

test('a till shows its type, and is switched off and on by its owner', async () => {
  const till = await createTill('Switched', 'live');
  await moveTo(page, `${PLUGIN}/tills/${till.id}`);
  await expectText(main(), 'Generic webhook');
  await chooseAction(page, 'Switch off');
  const dialog = page.getByRole('alertdialog');
  await expectText(dialog, 'Its requests are refused until');
  await dialog.getByRole('button', { name: 'Switch off' }).click();
  await expectText(main(), 'This till is switched off');
  expect(await sendRecord(site.url, till, 'sale', saleOf('OFF-1', 'X', 1))).toBe(401);
  await page.getByRole('button', { name: 'Switch on' }).click();
  await page.getByText('Till switched on').waitFor();
  expect(await sendRecord(site.url, till, 'sale', saleOf('OFF-1', 'X', 1))).toBe(202);
});

test('no location is chosen for anybody in a map, and one has to be', async () => {
  await moveTo(page, `${PLUGIN}/tills/create`);
  await page.getByLabel('Name', { exact: false }).first().fill('Mapped');
  await page.getByRole('button', { name: 'Add location' }).click();
  await page.getByLabel('Name at the till', { exact: false }).fill('store-1');
  await expectText(main(), 'Choose location');
  await page.getByRole('button', { name: 'Create and show credentials' }).click();
  await expectText(main(), 'one of your locations');
  expect(page.url()).toContain('/tills/create');

  // Closing the tab or going elsewhere is asked about by the browser itself.
  await page.reload();
  expect(asked).toContain('beforeunload');
});

describe('on a screen of 390 pixels', () => {
  test('every page of the plugin can be reached', async () => {
    await page.setViewportSize({ width: 390, height: 844 });
    await page.goto(`${PLUGIN}/webhooks`);
    const nav = page.getByRole('navigation', { name: 'CRM' });
    for (const [name, path] of [
      ['Overview', 'overview'],
      ['Deliveries', 'deliveries'],
      ['Sales', 'sales'],
      ['Tills', 'tills'],
      ['Till records', 'records'],
      ['Unmapped products', 'unmapped'],
      ['Stock', 'stock'],
      ['Webhooks', 'webhooks'],
    ] as const) {
      await nav.getByRole('link', { name, exact: true }).click();
      await page.waitForURL(new RegExp(`/${path}$`));
      await page.getByRole('heading', { level: 1, name }).waitFor();
    }
    await page.setViewportSize({ width: 1440, height: 900 });
  });
});
