import path from 'node:path';
import type { Browser, Locator, Page } from 'playwright-core';
import { waitFor } from '../support/wait';
import { atRest, expectText, launchBrowser, moveTo, signIn } from './support/browser';
import { type Playground, startPlayground } from './support/playground';

const uidOf = (kind: string): string => `plugin::switchboard.${kind}`;
const API = '/content-manager/collection-types';
const listOf = (kind: string): string => `/admin${API}/${uidOf(kind)}`;

let site: Playground;
let browser: Browser;
let page: Page;
let edith = '';

/** Pictures for a person who looks at the screens, if they name a folder. */
const picture = async (name: string): Promise<void> => {
  const folder = process.env.CONTACT_PICTURES;
  if (!folder) return;
  const before = page.viewportSize()!;
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    for (const width of [1440, 390]) {
      await page.setViewportSize({ width, height: 2200 });
      await atRest(page);
      const file = `${name}-${colorScheme}-${width}.png`;
      await page.screenshot({ path: path.join(folder, file) });
    }
  }
  await page.emulateMedia({ colorScheme: null });
  await page.setViewportSize(before);
};

const save = async (kind: string, data: Record<string, unknown>): Promise<string> => {
  const { status, body } = await site.admin('POST', `${API}/${uidOf(kind)}`, data);
  expect(status).toBe(201);
  return body.data.documentId;
};
const stored = async (id: string) =>
  (await site.admin('GET', `${API}/${uidOf('contact')}/${id}`)).body.data;

const main = () => page.getByRole('main');
const rows = () => main().getByRole('row');
const row = (name: string) => rows().filter({ hasText: name });
const views = () => page.getByRole('navigation', { name: 'Views' });
const view = (name: string) => views().getByRole('link', { name, exact: true });
const group = (name: string): Locator => page.getByRole('group', { name });
const listed = (names: string[]) =>
  waitFor(async () => {
    const found = await rows().allTextContents();
    for (const name of names) if (!found.some((one) => one.includes(name))) throw new Error(name);
    // The first one has the headings.
    if (found.length !== names.length + 1) throw new Error(found.join('\n'));
    return true;
  });

beforeAll(async () => {
  site = await startPlayground({}, { anew: true });
  browser = await launchBrowser();
  edith = await save('contact', {
    first_name: 'Edith',
    last_name: 'Clarke',
    email: 'z-edith@x.test',
    fields: { size: 'XL', visits: 3, nested: { a: 1 } },
  });
  await save('contact', { email: 'nameless@x.test' });
  page = await signIn(browser, site, site.login);
}, 900_000);

afterAll(async () => {
  await browser?.close();
  await site?.stop();
});

test('a contact is titled by the person, in the list and on the page', async () => {
  await page.goto(listOf('contact'));
  await row('Edith Clarke').waitFor();
  await expectText(main().locator('thead th').nth(1), /^Name/);
  await row('nameless@x.test').first().waitFor();
  await row('Edith Clarke').getByRole('link', { name: 'Edith Clarke' }).click();
  await page.getByRole('heading', { level: 1, name: 'Edith Clarke' }).waitFor();

  await page.getByLabel('Last name').fill('Stone');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('heading', { level: 1, name: 'Edith Stone' }).waitFor();
});

test('computed fields are read-only, and JSON is nowhere', async () => {
  await picture('contact');
  expect(await page.getByRole('textbox', { name: 'Lifetime value' }).isDisabled()).toBe(true);
  for (const name of ['Subscribed at', 'Unsubscribed at']) {
    const inputs = page.getByRole('group', { name, exact: true }).getByRole('combobox');
    expect(await inputs.count()).toBe(2);
    for (const input of await inputs.all()) expect(await input.isDisabled()).toBe(true);
  }
  expect(await main().getByText('null').count()).toBe(0);
  expect(await main().locator('.cm-editor').count()).toBe(0);
  expect(await page.getByLabel('Display name').count()).toBe(0);
});

test('an address has fields, and so has each custom field', async () => {
  const address = group('Address');
  await address.getByLabel('Street').fill('12 St James Square');
  await address.getByLabel('City').fill('London');
  await address.getByLabel('Country').fill('GB');

  const fields = group('Custom fields');
  const values = fields.getByRole('listitem');
  expect(await values.count()).toBe(3);
  expect(await values.nth(0).getByLabel('Name').inputValue()).toBe('size');
  await values.nth(0).getByLabel('Value').fill('S');
  await values.nth(1).getByRole('textbox', { name: 'Value' }).fill('4');
  expect(await values.nth(2).getByLabel('Value').isDisabled()).toBe(true);
  await fields.getByRole('button', { name: 'Add custom field' }).click();
  await values.nth(3).getByLabel('Name').fill('size');
  await expectText(values.nth(3), 'Only the first value is saved');
  await values.nth(3).getByLabel('Name').fill('vip');
  await values.nth(3).getByRole('combobox', { name: 'Type' }).click();
  await page.getByRole('option', { name: 'Yes or no' }).click();
  await values.nth(3).getByRole('combobox', { name: 'Value' }).click();
  await page.getByRole('option', { name: 'Yes', exact: true }).click();
  await picture('values');
  await page.getByRole('button', { name: 'Save' }).click();
  await waitFor(async () => (await stored(edith)).address !== null);
  expect(await stored(edith)).toMatchObject({
    address: { street: '12 St James Square', city: 'London', country: 'GB' },
    fields: { size: 'S', visits: 4, nested: { a: 1 }, vip: true },
  });

  await page.reload();
  expect(await address.getByLabel('City').inputValue()).toBe('London');
  for (const label of ['Street', 'City', 'Country']) await address.getByLabel(label).fill('');
  await fields.getByRole('button', { name: 'Remove vip' }).click();
  await page.getByRole('button', { name: 'Save' }).click();
  await waitFor(async () => (await stored(edith)).address === null);
  expect((await stored(edith)).fields).toEqual({ size: 'S', visits: 4, nested: { a: 1 } });
});

test('the bin is a view, and a contact is moved there and restored', async () => {
  await page.getByRole('button', { name: 'More actions' }).click();
  await page.getByRole('menuitem', { name: 'Move to bin' }).click();
  await picture('in-bin');
  await expectText(page.locator('aside, [role=complementary]'), 'In the bin since');
  expect((await stored(edith)).trashed_at).not.toBeNull();

  await moveTo(page, listOf('contact'));
  await row('nameless@x.test').first().waitFor();
  expect(await row('Edith Stone').count()).toBe(0);
  expect(await view('All').getAttribute('aria-current')).toBe('page');
  await picture('contacts');
  await view('Bin').click();
  await listed(['Edith Stone']);
  await picture('bin');
  expect(await view('Bin').getAttribute('aria-current')).toBe('page');

  await row('Edith Stone').getByRole('checkbox').check();
  await page.getByRole('button', { name: 'Restore' }).click();
  await waitFor(async () => (await row('Edith Stone').count()) === 0);
  expect((await stored(edith)).trashed_at).toBeNull();
  await view('All').click();
  await row('Edith Stone').getByRole('button', { name: 'Row actions' }).click();
  await page.getByRole('menuitem', { name: 'Move to bin' }).click();
  await waitFor(async () => (await row('Edith Stone').count()) === 0);

  await page.goto(`${listOf('contact')}/${edith}`);
  await page.getByRole('button', { name: 'Restore' }).click();
  await waitFor(async () => (await stored(edith)).trashed_at === null);
});

test('a filter that is removed stays removed', async () => {
  await page.goto(listOf('contact'));
  await row('nameless@x.test').first().waitFor();
  await main()
    .getByRole('button', { name: /^In the bin since/ })
    .click();
  await waitFor(() => !page.url().includes('filters'));
  await row('nameless@x.test').first().waitFor();
  expect(page.url()).not.toContain('filters');
});

test('tasks that are due today, overdue or mine are views, in the reader’s time zone', async () => {
  const HOUR = 3_600_000;
  // Late in the evening of the reader: for them, the day of the server has ended or has not begun.
  const context = await browser.newContext({
    baseURL: site.url,
    locale: 'en-GB',
    timezoneId: 'Pacific/Kiritimati',
    storageState: await page.context().storageState(),
  });
  const before = page;
  page = await context.newPage();
  const midnight = await page.evaluate(() => new Date().setHours(0, 0, 0, 0));
  const at = (hours: number) => new Date(midnight + hours * HOUR).toISOString();
  const me = (await site.admin('GET', '/admin/users/me')).body.data.id as number;
  await save('task', { title: 'First minute', due_at: at(0) });
  await save('task', { title: 'Last minute', due_at: at(23.9), owner: { connect: [{ id: me }] } });
  await save('task', { title: 'Tomorrow', due_at: at(24) });
  await save('task', { title: 'Last week', due_at: at(-170) });
  await save('task', { title: 'Done', due_at: at(1), task_status: 'done' });
  await save('task', { title: 'Binned', due_at: at(1), trashed_at: at(0) });

  await page.goto(listOf('task'));
  await listed(['Last week', 'First minute', 'Last minute', 'Tomorrow']);
  await picture('tasks');
  await view('Due today').click();
  await listed(['First minute', 'Last minute']);
  await view('My tasks').click();
  await listed(['Last minute']);
  await view('Overdue').click();
  await row('Last week').waitFor();
  expect(await row('Tomorrow').count()).toBe(0);
  await view('Bin').click();
  await listed(['Binned']);

  // The Content Manager remembers the times of a day that has passed.
  const old = new Date(midnight - 48 * HOUR).toISOString();
  const conditions = [
    '[trashed_at][$null]=true',
    '[completed_at][$null]=true',
    `[due_at][$gte]=${old}`,
    `[due_at][$lt]=${old}`,
  ].map((one, at) => `filters[$and][${at}]${one}`);
  await page.goto(`${listOf('task')}?${conditions.join('&')}`);
  await listed(['First minute', 'Last minute']);
  await context.close();
  page = before;
});
