import crypto from 'node:crypto';
import type { Browser, Page } from 'playwright-core';
import { type Received, type Receiver, startReceiver } from '../support/receiver';
import { readTexts } from '../support/translations';
import { expectText, launchBrowser, moveTo, PLUGIN, signIn, switchTo } from './support/browser';
import { type Playground, startPlayground } from './support/playground';

let site: Playground;
let browser: Browser;
let page: Page;
let receiver: Receiver;

beforeAll(async () => {
  receiver = await startReceiver();
  // One try a delivery, and three failures in a row switch a webhook off: nobody waits a day here.
  site = await startPlayground({ retryScheduleSeconds: [], disableAfterFailures: 3 });
  browser = await launchBrowser();
  page = await signIn(browser, site, site.login);
}, 900_000);

afterAll(async () => {
  await browser?.close();
  await receiver?.close();
  await site?.stop();
});

const createWebhook = async (name: string): Promise<number> => {
  const answer = await site.admin('POST', '/switchboard/webhooks', {
    name,
    url: `${receiver.url}${name.toLowerCase()}`,
    events: ['contact.created'],
    active: true,
  });
  return answer.body.data.id;
};

const CONTACTS = '/content-manager/collection-types/plugin::switchboard.contact';

const createContact = (email: string) => site.admin('POST', CONTACTS, { email });

const rows = () => page.getByRole('grid', { name: 'Deliveries' }).locator('tbody tr');

const signatureOf = (secret: string, { headers, body }: Received): string =>
  crypto
    .createHmac('sha256', secret)
    .update(`${headers['x-service-timestamp']}.${body}`)
    .digest('hex');

test('a webhook made on the screen gets the event of a contact saved in the content manager', async () => {
  await page.goto(`${PLUGIN}/webhooks/create`);
  await page.getByLabel('Name', { exact: false }).first().fill('Newsletter');
  await page.getByLabel('Address', { exact: false }).first().fill(`${receiver.url}newsletter`);
  await page.getByRole('checkbox', { name: 'contact.created' }).click();
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await page.getByRole('button', { name: 'Reveal' }).click();
  const secret = await page.locator('input[name=secret]').inputValue();
  const address = page.url().replace(/\?.*/, '');

  await moveTo(page, `/admin${CONTACTS}/create`);
  await page.fill('input[name=email]', 'kim@example.test');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Saved document').first().waitFor();
  const [arrived] = await receiver.waitFor(1, 30_000, (one) => one.path === '/newsletter');
  expect(arrived.json.event).toBe('contact.created');
  expect(arrived.headers['x-service-signature']).toBe(`sha256=${signatureOf(secret, arrived)}`);

  await moveTo(page, address);
  await expectText(rows(), /contact\.created[\s\S]*Delivered/);
});

test('the cause of a failure is readable, and Resend works once the receiver is fixed', async () => {
  receiver.respond(({ path }) => (path === '/accounting' ? { status: 503 } : {}));
  const id = await createWebhook('Accounting');
  await createContact('lou@example.test');
  await moveTo(page, `${PLUGIN}/webhooks/${id}`);
  await expectText(rows(), /contact\.created[\s\S]*Failed[\s\S]*HTTP 503/);
  await rows().first().click();
  const dialog = page.getByRole('dialog');
  await expectText(dialog, 'The receiver answered 503');
  expect(page.url()).toMatch(/delivery=\d+/);

  receiver.respond({});
  await dialog.getByRole('button', { name: 'Resend' }).click();
  await expectText(dialog, /Delivered/);
  await expectText(dialog, 'manual');
  const sent = receiver.requests.filter(({ path }) => path === '/accounting');
  expect(new Set(sent.map(({ body }) => body)).size).toBe(1);
});

test('Send test shows the status, the time and the body of the answer', async () => {
  receiver.respond({ body: '{"stored":"yes"}' });
  const id = await createWebhook('Tested');
  await moveTo(page, `${PLUGIN}/webhooks/${id}`);
  await page.getByRole('button', { name: 'Send test' }).click();
  const result = page.getByRole('status').filter({ hasText: 'accepted the test' });
  await expectText(result, 'HTTP 200');
  await expectText(result, / ms/);
  await expectText(result, '"stored": "yes"');
});

test('rotation says that the old secret stops at once, and replaces it', async () => {
  const id = await createWebhook('Rotated');
  const secret = async () =>
    (await site.admin('GET', `/switchboard/webhooks/${id}/secret`)).body.data.secret as string;
  const before = await secret();
  await moveTo(page, `${PLUGIN}/webhooks/${id}?tab=settings`);
  await page.getByRole('button', { name: 'Rotate secret' }).click();
  await expectText(page.getByRole('alertdialog'), 'stops working at once');
  await page.getByRole('alertdialog').getByRole('button', { name: 'Rotate secret' }).click();
  await page.getByText('Secret rotated').waitFor();
  expect(await secret()).not.toBe(before);
});

const headerRow = (name: string) => ({
  name: page.getByLabel('Header', { exact: true }).last(),
  value: page.getByLabel('Value', { exact: true }).last(),
  remove: page.getByRole('button', { name: `Remove header ${name}` }),
});

const savedHeaders = async (id: number) =>
  (await site.admin('GET', `/switchboard/webhooks/${id}`)).body.data.headers as object;

const save = async () => {
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText('Webhook saved').first().waitFor();
};

test('headers are entered row by row, hidden until asked for, and arrive', async () => {
  const id = await createWebhook('Gateway');
  await moveTo(page, `${PLUGIN}/webhooks/${id}?tab=settings`);
  await page.getByRole('button', { name: 'Add header' }).click();
  const { name, value, remove } = headerRow('Authorization');
  await name.fill('Authorization');
  await value.fill('Bearer of-the-gateway');
  expect(await value.getAttribute('type')).toBe('password');
  await page.getByRole('button', { name: 'Show values' }).click();
  expect(await value.getAttribute('type')).toBe('text');
  await page.getByRole('button', { name: 'Add header' }).click();
  await headerRow('').name.fill('authorization');
  await headerRow('').value.fill('another');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await expectText(page.getByRole('main'), 'The header authorization appears twice.');
  await headerRow('').name.fill('Host');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await expectText(page.getByRole('main'), 'The header Host is set by the site');
  await headerRow('').name.fill('X-Tenant');
  await save();
  expect(await savedHeaders(id)).toEqual({
    Authorization: 'Bearer of-the-gateway',
    'X-Tenant': 'another',
  });
  await remove.click();
  await save();
  expect(await savedHeaders(id)).toEqual({ 'X-Tenant': 'another' });
  receiver.clear();
  await page.getByRole('tab', { name: 'Deliveries' }).click();
  await page.getByRole('button', { name: 'Send test' }).click();
  const [post] = await receiver.waitFor(1, 30_000, (one) => one.path === '/gateway');
  expect(post.headers['x-tenant']).toBe('another');
  expect(post.headers).not.toHaveProperty('authorization');
});

test('a webhook that was switched off says why and since when, and goes on when switched on', async () => {
  receiver.respond(({ path }) => (path === '/broken' ? { status: 500 } : {}));
  const id = await createWebhook('Broken');
  for (const name of ['a', 'b', 'c']) {
    await createContact(`${name}@example.test`);
    await receiver.settle(300);
  }
  await moveTo(page, `${PLUGIN}/webhooks/${id}`);
  const banner = page.getByRole('status').filter({ hasText: 'was switched off' });
  await expectText(banner, 'after 3 failed deliveries in a row');
  await banner.getByRole('button', { name: 'Switch on' }).click();
  await banner.waitFor({ state: 'detached' });
  expect((await site.admin('GET', `/switchboard/webhooks/${id}`)).body.data.active).toBe(true);
});

test('what the server refuses stands beside its field', async () => {
  await moveTo(page, `${PLUGIN}/webhooks/create`);
  await page.getByLabel('Name', { exact: false }).first().fill('Inside');
  await page.getByLabel('Address', { exact: false }).first().fill('http://10.0.0.1/');
  await page.getByRole('radio', { name: /Every event/ }).click();
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await expectText(page.getByRole('main'), /private network|refused/);
  expect(page.url()).toContain('/webhooks/create');
});

test.each(['de', 'fr'])('what the server refuses is said in the language %s', async (language) => {
  const texts = readTexts(language);
  await page.evaluate((locale) => localStorage.setItem('strapi-admin-language', locale), language);
  await page.goto(`${PLUGIN}/webhooks/create`);
  await page.locator('input[name=name]').fill('Inside');
  await page.locator('input[name=url]').fill('https://me:secret@receiver.example/');
  await page.getByRole('radio', { name: texts['events.every'] }).click();
  await page.getByRole('button', { name: texts['webhook.create.submit'], exact: true }).click();
  await expectText(page.getByRole('main'), texts['error.code.url_credentials']!);
});

test('who may not reveal secrets keeps headers that are not shown', async () => {
  const id = await createWebhook('Kept');
  const headers = { Authorization: 'Bearer canary-4711' };
  await site.admin('PUT', `/switchboard/webhooks/${id}`, { headers });
  await site.createRole('Webhook editor', ['webhooks.read', 'webhooks.update']);
  await switchTo(page, await site.createUser('Webhook editor'));
  await moveTo(page, `${PLUGIN}/webhooks/${id}?tab=settings`);
  const value = page.getByLabel('Value', { exact: true });
  await value.waitFor();
  expect([await value.inputValue(), await value.getAttribute('placeholder')]).toEqual([
    '',
    'Hidden; stays unchanged',
  ]);
  expect(await page.content()).not.toContain('canary-4711');
  await page.locator('input[name=name]').fill('Kept and renamed');
  await page.getByRole('button', { name: 'Add header' }).click();
  await page.getByLabel('Header', { exact: true }).last().fill('X-New');
  await page.getByLabel('Value', { exact: true }).last().fill('new');
  await save();
  expect(await savedHeaders(id)).toEqual({ ...headers, 'X-New': 'new' });
});

test('an editor without the permission sees neither entry nor data, and the API says 403', async () => {
  await switchTo(page, await site.createUser('Editor'));
  await page.waitForLoadState('networkidle');
  expect(await page.getByRole('link', { name: 'CRM' }).count()).toBe(0);
  await page.goto(`${PLUGIN}/webhooks`);
  await expectText(page.getByRole('main'), /permission/i);
  const status = await page.evaluate(async () => {
    const cookie = /jwtToken=([^;]+)/.exec(document.cookie)?.[1];
    const token = localStorage.getItem('jwtToken')?.replaceAll('"', '') ?? cookie;
    const answer = await fetch('/switchboard/webhooks', {
      headers: { authorization: `Bearer ${decodeURIComponent(token ?? '')}` },
    });
    return answer.status;
  });
  expect(status).toBe(403);
});
