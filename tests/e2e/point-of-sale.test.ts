import type { Browser, Page } from 'playwright-core';
import { expectText, launchBrowser, moveTo, PLUGIN, signIn } from './support/browser';
import { type Playground, startPlayground } from './support/playground';
import { saleOf, sendRecord } from './support/till';

let site: Playground;
let browser: Browser;
let page: Page;
const till = { key: '', secret: '' };

beforeAll(async () => {
  site = await startPlayground();
  browser = await launchBrowser();
  page = await signIn(browser, site, site.login);
  await site.admin('POST', '/switchboard/items', {
    sku: 'CUP-9',
    name: 'Cup',
    opening: [{ quantity: 20 }],
  });
}, 900_000);

afterAll(async () => {
  await browser?.close();
  await site?.stop();
});

const record = (kind: string, body: Record<string, unknown>) =>
  sendRecord(site.url, till, kind, body);

const sale = (id: string, sku: string, quantity: number) =>
  record('sale', saleOf(id, sku, quantity));

test('key and secret are shown once, and are not lost to Escape or a click beside them', async () => {
  await page.goto(`${PLUGIN}/tills/create`);
  await page.getByLabel('Name', { exact: false }).first().fill('Front counter');
  await page.getByRole('radio', { name: /Live/ }).click();
  await page.getByRole('button', { name: 'Create and show credentials' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.waitFor();
  await page.keyboard.press('Escape');
  await page.mouse.click(5, 5);
  till.key = await dialog.getByLabel('Key', { exact: true }).inputValue();
  till.secret = await dialog.getByLabel('Secret', { exact: true }).inputValue();
  expect(till.key).toMatch(/^pos_live_/);
  await expectText(dialog, 'curl');
  expect(await dialog.getByRole('button', { name: 'Done' }).isDisabled()).toBe(true);

  await dialog.getByRole('checkbox').click();
  await dialog.getByRole('button', { name: 'Done' }).click();
  await page.waitForURL(/tills\/\d+$/);
  await page.reload();
  await expectText(page.getByRole('main'), till.key);
  expect(await page.content()).not.toContain(till.secret);
});

test('a sale of the till changes the number on the screen, and its explanation shows the sale', async () => {
  await moveTo(page, `${PLUGIN}/stock`);
  const cell = page.getByRole('link', { name: /^CUP-9 at .*Explain/ });
  await expectText(cell, '20');
  expect(await sale('S-1', 'CUP-9', 3)).toBe(202);
  await expectText(cell, '17');
  await cell.click();
  await expectText(page.getByRole('main'), /20 opening stock\s*−\s*3 sold\s*=\s*17/);
  await expectText(page.getByRole('grid'), /Sale[\s\S]*-3[\s\S]*17/);
});

test('an adjustment with its reason stands in the ledger', async () => {
  await page.getByRole('button', { name: 'Adjust' }).click();
  await page.getByRole('textbox', { name: /^Change/ }).fill('-2');
  await expectText(page.getByRole('dialog').getByRole('status'), '17 → 15');
  await page.getByLabel('Reason', { exact: false }).fill('breakage');
  await page.getByRole('button', { name: 'Save' }).click();
  await expectText(page.getByRole('grid'), /Adjustment[\s\S]*breakage/);
  await expectText(page.getByRole('main'), /−\s*2 breakage\s*=\s*15/);
});

test('an unknown SKU is mapped in place, and its stock follows', async () => {
  expect(await sale('S-2', 'NEW-1', 2)).toBe(202);
  await moveTo(page, `${PLUGIN}/records`);
  await expectText(page.getByRole('grid'), /S-2[\s\S]*Unmapped/);
  await page.getByRole('link', { name: 'S-2' }).click();
  await expectText(page.getByRole('main'), 'No product has the SKU NEW-1.');
  await page.getByLabel('Product name').fill('New thing');
  await page.getByRole('button', { name: 'Create product' }).click();
  await expectText(page.getByRole('main'), 'Applied');
  await expectText(page.getByRole('grid', { name: 'Stock movements' }), /NEW-1[\s\S]*-2/);
});

/** Opens a refund of a sale that never came, once it is held. */
const openHeld = async (id: string, more: Record<string, unknown>): Promise<void> => {
  await record('refund', { external_id: id, sale_external_id: 'S-later', ...more });
  await moveTo(page, `${PLUGIN}/records`);
  await expectText(page.getByRole('grid'), new RegExp(`${id}[\\s\\S]*On hold`));
  await page.getByRole('link', { name: id }).click();
};

test('a refund that comes before its sale is seen as on hold, with the time that remains', async () => {
  await openHeld('R-1', { line_items: [{ sku: 'CUP-9', quantity: 1 }] });
  await expectText(page.getByRole('main'), /On hold for its sale until: in 2\d hours/);
});

test('a refund without lines stays on hold, and says so', async () => {
  await openHeld('R-2', {});
  await expectText(
    page.getByRole('main'),
    'This refund is on hold until its sale arrives, because it has no lines.'
  );
  expect(await page.getByText('On hold for its sale until').count()).toBe(0);
});
