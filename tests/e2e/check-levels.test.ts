import fs from 'node:fs';
import type { Browser, Locator, Page } from 'playwright-core';
import { runSql } from '../support/databases';
import { expectText, launchBrowser, PLUGIN, signIn } from './support/browser';
import { type Playground, startPlayground } from './support/playground';

let site: Playground;
let browser: Browser;
let page: Page;

const main = (): Locator => page.getByRole('main');
const differences = (): Locator => page.getByRole('grid', { name: 'Differences' });

const quantityOf = async (sku: string): Promise<number> =>
  (await site.admin('GET', `/switchboard/levels?sku=${sku}`)).body.data[0].quantity;

beforeAll(async () => {
  site = await startPlayground();
  browser = await launchBrowser();
  page = await signIn(browser, site, site.login);
  for (const sku of ['WRONG-A', 'WRONG-B']) {
    await site.admin('POST', '/switchboard/items', { sku, opening: [{ quantity: 8 }] });
  }
  await runSql(
    'sqlite',
    site.databaseFile,
    "UPDATE switchboard_levels SET quantity = -2 WHERE item_id IN (SELECT id FROM switchboard_items WHERE sku LIKE 'WRONG-%')"
  );
}, 900_000);

afterAll(async () => {
  await browser?.close();
  await site?.stop();
});

describe('a check of all levels', () => {
  test('begins at the stock, says how it gets on, and lists what differs', async () => {
    await page.goto(`${PLUGIN}/stock`);
    await page.getByRole('link', { name: 'Check all levels' }).click();
    await page.waitForURL(/\/stock\/check$/);
    // Halfway at first, then as the site says.
    let looks = 0;
    await page.route('**/switchboard/imports/*', async (route) => {
      const answer = await route.fetch();
      const body = await answer.json();
      looks += 1;
      if (looks > 2) return route.fulfill({ response: answer });
      return route.fulfill({ json: { data: { ...body.data, state: 'running', total: 1 } } });
    });
    await main().getByRole('button', { name: 'Check', exact: true }).click();
    await main().getByRole('progressbar', { name: 'Rows so far' }).waitFor();
    await expectText(main(), 'Running … 1 level looked at');
    await expectText(main(), /Done\. \d+ levels looked at: 2 differ from their movements/);
    await page.unroute('**/switchboard/imports/*');
    await expectText(
      differences(),
      /Is[\s\S]*Should be[\s\S]*WRONG-A[\s\S]*-2[\s\S]*8[\s\S]*WRONG-B/
    );
    expect(await quantityOf('WRONG-A')).toBe(-2);
  });

  test('hands the differences over as a file', async () => {
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      main().getByRole('button', { name: 'Differences as CSV' }).click(),
    ]);
    expect(file.suggestedFilename()).toMatch(/^levels-\d+\.csv$/);
    const [header, first] = fs.readFileSync(await file.path(), 'utf8').split('\r\n');
    expect(header).toBe('\uFEFFSKU,Code,Is,Should be');
    expect(first).toMatch(/^WRONG-A,[^,]+,-2,8$/);
  });

  test('mends them once somebody says so, and finds none then', async () => {
    await main().getByRole('button', { name: 'Mend 2 levels' }).click();
    await expectText(main(), /levels looked at: 2 are mended/);
    await expectText(differences(), /Was[\s\S]*WRONG-A/);
    expect(await quantityOf('WRONG-A')).toBe(8);
    expect(await quantityOf('WRONG-B')).toBe(8);
    await main().getByRole('button', { name: 'Check', exact: true }).click();
    await expectText(main(), /none differs from its movements/);
    expect(await main().getByRole('button', { name: /^Mend/ }).count()).toBe(0);
  });
});
