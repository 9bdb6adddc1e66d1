import fs from 'node:fs';
import type { Browser, Locator, Page } from 'playwright-core';
import type { Level, StockGridRow } from '../../shared/contracts/stock';
import { runSql } from '../support/databases';
import { waitFor } from '../support/wait';
import {
  atRest,
  expectFocus,
  expectText,
  launchBrowser,
  moveTo,
  PLUGIN,
  signIn,
} from './support/browser';
import { type Playground, startPlayground } from './support/playground';
import { saleOf, sendRecord, type TillKeys } from './support/till';

let site: Playground;
let browser: Browser;
let page: Page;
let till: TillKeys;
const ids = { east: 0, west: 0 };

const create = async (route: string, body: unknown) =>
  (await site.admin('POST', `/switchboard${route}`, body)).body.data;

const levelsOf = async (sku: string): Promise<Level[]> =>
  (await site.admin('GET', `/switchboard/levels?sku=${sku}`)).body.data;

/** What an item's locations hold, by their codes. */
const shelvesOf = async (sku: string): Promise<Record<string, number>> =>
  Object.fromEntries(
    (await levelsOf(sku)).map(({ location, quantity }) => [location.code, quantity])
  );

const levelAt = async (sku: string, code: string): Promise<Level> => {
  const level = (await levelsOf(sku)).find(({ location }) => location.code === code);
  if (!level) throw new Error(`${sku} has no level at ${code}`);
  return level;
};

const main = (): Locator => page.getByRole('main');

/** Types into the search for an item, and takes the one that is found. */
const chooseItem = async (within: Locator, label: string, search: string): Promise<void> => {
  const box = within.getByRole('combobox', { name: label });
  await box.click();
  await box.pressSequentially(search);
  await page.getByRole('option', { name: new RegExp(`^${search}`) }).click();
};

const chooseLocation = async (label: string, name: string): Promise<void> => {
  await main().getByRole('combobox', { name: label }).click();
  await page.getByRole('option', { name, exact: true }).click();
};

beforeAll(async () => {
  site = await startPlayground();
  browser = await launchBrowser();
  page = await signIn(browser, site, site.login);
  ids.east = (await create('/locations', { name: 'East', code: 'east' })).id;
  ids.west = (await create('/locations', { name: 'West', code: 'west' })).id;
  till = await create('/connections', {
    name: 'Till of the day',
    scopes: ['sale:write', 'inventory:write'],
    mode: 'live',
    locations: [{ ref: 'E', location: ids.east }],
  });
}, 900_000);

afterAll(async () => {
  await browser?.close();
  await site?.stop();
});

const sellAtEast = async (id: string, sku: string, quantity: number): Promise<void> => {
  const sale = { ...saleOf(id, sku, quantity), location_ref: 'E' };
  expect(await sendRecord(site.url, till, 'sale', sale)).toBe(202);
};

describe('the inbox of unmapped products', () => {
  const row = () => page.getByRole('row', { name: /SCARF-GREY/ });
  const inbox = () => page.getByRole('grid', { name: 'Unmapped products' });

  beforeAll(async () => {
    await create('/items', {
      sku: 'SCARF-RED',
      name: 'Scarf',
      opening: [{ location: ids.east, quantity: 10 }],
    });
    await sellAtEast('SCARF-1', 'SCARF-GREY', 1);
    await sellAtEast('SCARF-2', 'SCARF-GREY', 2);
  }, 120_000);

  test('is where the overview leads, and has one row for a value', async () => {
    await waitFor(async () => {
      const answer = await site.admin('GET', '/switchboard/mapping-inbox?search=SCARF-GREY');
      return answer.body.data[0]?.records === 2;
    });
    await page.goto(`${PLUGIN}/overview`);
    await main().getByRole('link', { name: 'Map', exact: true }).click();
    await page.waitForURL(/\/unmapped$/);
    await expectText(row(), '2 sales, 3 units');
    expect(await row().count()).toBe(1);
  });

  test('chooses nothing beforehand, and shows what follows before it is applied', async () => {
    await page.getByRole('button', { name: 'Map SCARF-GREY' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.waitFor();
    expect(await dialog.getByRole('radio', { checked: true }).count()).toBe(0);
    const preview = dialog.getByRole('button', { name: 'Preview' });
    expect(await preview.isDisabled()).toBe(true);
    await dialog.getByRole('radio', { name: 'Existing product' }).click();
    expect(await preview.isDisabled()).toBe(true);
    await chooseItem(dialog, 'Product', 'SCARF-RED');
    await preview.click();
    await expectText(dialog, '2 records will be applied, 3 units');
    expect(await shelvesOf('SCARF-RED')).toEqual({ east: 10 });
    await dialog.getByRole('button', { name: 'Apply' }).click();
    await expectText(main(), 'SCARF-GREY mapped. 2 records are applied');
    await waitFor(async () => (await shelvesOf('SCARF-RED')).east === 7);
    await waitFor(async () => (await inbox().getByText('SCARF-GREY').count()) === 0);
  });

  test('is taken back, and the records wait again', async () => {
    await main().getByRole('button', { name: 'Undo', exact: true }).click();
    await expectText(main(), 'Mapping of SCARF-GREY undone');
    await waitFor(async () => (await shelvesOf('SCARF-RED')).east === 10);
    await expectText(inbox(), /SCARF-GREY[\s\S]*2 sales, 3 units/);
  });

  test('ignores a value, which is told among what was mapped', async () => {
    await page.getByRole('button', { name: 'Map SCARF-GREY' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('radio', { name: /^Ignore/ }).click();
    await dialog.getByRole('button', { name: 'Preview' }).click();
    await dialog.getByRole('button', { name: 'Apply' }).click();
    const mapped = page.getByRole('grid', { name: 'Mapped' });
    await expectText(mapped, /SCARF-GREY[\s\S]*Ignored/);
    await waitFor(async () => {
      const events = await site.admin('GET', '/switchboard/pos-events?external_id=SCARF-2');
      return events.body.data[0]?.state === 'applied';
    });
    expect(await shelvesOf('SCARF-RED')).toEqual({ east: 10 });
  });
});

describe('a level', () => {
  beforeAll(async () => {
    const { id } = await create('/items', {
      sku: 'MUG-SUM',
      opening: [{ location: ids.east, quantity: 40 }],
    });
    await sellAtEast('MUG-1', 'MUG-SUM', 3);
    await waitFor(async () => (await shelvesOf('MUG-SUM')).east === 37);
    const change = (quantity: number, reason: string) =>
      create(`/items/${id}/adjust`, { location: ids.east, quantity, reason });
    await change(14, 'delivered');
    await change(-2, 'broken');
  }, 120_000);

  const movements = () => page.getByRole('grid', { name: 'Stock movements' });

  test('is explained as a sum, each term of which shows its movements', async () => {
    const { id } = await levelAt('MUG-SUM', 'east');
    await moveTo(page, `${PLUGIN}/stock/levels/${id}`);
    const sum = page.getByRole('group', { name: 'Explain this number' });
    await expectText(
      sum,
      /40 opening stock\s*−\s*3 sold\s*−\s*2 broken\s*\+\s*14 delivered\s*=\s*49/
    );
    await expectText(movements(), /broken[\s\S]*delivered[\s\S]*Sale/);

    const sold = sum.getByRole('button', { name: '3 sold' });
    await sold.click();
    await expectText(main(), '1 movement of this part');
    await waitFor(async () => (await movements().getByText('delivered').count()) === 0);
    await expectText(movements(), /Sale[\s\S]*Till/);
    expect(await sold.getAttribute('aria-pressed')).toBe('true');

    await sum.getByRole('button', { name: '2 broken' }).click();
    // Who did it, beside when and why.
    await expectText(movements(), /Adjustment[\s\S]*broken[\s\S]*Playground Owner/);
    await main().getByRole('button', { name: 'Show all movements' }).click();
    await expectText(movements(), 'delivered');
  });

  test('is drawn over time, and has the same numbers as a table', async () => {
    await main()
      .getByRole('img', { name: /40 at first, 49 now/ })
      .waitFor();
    await main().getByRole('button', { name: 'Show as table' }).click();
    const table = page.getByRole('grid', { name: 'Stock level over time' });
    await expectText(table, /49[\s\S]*51[\s\S]*37[\s\S]*40/);
  });

  test('is set to what was counted, and the change is shown before', async () => {
    await main().getByRole('button', { name: 'Adjust' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('radio', { name: 'Set to a counted number' }).click();
    await dialog.getByRole('textbox', { name: /^Counted/ }).fill('7');
    await expectText(dialog.getByRole('status'), '49 → 7');
    expect(await shelvesOf('MUG-SUM')).toEqual({ east: 49 });
    await dialog.getByRole('button', { name: 'Save' }).click();
    await expectText(main(), /7 counted\s*=\s*7/);
  });

  test('has its own low-stock limit', async () => {
    await main().getByRole('button', { name: 'Low-stock limit' }).click();
    await page.getByRole('dialog').getByLabel('Low-stock limit').fill('9');
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
    await page.getByText('Low-stock limit saved').waitFor();
    expect((await levelAt('MUG-SUM', 'east')).low_at).toBe(9);
  });
});

describe('the grid', () => {
  const rows = () => page.getByRole('grid', { name: 'Stock levels' }).locator('tbody tr');

  beforeAll(async () => {
    for (const [sku, quantity] of Object.entries({ 'SORT-B': 5, 'SORT-A': -4, 'SORT-C': 90 })) {
      const opening = [{ location: ids.east, quantity }];
      await create('/items', { sku, name: `Thing ${sku}`, opening });
    }
  });

  test('sorts, and marks what is low or below zero', async () => {
    await moveTo(page, `${PLUGIN}/stock?_q=SORT-`);
    await waitFor(async () => (await rows().count()) === 3);
    await page.getByRole('button', { name: 'Sort by Total' }).click();
    await expectText(rows().nth(0), /SORT-A[\s\S]*Below zero/);
    await expectText(rows().nth(2), 'SORT-C');
    await page.getByRole('button', { name: 'Sort by Total' }).click();
    await expectText(rows().nth(0), 'SORT-C');
    await page.getByRole('combobox', { name: 'All products' }).click();
    await page.getByRole('option', { name: 'Below zero at a location' }).click();
    await waitFor(async () => (await rows().count()) === 1);
  });

  test('leads to the item, which is edited and changed there', async () => {
    await page.getByRole('link', { name: 'SORT-A', exact: true }).click();
    await page.waitForURL(/stock\/items\/\d+$/);
    await main().getByLabel('Name', { exact: false }).fill('Another name');
    await main().getByRole('textbox', { name: 'Low-stock limit' }).fill('3');
    await main().getByRole('button', { name: 'Save' }).click();
    await page.getByText('Product saved').waitFor();
    const [saved] = (await site.admin('GET', '/switchboard/stock-grid?search=SORT-A')).body
      .data as StockGridRow[];
    expect(saved).toMatchObject({ name: 'Another name', low_at: 3 });
    await main().getByRole('button', { name: 'Adjust SORT-A at East' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox', { name: /^Change/ }).fill('6');
    await dialog.getByLabel('Reason', { exact: false }).fill('found');
    await expectText(dialog.getByRole('status'), '-4 → 2');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await expectText(page.getByRole('grid', { name: 'Stock levels' }), /East[\s\S]*2[\s\S]*Low/);
  });
});

test('many items are counted, previewed and applied as one count', async () => {
  await create('/items', { sku: 'COUNT-A', opening: [{ location: ids.west, quantity: 12 }] });
  await create('/items', { sku: 'COUNT-B', opening: [{ location: ids.west, quantity: 5 }] });
  await create('/items', { sku: 'COUNT-C', opening: [{ location: ids.west, quantity: 8 }] });
  await moveTo(page, `${PLUGIN}/stock/count`);
  await chooseLocation('Location', 'West');
  await expectText(main(), 'Counted at');
  await main().getByRole('button', { name: 'Add all products of this location' }).click();
  await main().getByLabel('Counted: COUNT-A').fill('9');
  await main().getByLabel('Counted: COUNT-B').fill('many');
  await main().getByRole('button', { name: 'Preview' }).click();
  await expectText(main(), 'Enter a whole number of 0 or more.');
  await main().getByLabel('Counted: COUNT-B').fill('6');
  await main().getByRole('button', { name: 'Preview' }).click();
  const preview = page.getByRole('grid', { name: 'Preview' });
  await expectText(preview, /COUNT-A[\s\S]*12 → 9[\s\S]*-3[\s\S]*COUNT-B[\s\S]*5 → 6[\s\S]*\+1/);
  expect(await shelvesOf('COUNT-A')).toEqual({ west: 12 });
  await main().getByRole('button', { name: 'Apply count' }).click();
  await expectText(main(), /Count \d+ of West applied/);
  expect(await shelvesOf('COUNT-A')).toEqual({ west: 9 });
  expect(await shelvesOf('COUNT-B')).toEqual({ west: 6 });
  // What was left empty was not counted.
  expect(await shelvesOf('COUNT-C')).toEqual({ west: 8 });
  const counts = (await site.admin('GET', '/switchboard/stocktakes')).body.data;
  expect(counts[0].counts).toHaveLength(2);
});

test('stock is moved between locations, and what is wrong stands at its field', async () => {
  await create('/items', { sku: 'MOVE-A', opening: [{ location: ids.east, quantity: 10 }] });
  await moveTo(page, `${PLUGIN}/stock/transfers`);
  await chooseLocation('From', 'East');
  await chooseLocation('To', 'East');
  const quantity = main().getByLabel('Quantity: MOVE-A');
  // The second time it is there already, and the search is empty again.
  for (let time = 0; time < 2; time += 1) {
    await chooseItem(main(), 'Add product', 'MOVE-A');
    await expectFocus(quantity);
    expect(await main().getByRole('combobox', { name: 'Add product' }).inputValue()).toBe('');
  }
  await quantity.fill('0');
  await main().getByRole('button', { name: 'Transfer', exact: true }).click();
  await expectText(main(), 'Choose two different locations.');
  await expectText(main(), 'Enter a whole number of 1 or more.');
  await chooseLocation('To', 'West');
  await main().getByLabel('Quantity: MOVE-A').fill('4');
  await main().getByRole('button', { name: 'Transfer', exact: true }).click();
  await expectText(
    page.getByRole('grid', { name: 'Past transfers' }),
    /East[\s\S]*West[\s\S]*4 × MOVE-A/
  );
  expect(await shelvesOf('MOVE-A')).toEqual({ east: 6, west: 4 });
});

describe('the import', () => {
  const chooseFile = (name: string, text: string, encoding: BufferEncoding = 'utf8') =>
    page
      .locator('input[type=file]')
      .setInputFiles({ name, mimeType: 'text/csv', buffer: Buffer.from(text, encoding) });

  test('matches the columns of a file, tries it, imports it, and hands back what it refused', async () => {
    await moveTo(page, `${PLUGIN}/import`);
    await page.getByRole('radio', { name: 'Products' }).click();
    await chooseFile(
      'shelf.csv',
      'Article;Barcode;Colour;Quantity\nFILE-1;4012345678901;red;5\n\nFILE-2;;"blue\ngreen";x\nFILE-3;;;7\n'
    );
    const columns = page.getByRole('grid', { name: 'Columns' });
    await expectText(columns, /Article[\s\S]*FILE-1[\s\S]*Colour[\s\S]*Do not import/);
    await expectText(main(), 'Choose a column for SKU (sku).');
    const dryRun = main().getByRole('button', { name: 'Start dry run' });
    expect(await dryRun.isDisabled()).toBe(true);
    await columns.getByRole('combobox', { name: 'Field for column Article' }).click();
    await page.getByRole('option', { name: 'SKU (sku)' }).click();
    const start = main().getByRole('button', { name: 'Import', exact: true });
    expect(await start.isDisabled()).toBe(true);

    await dryRun.click();
    await expectText(main(), '3 rows: 2 to create, 0 to update, 0 unchanged, 1 with problems');
    // The line of the file as it was.
    await expectText(page.getByRole('grid', { name: 'Problems' }), /4[\s\S]*quantity/);
    expect(await levelsOf('FILE-1')).toEqual([]);

    await start.click();
    await expectText(main(), '3 rows: 2 created, 0 updated, 0 unchanged, 1 rejected');
    expect((await levelsOf('FILE-1')).map(({ quantity, gtin }) => [quantity, gtin])).toEqual([
      [5, '4012345678901'],
    ]);
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      main().getByRole('button', { name: 'Download rejected rows (CSV)' }).click(),
    ]);
    expect(file.suggestedFilename()).toMatch(/^import-\d+-rejects\.csv$/);
    expect(fs.readFileSync(await file.path(), 'utf8')).toMatch(/^line,error,[\s\S]*FILE-2/);
  });

  test('says what is wrong with a file: not UTF-8, more columns than can be imported, no rows', async () => {
    await moveTo(page, `${PLUGIN}/import`);
    await page.getByRole('radio', { name: 'Products' }).click();
    await chooseFile('old.csv', 'sku,name\nOLD,Café\n', 'latin1');
    await main().getByRole('button', { name: 'Start dry run' }).click();
    await page.getByText('The file is not UTF-8.').first().waitFor();
    await chooseFile('data.csv', `{${'"sku":1,'.repeat(20_000)}`);
    await page.getByText('The file has 20,001 columns').first().waitFor();
    expect(await page.getByRole('grid', { name: 'Columns' }).count()).toBe(0);
    await chooseFile('empty.csv', 'sku,name\n');
    await main().getByRole('button', { name: 'Start dry run' }).click();
    await expectText(main(), '0 rows: 0 to create');
    // A dry run that found rows would have enabled it by then.
    await atRest(page);
    const start = main().getByRole('button', { name: 'Import', exact: true });
    expect(await start.isDisabled()).toBe(true);
  });

  test('creates contacts, too', async () => {
    await page.getByRole('radio', { name: 'Contacts' }).click();
    await chooseFile('people.csv', 'E-mail,First name,Size\nfile@example.test,Fay,XL\n');
    await main().getByRole('button', { name: 'Start dry run' }).click();
    await expectText(main(), '1 row: 1 to create');
    await main().getByRole('button', { name: 'Import', exact: true }).click();
    await expectText(main(), '1 row: 1 created');
  });

  test('shows how far it has come each second, also after a reload, and that it has ended', async () => {
    const rows = Array.from({ length: 20_000 }, (_none, at) => `long${at}@example.test,Lou ${at}`);
    await chooseFile('long.csv', `email,first_name\n${rows.join('\n')}\n`);
    await main().getByRole('button', { name: 'Start dry run' }).click();
    await expectText(main(), '20,000 rows: 20,000 to create');
    await main().getByRole('button', { name: 'Import', exact: true }).click();
    const bar = main().getByRole('progressbar', { name: 'Rows processed' });
    const done = async (): Promise<number> => {
      const text = await main()
        .getByText(/^[\d,]+ of 20,000 rows$/)
        .textContent();
      return Number(text?.replaceAll(',', '').split(' ')[0]);
    };
    await bar.waitFor();
    const first = await done();
    await waitFor(async () => (await done()) > first, 5_000, 'the progress to move');
    await page.reload();
    await bar.waitFor();
    const later = await done();
    expect(later).toBeGreaterThan(first);
    await waitFor(async () => (await done()) > later, 5_000, 'the progress to move again');
    await expectText(main(), 'Done. 20,000 rows: 20,000 created');
    expect(await bar.count()).toBe(0);
  });
});

describe('a check of all levels', () => {
  const differences = (): Locator => page.getByRole('grid', { name: 'Differences' });
  const quantityOf = async (sku: string) => (await levelsOf(sku))[0]?.quantity;

  beforeAll(async () => {
    for (const sku of ['WRONG-A', 'WRONG-B']) {
      await create('/items', { sku, opening: [{ quantity: 8 }] });
    }
    await runSql(
      'sqlite',
      site.databaseFile,
      "UPDATE switchboard_levels SET quantity = -2 WHERE item_id IN (SELECT id FROM switchboard_items WHERE sku LIKE 'WRONG-%')"
    );
  });

  test('begins at the stock, says how it gets on, and lists what differs', async () => {
    await moveTo(page, `${PLUGIN}/stock`);
    await page.getByRole('link', { name: 'Check stock levels' }).click();
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
    await main().getByRole('button', { name: 'Start check', exact: true }).click();
    await main().getByRole('progressbar', { name: 'Rows processed' }).waitFor();
    await expectText(main(), 'Running … 1 level checked');
    await expectText(main(), /Done\. \d+ levels checked: 2 differences/);
    await page.unroute('**/switchboard/imports/*');
    await expectText(
      differences(),
      /Current[\s\S]*Correct[\s\S]*WRONG-A[\s\S]*-2[\s\S]*8[\s\S]*WRONG-B/
    );
    expect(await quantityOf('WRONG-A')).toBe(-2);
  });

  test('hands the differences over as a file', async () => {
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      main().getByRole('button', { name: 'Download differences (CSV)' }).click(),
    ]);
    expect(file.suggestedFilename()).toMatch(/^levels-\d+\.csv$/);
    const [header, first] = fs.readFileSync(await file.path(), 'utf8').split('\r\n');
    expect(header).toBe('\uFEFFSKU,Code,Current,Correct');
    expect(first).toMatch(/^WRONG-A,[^,]+,-2,8$/);
  });

  test('fixes them on request, and finds none then', async () => {
    await main().getByRole('button', { name: 'Fix 2 levels' }).click();
    await expectText(main(), /levels checked: 2 fixed/);
    await expectText(differences(), /Before[\s\S]*WRONG-A/);
    expect(await quantityOf('WRONG-A')).toBe(8);
    expect(await quantityOf('WRONG-B')).toBe(8);
    await main().getByRole('button', { name: 'Start check', exact: true }).click();
    await expectText(main(), /no differences/);
    expect(await main().getByRole('button', { name: /^Fix/ }).count()).toBe(0);
  });
});
