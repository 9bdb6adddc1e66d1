import fs from 'node:fs';
import type { Browser, Locator, Page } from 'playwright-core';
import type { Level, StockGridRow } from '../../shared/contracts/stock';
import { runSql } from '../support/databases';
import { waitFor } from '../support/wait';
import { expectText, launchBrowser, moveTo, PLUGIN, signIn } from './support/browser';
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

describe('the inbox of unknown values', () => {
  const row = () => page.getByRole('row', { name: /SCARF-GREY/ });
  const inbox = () => page.getByRole('grid', { name: 'Unknown values' });

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
    await page.waitForURL(/\/mapping$/);
    await expectText(row(), '2 sales, 3 pieces');
    expect(await row().count()).toBe(1);
  });

  test('chooses nothing beforehand, and shows what follows before it is applied', async () => {
    await page.getByRole('button', { name: 'Map SCARF-GREY' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.waitFor();
    expect(await dialog.getByRole('radio', { checked: true }).count()).toBe(0);
    const preview = dialog.getByRole('button', { name: 'Preview' });
    expect(await preview.isDisabled()).toBe(true);
    await dialog.getByRole('radio', { name: 'An item that exists' }).click();
    expect(await preview.isDisabled()).toBe(true);
    await chooseItem(dialog, 'Item', 'SCARF-RED');
    await preview.click();
    await expectText(dialog, '2 records follow, 3 pieces');
    expect(await shelvesOf('SCARF-RED')).toEqual({ east: 10 });
    await dialog.getByRole('button', { name: 'Apply' }).click();
    await expectText(main(), 'SCARF-GREY is mapped. 2 records follow');
    await waitFor(async () => (await shelvesOf('SCARF-RED')).east === 7);
    await waitFor(async () => (await inbox().getByText('SCARF-GREY').count()) === 0);
  });

  test('is taken back, and the records wait again', async () => {
    await main().getByRole('button', { name: 'Undo', exact: true }).click();
    await expectText(main(), 'The mapping of SCARF-GREY is taken back');
    await waitFor(async () => (await shelvesOf('SCARF-RED')).east === 10);
    await expectText(inbox(), /SCARF-GREY[\s\S]*2 sales, 3 pieces/);
  });

  test('ignores a value, which is told among what was mapped', async () => {
    await page.getByRole('button', { name: 'Map SCARF-GREY' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('radio', { name: /^Nothing/ }).click();
    await dialog.getByRole('button', { name: 'Preview' }).click();
    await dialog.getByRole('button', { name: 'Apply' }).click();
    const mapped = page.getByRole('grid', { name: 'What was mapped' });
    await expectText(mapped, /SCARF-GREY[\s\S]*it is ignored/);
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
    await expectText(sum, /40 to begin\s*−\s*3 sold\s*−\s*2 broken\s*\+\s*14 delivered\s*=\s*49/);
    await expectText(movements(), /broken[\s\S]*delivered[\s\S]*Sale/);

    const sold = sum.getByRole('button', { name: '3 sold' });
    await sold.click();
    await expectText(main(), '1 movement of this term');
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
    await main().getByRole('button', { name: 'Show as a table' }).click();
    const table = page.getByRole('grid', { name: 'The level over time' });
    await expectText(table, /49[\s\S]*51[\s\S]*37[\s\S]*40/);
  });

  test('is set to what was counted, and the change is shown before', async () => {
    await main().getByRole('button', { name: 'Adjust' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('radio', { name: 'Set to what was counted' }).click();
    await dialog.getByRole('textbox', { name: /^Counted/ }).fill('7');
    await expectText(dialog.getByRole('status'), '49 → 7');
    expect(await shelvesOf('MUG-SUM')).toEqual({ east: 49 });
    await dialog.getByRole('button', { name: 'Save' }).click();
    await expectText(main(), /7 counted\s*=\s*7/);
  });

  test('has a low mark of its own', async () => {
    await main().getByRole('button', { name: 'Low mark' }).click();
    await page.getByRole('dialog').getByLabel('Low at').fill('9');
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
    await page.getByText('The low mark is saved.').waitFor();
    expect((await levelAt('MUG-SUM', 'east')).low_at).toBe(9);
  });
});

describe('the grid', () => {
  const rows = () => page.getByRole('grid', { name: 'Levels' }).locator('tbody tr');

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
    await page.getByRole('combobox', { name: 'Every item' }).click();
    await page.getByRole('option', { name: 'Below zero somewhere' }).click();
    await waitFor(async () => (await rows().count()) === 1);
  });

  test('leads to the item, which is edited and changed there', async () => {
    await page.getByRole('link', { name: 'SORT-A', exact: true }).click();
    await page.waitForURL(/stock\/items\/\d+$/);
    await main().getByLabel('Name', { exact: false }).fill('Another name');
    await main().getByLabel('Low at', { exact: false }).fill('3');
    await main().getByRole('button', { name: 'Save' }).click();
    await page.getByText('The item is saved.').waitFor();
    const [saved] = (await site.admin('GET', '/switchboard/stock-grid?search=SORT-A')).body
      .data as StockGridRow[];
    expect(saved).toMatchObject({ name: 'Another name', low_at: 3 });
    await main().getByRole('button', { name: 'Adjust SORT-A at East' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox', { name: /^Change/ }).fill('6');
    await dialog.getByLabel('Reason', { exact: false }).fill('found');
    await expectText(dialog.getByRole('status'), '-4 → 2');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await expectText(page.getByRole('grid', { name: 'Levels' }), /East[\s\S]*2[\s\S]*Low/);
  });
});

test('many items are counted, previewed and applied as one count', async () => {
  await create('/items', { sku: 'COUNT-A', opening: [{ location: ids.west, quantity: 12 }] });
  await create('/items', { sku: 'COUNT-B', opening: [{ location: ids.west, quantity: 5 }] });
  await create('/items', { sku: 'COUNT-C', opening: [{ location: ids.west, quantity: 8 }] });
  await moveTo(page, `${PLUGIN}/stock/count`);
  await chooseLocation('Location', 'West');
  await expectText(main(), 'Counting began at');
  await main().getByRole('button', { name: 'Add everything that this location has' }).click();
  await main().getByLabel('Counted: COUNT-A').fill('9');
  await main().getByLabel('Counted: COUNT-B').fill('many');
  await main().getByRole('button', { name: 'Preview' }).click();
  await expectText(main(), 'Enter a whole number of 0 or more.');
  await main().getByLabel('Counted: COUNT-B').fill('6');
  await main().getByRole('button', { name: 'Preview' }).click();
  const preview = page.getByRole('grid', { name: 'What changes' });
  await expectText(preview, /COUNT-A[\s\S]*12 → 9[\s\S]*-3[\s\S]*COUNT-B[\s\S]*5 → 6[\s\S]*\+1/);
  expect(await shelvesOf('COUNT-A')).toEqual({ west: 12 });
  await main().getByRole('button', { name: 'Apply the count' }).click();
  await expectText(main(), /Count \d+ of West is applied/);
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
  await chooseItem(main(), 'Add an item', 'MOVE-A');
  await main().getByLabel('Quantity: MOVE-A').fill('0');
  await main().getByRole('button', { name: 'Move', exact: true }).click();
  await expectText(main(), 'Choose another location than the one it comes from.');
  await expectText(main(), 'Enter a whole number of 1 or more.');
  await chooseLocation('To', 'West');
  await main().getByLabel('Quantity: MOVE-A').fill('4');
  await main().getByRole('button', { name: 'Move', exact: true }).click();
  await expectText(
    page.getByRole('grid', { name: 'Transfers that were made' }),
    /East[\s\S]*West[\s\S]*4 × MOVE-A/
  );
  expect(await shelvesOf('MOVE-A')).toEqual({ east: 6, west: 4 });
});

describe('the import', () => {
  const chooseFile = (name: string, text: string) =>
    page
      .locator('input[type=file]')
      .setInputFiles({ name, mimeType: 'text/csv', buffer: Buffer.from(text) });

  test('matches the columns of a file, tries it, imports it, and hands back what it refused', async () => {
    await moveTo(page, `${PLUGIN}/imports`);
    await page.getByRole('radio', { name: 'Items' }).click();
    await chooseFile(
      'shelf.csv',
      'Article;Barcode;Colour;Quantity\nFILE-1;4012345678901;red;5\n\nFILE-2;;"blue\ngreen";x\nFILE-3;;;7\n'
    );
    const columns = page.getByRole('grid', { name: 'Columns' });
    await expectText(columns, /Article[\s\S]*FILE-1[\s\S]*Colour[\s\S]*Left out/);
    await expectText(main(), 'One column has to be: SKU (sku)');
    const dryRun = main().getByRole('button', { name: 'Dry run' });
    expect(await dryRun.isDisabled()).toBe(true);
    await columns.getByRole('combobox', { name: 'What the column Article is' }).click();
    await page.getByRole('option', { name: 'SKU (sku)' }).click();
    const start = main().getByRole('button', { name: 'Import', exact: true });
    expect(await start.isDisabled()).toBe(true);

    await dryRun.click();
    await expectText(
      main(),
      '3 rows: 2 would be made, 0 changed, 0 left as they are; 1 have faults'
    );
    // The line of the file as it was.
    await expectText(page.getByRole('grid', { name: 'Faults' }), /4[\s\S]*quantity/);
    expect(await levelsOf('FILE-1')).toEqual([]);

    await start.click();
    await expectText(main(), '3 rows: 2 made, 0 changed, 0 as they were; 1 rejected');
    expect((await levelsOf('FILE-1')).map(({ quantity, gtin }) => [quantity, gtin])).toEqual([
      [5, '4012345678901'],
    ]);
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      main().getByRole('button', { name: 'Rejected rows as CSV' }).click(),
    ]);
    expect(file.suggestedFilename()).toMatch(/^import-\d+-rejects\.csv$/);
    expect(fs.readFileSync(await file.path(), 'utf8')).toMatch(/^line,error,[\s\S]*FILE-2/);
  });

  test('makes contacts, too', async () => {
    await page.getByRole('radio', { name: 'Contacts' }).click();
    await chooseFile('people.csv', 'E-mail,First name,Size\nfile@example.test,Fay,XL\n');
    await main().getByRole('button', { name: 'Dry run' }).click();
    await expectText(main(), '1 row: 1 would be made');
    await main().getByRole('button', { name: 'Import', exact: true }).click();
    await expectText(main(), '1 row: 1 made');
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
