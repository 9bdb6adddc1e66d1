import type { Browser, Page } from 'playwright-core';
import { type Receiver, startReceiver } from '../support/receiver';
import { waitFor } from '../support/wait';
import { expectText, launchBrowser, moveTo, PLUGIN, signIn } from './support/browser';
import { type Playground, startPlayground } from './support/playground';

const CONTACTS = '/content-manager/collection-types/plugin::switchboard.contact';
const NAMES = ['Alan Turing', 'Ada Lovelace', 'Grace Hopper'];

let site: Playground;
let browser: Browser;
let page: Page;
let receiver: Receiver;
const ids = { broken: 0, healthy: 0, alan: '' };

const createWebhook = async (name: string): Promise<number> => {
  const body = {
    name,
    url: `${receiver.url}${name.toLowerCase()}`,
    events: ['contact.created'],
  };
  return (await site.admin('POST', '/switchboard/webhooks', body)).body.data.id;
};

const deliveriesOf = async (webhook: number, state: string) =>
  (await site.admin('GET', `/switchboard/webhook-deliveries?webhook=${webhook}&state=${state}`))
    .body.data as { id: number; delivery_id: string }[];

const main = () => page.getByRole('main');
const grid = () => page.getByRole('grid', { name: 'Deliveries' });
const rows = () => grid().locator('tbody tr');
const open = (path: string) => moveTo(page, `${PLUGIN}/${path}`);

beforeAll(async () => {
  receiver = await startReceiver();
  receiver.respond(({ path }) =>
    path === '/broken' ? { status: 500, body: '{"error":"out of paper"}' } : {}
  );
  // One retry, an hour later: what fails waits for it while these tests run.
  site = await startPlayground({ retryScheduleSeconds: [3600] });
  browser = await launchBrowser();
  ids.broken = await createWebhook('Broken');
  ids.healthy = await createWebhook('Healthy');
  for (const [at, name] of NAMES.entries()) {
    const [first_name, last_name] = name.split(' ');
    const made = await site.admin('POST', CONTACTS, {
      email: `found-${at}@example.test`,
      first_name,
      last_name,
    });
    ids.alan ||= made.body.data.documentId;
  }
  await waitFor(async () => (await deliveriesOf(ids.broken, 'failing')).length === 3);
  await waitFor(async () => (await deliveriesOf(ids.healthy, 'sent')).length === 3);
  page = await signIn(browser, site, site.login);
}, 900_000);

afterAll(async () => {
  await browser?.close();
  await receiver?.close();
  await site?.stop();
});

describe('the log over all webhooks', () => {
  test('shows what became of each, its record and its webhook', async () => {
    await open(`deliveries?event=contact.created`);
    await expectText(grid(), /Alan Turing[\s\S]*Broken[\s\S]*Retrying[\s\S]*HTTP 500/);
    await expectText(grid(), /Alan Turing[\s\S]*Healthy[\s\S]*Delivered/);
  });

  test('is narrowed by a cause, with how many have it, and the address says so', async () => {
    await open('deliveries');
    await page.getByRole('button', { name: 'HTTP 500 · 3' }).click();
    await page.waitForURL(/cause=http_500/);
    await waitFor(async () => (await rows().count()) === 3);
    await page.reload();
    await waitFor(async () => (await rows().count()) === 3);
    await page.getByRole('button', { name: 'Clear filters' }).click();
    await page.waitForURL((url) => !url.search.includes('cause'));
  });

  test('finds the delivery about Alan Turing, and leads to him', async () => {
    await open(`deliveries?webhook=${ids.broken}`);
    await page.getByPlaceholder('Record, delivery ID or cause').fill('turing');
    await page.keyboard.press('Enter');
    await page.waitForURL(/q=turing/);
    await waitFor(async () => (await rows().count()) === 1);
    const link = rows().first().getByRole('link', { name: 'Alan Turing' });
    expect(await link.getAttribute('href')).toContain(ids.alan);
  });

  test('keeps tests apart from what happened', async () => {
    await site.admin('POST', `/switchboard/webhooks/${ids.healthy}/test`, {});
    await open(`deliveries?webhook=${ids.healthy}`);
    await waitFor(async () => (await rows().count()) === 3);
    await moveTo(page, `${PLUGIN}/deliveries?webhook=${ids.healthy}&state=test`);
    await expectText(grid(), /ping[\s\S]*Test/);
  });
});

describe('a delivery', () => {
  test('says first what the receiver answered, and gives the focus back when it is closed', async () => {
    const [first] = await deliveriesOf(ids.broken, 'failing');
    await open(`deliveries?webhook=${ids.broken}`);
    const link = page.locator(`#switchboard-delivery-${first!.id}`);
    await link.focus();
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog');
    await expectText(dialog, 'out of paper');
    const said = (await dialog.textContent()) ?? '';
    expect(said.indexOf('out of paper')).toBeLessThan(said.indexOf('Attempts'));
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    await waitFor(() =>
      page.evaluate((id) => document.activeElement?.id === id, `switchboard-delivery-${first!.id}`)
    );
    expect(page.url()).toContain(`webhook=${ids.broken}`);
  });

  test('of another webhook is not found under this one, and nothing can be done about it', async () => {
    const [foreign] = await deliveriesOf(ids.broken, 'failing');
    await open(`webhooks/${ids.healthy}?delivery=${foreign!.id}`);
    const dialog = page.getByRole('dialog');
    await expectText(dialog, 'Not found');
    expect(await dialog.getByRole('button', { name: /Resend|Skip/ }).count()).toBe(0);
    expect(await dialog.textContent()).not.toContain('contact.created');
  });
});

test('a webhook that does not exist offers nothing', async () => {
  await open('webhooks/999999');
  const told = page.getByRole('alert').filter({ hasText: 'Not found' });
  await told.waitFor();
  expect(await told.getByRole('button').count()).toBe(0);
  expect(await page.getByRole('button', { name: /Save|Delete|Send|Switch|More/ }).count()).toBe(0);
});

test('the overview says what fails and since when, and leads to it', async () => {
  await open('overview');
  await expectText(
    main(),
    /Every attempt to Broken has failed since[\s\S]*HTTP 500[\s\S]*3 deliveries/
  );
  await page.getByRole('button', { name: 'As numbers' }).click();
  await expectText(page.getByRole('grid', { name: 'Attempts' }), /\d/);
  await main().getByRole('link', { name: 'View', exact: true }).first().click();
  await page.waitForURL(/deliveries\?webhook=\d+&state=failing/);
  await waitFor(async () => (await rows().count()) === 3);
  await moveTo(page, '/admin');
  await expectText(main(), 'Every attempt to Broken has failed since');
});

test('a webhook’s row says how it does and how many fail, found and sorted by the server', async () => {
  await open('webhooks?_q=roke');
  const row = page.getByRole('row', { name: /Broken/ });
  await expectText(row, /Failing[\s\S]*3 retrying/);
  expect(await page.getByRole('row', { name: /Healthy/ }).count()).toBe(0);
  await open('webhooks?sort=name:desc');
  await expectText(page.getByRole('grid', { name: 'Webhooks' }), /Healthy[\s\S]*Broken/);
});

test('a contact’s page has its latest deliveries beside it', async () => {
  await moveTo(page, `/admin${CONTACTS}/${ids.alan}`);
  await page.getByText('Latest deliveries').waitFor();
  await page.getByRole('link', { name: 'Show all deliveries' }).click();
  await page.waitForURL(new RegExp(`subject_id=${ids.alan}`));
  await waitFor(async () => (await rows().count()) >= 2);
  const found = await rows().getByRole('link', { name: 'Alan Turing' }).count();
  expect(found).toBe(await rows().count());
});

test('a filter is built by conditions, tried on recent events, and saved as a JSON Schema', async () => {
  await open(`webhooks/${ids.healthy}?tab=settings`);
  await page.getByRole('button', { name: 'Add condition' }).click();
  await page.getByRole('combobox', { name: 'Field' }).click();
  await page
    .getByRole('option', { name: /(^|\.)first_name$/ })
    .first()
    .click();
  await page.getByLabel('Value', { exact: true }).fill('Grace');
  await page.getByRole('button', { name: 'Test with recent events' }).click();
  await expectText(main(), /1 of \d+ would be sent/);
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText('Webhook saved').waitFor();
  const saved = (await site.admin('GET', `/switchboard/webhooks/${ids.healthy}`)).body.data;
  expect(JSON.stringify(saved.filter)).toContain('{"const":"Grace"}');
});

test('a secret is rotated with an overlap, and the page counts it down', async () => {
  await open(`webhooks/${ids.healthy}?tab=settings`);
  await page.getByRole('button', { name: 'Rotate secret' }).click();
  const question = page.getByRole('alertdialog');
  await question.getByRole('combobox').click();
  await page.getByRole('option', { name: 'For 24 hours' }).click();
  await expectText(question, 'signatures of both secrets');
  await question.getByRole('button', { name: 'Rotate secret' }).click();
  await expectText(main(), /The old secret also signs until[\s\S]*in 23 hours/);
  await expectText(main(), 'has not answered 2xx since the rotation');
  await site.admin('POST', `/switchboard/webhooks/${ids.healthy}/test`, {});
  await expectText(main(), 'The receiver has answered 2xx since the rotation');
});

test('without a journal the page says how to switch it on', async () => {
  await open(`webhooks/${ids.healthy}?tab=missed`);
  const panel = page.getByRole('region', { name: 'Missed events' });
  await expectText(panel, /The event journal is off[\s\S]*journalDays/);
  expect(await panel.getByRole('button', { name: 'Find missed events' }).count()).toBe(0);
});

test('a test that succeeds while deliveries fail offers to send those now, after a look', async () => {
  const sendTest = async () => {
    await open(`webhooks/${ids.broken}`);
    const panel = page.getByRole('region', { name: 'Send a test' });
    await panel.getByRole('button', { name: 'Send test' }).click();
    return panel;
  };
  const refused = await sendTest();
  await expectText(refused, 'The test failed.');
  expect(await refused.getByRole('button', { name: /^Send \d+ now$|^Resend/ }).count()).toBe(0);
  receiver.respond({});
  const received = await sendTest();
  await expectText(received, /3 failed deliveries are waiting/);
  await received.getByRole('button', { name: 'Send 3 now' }).click();
  await expectText(page.getByRole('dialog'), /3 failed deliveries will be resent/);
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
});

test('all that failed are sent again after a look at them, and the page tells how far it is', async () => {
  receiver.respond({});
  const failed = (await deliveriesOf(ids.broken, 'failing')).map((one) => one.delivery_id);
  const before = receiver.requests.length;
  await open(`deliveries?webhook=${ids.broken}`);
  await page.getByRole('button', { name: 'Resend all 3 matching' }).click();
  const dialog = page.getByRole('dialog');
  await expectText(dialog, /3 failed deliveries will be resent[\s\S]*Alan Turing/);
  await dialog.getByRole('button', { name: 'Resend 3' }).click();
  await open('webhooks');
  await open('deliveries');
  await expectText(main(), /Done: 3 of 3 delivered, 0 failed/);
  const again = receiver.requests.slice(before).filter(({ path }) => path === '/broken');
  expect(again.map(({ json }) => json.id).sort()).toEqual([...failed].sort());
  await page.getByRole('link', { name: 'View results' }).click();
  await page.waitForURL(/recovery=\d+/);
  await waitFor(async () => (await rows().count()) === 3);
});
