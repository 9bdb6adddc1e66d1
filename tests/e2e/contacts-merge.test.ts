import fs from 'node:fs';
import path from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { waitFor } from '../support/wait';
import { atRest, expectText, launchBrowser, signIn, switchTo } from './support/browser';
import { type Playground, startPlayground } from './support/playground';

const CONTACTS = '/content-manager/collection-types/plugin::switchboard.contact';

let site: Playground;
let browser: Browser;
let page: Page;

beforeAll(async () => {
  site = await startPlayground();
  browser = await launchBrowser();
  page = await signIn(browser, site, site.login);
}, 900_000);

afterAll(async () => {
  await browser?.close();
  await site?.stop();
});

const create = async (type: string, body: object): Promise<string> => {
  const route = `/content-manager/collection-types/plugin::switchboard.${type}`;
  const answer = await site.admin('POST', route, body);
  expect(answer.status).toBe(201);
  return answer.body.data.documentId;
};

const openList = (search: string) =>
  page.goto(`${site.url}/admin${CONTACTS}?page=1&pageSize=20&_q=${encodeURIComponent(search)}`);

/** The text of the file that a click downloads. */
const downloaded = async (click: () => Promise<void>): Promise<string> => {
  const [file] = await Promise.all([page.waitForEvent('download'), click()]);
  expect(file.suggestedFilename()).toMatch(/^Contacts \d{4}-\d\d-\d\d\.csv$/);
  return fs.readFileSync(await file.path(), 'utf8');
};

/**
 * Selects a row, until the buttons for selected rows are there: the host draws them when the browser is idle,
 * which one without a screen says late unless its pointer moves.
 */
const choose = async (name: string): Promise<void> => {
  await page.getByRole('row').filter({ hasText: name }).getByRole('checkbox').check();
  await waitFor(async () => {
    for (const x of [1, 2]) await page.mouse.move(x, x);
    return (await page.getByRole('button', { name: 'Delete' }).count()) > 0;
  });
};

/** Pictures of the dialog, if `PICTURES` names a folder. */
const picture = async (name: string): Promise<void> => {
  const folder = process.env.PICTURES;
  if (!folder) return;
  await atRest(page);
  await page.screenshot({ path: path.join(folder, `${name}.png`) });
};

test('exports what the list shows, and the chosen ones', async () => {
  await create('contact', { email: 'ada@export.test', first_name: '=1+1' });
  await create('contact', { email: 'bea@export.test', first_name: 'Bea' });
  await create('contact', { email: 'cyd@elsewhere.test' });
  await openList('export.test');
  await page.getByText('bea@export.test').first().waitFor();
  await picture('list');
  const all = await downloaded(() => page.getByRole('button', { name: 'Export' }).click());
  expect(all.trim().split('\r\n')).toHaveLength(3);
  expect(all).toContain("ada@export.test,'=1+1,");
  await choose('bea@export.test');
  await picture('chosen');
  // The list's own button is above the one of the chosen rows.
  const chosen = await downloaded(() =>
    page.getByRole('button', { name: 'Export' }).nth(1).click()
  );
  expect(chosen.trim().split('\r\n')).toHaveLength(2);
  expect(chosen).toContain('bea@export.test,Bea,');
});

test('shows all of long values, and offers no merge with one that is gone', async () => {
  const long = 'W'.repeat(180);
  await create('contact', { email: 'short@long.test', phone: '1'.repeat(40) });
  const gone = await create('contact', { email: 'long@long.test', last_name: long });
  await openList('long.test');
  await choose('short@long.test');
  await choose('long@long.test');
  await page.getByRole('button', { name: 'Merge' }).click();
  const dialog = page.getByRole('dialog');
  const table = dialog.getByRole('grid');
  await table.waitFor();
  await picture('long');
  for (const width of [1440, 390]) {
    await page.setViewportSize({ width, height: 900 });
    await atRest(page);
    await picture(`long-${width}`);
    const box = await dialog.boundingBox();
    const texts = await dialog.getByText(long.slice(0, 100)).all();
    // The choice, the sentence, the value and the result.
    expect(texts.length).toBeGreaterThanOrEqual(4);
    for (const text of texts) {
      const of = await text.evaluate((one) => {
        const range = document.createRange();
        range.selectNodeContents(one);
        return range.getBoundingClientRect().right;
      });
      expect(of).toBeLessThanOrEqual((box?.x ?? 0) + (box?.width ?? 0));
    }
  }
  await page.setViewportSize({ width: 1440, height: 900 });
  const route = `/content-manager/collection-types/plugin::switchboard.contact/${gone}`;
  expect((await site.admin('DELETE', route)).status).toBe(200);
  // The dialog may have read it again meanwhile: then the button is disabled, or is being drawn anew.
  await dialog.getByRole('button', { name: 'Merge' }).dispatchEvent('click');
  await expectText(dialog, 'Not found');
  expect(await dialog.getByRole('button', { name: 'Merge' }).isDisabled()).toBe(true);
  await page.keyboard.press('Escape');
});

test('merges two chosen contacts into the one that is kept', async () => {
  const kept = await create('contact', { email: 'kim@merge.test', first_name: 'Kim', score: 3 });
  const other = await create('contact', { email: 'kimi@merge.test', phone: '+44 20 77', score: 9 });
  const deal = await create('deal', {
    title: 'Hot deal',
    contact: { connect: [{ documentId: other }] },
  });
  await openList('merge.test');
  await choose('kim@merge.test');
  const button = page.getByRole('button', { name: 'Merge' });
  expect(await button.isDisabled()).toBe(true);
  await choose('kimi@merge.test');
  await button.click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('radio', { name: 'Kim, kim@merge.test' }).click();
  const cells = (label: string) =>
    dialog.getByRole('row').filter({ hasText: label }).getByRole('gridcell');
  await expectText(dialog, 'kimi@merge.test will be deleted');
  expect(await cells('Phone').allInnerTexts()).toEqual(['Phone', '–', '+44 20 77', '+44 20 77']);
  expect(await cells('Score').allInnerTexts()).toEqual(['Score', '3', '9', '3']);
  await expectText(cells('Deals').last(), 'Hot deal');
  await picture('merge-1440');
  await page.setViewportSize({ width: 390, height: 844 });
  await picture('merge-390');
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.emulateMedia({ colorScheme: 'dark' });
  await picture('merge-dark');
  await page.emulateMedia({ colorScheme: 'light' });
  await dialog.getByRole('button', { name: 'Merge' }).click();
  await page.getByText('The contacts were merged.').first().waitFor();
  await page.getByText('kimi@merge.test').first().waitFor({ state: 'detached' });
  const merged = (await site.admin('GET', `${CONTACTS}/${kept}`)).body.data;
  expect(merged).toMatchObject({ email: 'kim@merge.test', phone: '+44 20 77', score: 3 });
  const route = `/content-manager/relations/plugin::switchboard.deal/${deal}/contact`;
  expect((await site.admin('GET', route)).body.results[0].documentId).toBe(kept);
  expect((await site.admin('GET', `${CONTACTS}/${other}`)).status).toBe(404);
});

test('offers nothing that the user may not do, and nothing in other lists', async () => {
  await create('tag', { name: 'Some', slug: 'some' });
  await page.goto(`${site.url}/admin/content-manager/collection-types/plugin::switchboard.tag`);
  await choose('Some');
  for (const name of ['Export', 'Merge']) {
    expect(await page.getByRole('button', { name }).count()).toBe(0);
  }

  await create('contact', { email: 'one@reader.test', phone: '+44 20 1' });
  await create('contact', { email: 'two@reader.test' });
  const role = await site.admin('POST', '/admin/roles', { name: 'Reader', description: '' });
  const of = (action: string) => ({
    action: `plugin::content-manager.explorer.${action}`,
    subject: 'plugin::switchboard.contact',
    properties: action === 'delete' ? {} : { fields: ['email'] },
    conditions: [],
  });
  await site.admin('PUT', `/admin/roles/${role.body.data.id}/permissions`, {
    permissions: [of('read'), of('delete')],
  });
  await switchTo(page, await site.createUser('Reader'));
  await openList('reader.test');
  await choose('one@reader.test');
  await choose('two@reader.test');
  expect(await page.getByRole('button', { name: 'Merge' }).count()).toBe(0);
  const file = await downloaded(() => page.getByRole('button', { name: 'Export' }).first().click());
  expect(file).toContain('one@reader.test,');
  expect(file).not.toContain('44 20 1');
});
