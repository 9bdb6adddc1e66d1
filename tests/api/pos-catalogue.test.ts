import { describeEach, anyDatabase } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import {
  admin,
  createItem,
  createTill,
  isoAgo,
  levelOf,
  saleBody,
  settled,
  type Till,
} from './pos-till';

jest.setTimeout(240_000);

const PRODUCT = 'api::product.product';

interface Item {
  sku: string;
  gtin: string | null;
  name: string | null;
  price: number | null;
  currency: string | null;
  stock: { location_ref: string | null; quantity: number }[];
  deleted: boolean;
}

interface Page {
  ok: true;
  items: Item[];
  cursor: string;
  has_more: boolean;
}

const page = async (till: Till, asked: object = {}, to?: Site): Promise<Page> => {
  const answer = await till.send('catalogue', asked, to ? { to } : {});
  if (answer.status !== 200) throw new Error(`${answer.status}: ${answer.text}`);
  expect(typeof answer.body.cursor).toBe('string');
  return answer.body;
};

/** All pages from a cursor on. */
const download = async (till: Till, cursor?: string, limit = 1000) => {
  const items: Item[] = [];
  let at = cursor;
  for (;;) {
    const next: Page = await page(till, { limit, ...(at !== undefined && { cursor: at }) });
    items.push(...next.items);
    at = next.cursor;
    if (!next.has_more) return { items, cursor: at };
  }
};

const skusOf = (items: readonly Item[]): string[] => items.map(({ sku }) => sku).sort();

const reader = (site: Site, more: Record<string, unknown> = {}): Promise<Till> =>
  createTill(site, { scopes: ['sale:write', 'refund:write', 'stock:read'], ...more });

describeEach(anyDatabase(), 'the catalogue of items', (database) => {
  let site: Site;

  beforeAll(async () => {
    site = await startSite({
      database,
      options: {
        pos: { ratePerMinute: 1_000_000 },
        stock: {
          contentType: PRODUCT,
          sku: 'articleNumber',
          // The site's product has a number and a text to spare, which may stand for these.
          name: 'title',
          price: 'stock',
          currency: 'barcode',
          gtin: 'stock',
        },
      },
    });
    await admin(site, 'POST', '/locations', { name: 'Back', code: 'back' });
  });
  afterAll(() => site?.stop());

  const adjust = (id: number, quantity: number, more: object = {}) =>
    admin(site, 'POST', `/items/${id}/adjust`, { quantity, ...more });
  const query = (method: string, params: object) =>
    site.control('query', { uid: PRODUCT, method, params });

  it('of nothing has a cursor too, and what comes after it is told from there', async () => {
    const till = await reader(site);
    const empty = await page(till);
    expect(empty).toEqual({ ok: true, items: [], cursor: expect.any(String), has_more: false });
    const { id } = await createItem(site, 'FIRST', 3, { gtin: '4006381333931', name: 'First' });
    const next = await page(till, { cursor: empty.cursor });
    expect(next.items).toEqual([
      {
        sku: 'FIRST',
        gtin: '4006381333931',
        name: 'First',
        price: null,
        currency: null,
        stock: [{ location_ref: null, quantity: 3 }],
        deleted: false,
      },
    ]);
    expect((await page(till, { cursor: next.cursor })).items).toEqual([]);
    // Each item once, as it is now, however often it changed.
    await adjust(id, -1);
    await adjust(id, -1);
    await admin(site, 'PUT', `/items/${id}`, { name: 'Renamed' });
    const again = await page(till, { cursor: next.cursor });
    expect(again.items).toMatchObject([
      { sku: 'FIRST', name: 'Renamed', stock: [{ quantity: 1 }] },
    ]);
    const sale = await till.sale([['FIRST', 1]]);
    await settled(site, sale.body.event_id, 'applied');
    expect((await page(till, { cursor: again.cursor })).items).toMatchObject([
      { sku: 'FIRST', stock: [{ quantity: 0 }] },
    ]);
  });

  it('comes in pages: each item once, and the same from any page on', async () => {
    const till = await reader(site);
    for (let at = 0; at < 7; at += 1) await createItem(site, `PAGE-${at}`, at);
    const whole = await download(till);
    const paged = await download(till, undefined, 2);
    expect(skusOf(paged.items)).toEqual(skusOf(whole.items));
    expect(new Set(skusOf(paged.items)).size).toBe(paged.items.length);
    const first = await page(till, { limit: 3 });
    expect([first.items.length, first.has_more]).toEqual([3, true]);
    // The same page again, as after an answer that was lost on its way.
    const once = await page(till, { limit: 3, cursor: first.cursor });
    expect(await page(till, { limit: 3, cursor: first.cursor })).toEqual(once);
    const rest = await download(till, first.cursor);
    expect(skusOf([...first.items, ...rest.items])).toEqual(skusOf(whole.items));
  });

  it('has the connection’s own locations, by its refs, and starts anew when they change', async () => {
    const { id } = await createItem(site, 'PLACE', 4);
    await adjust(id, 9, { location: 'back' });
    const till = await reader(site, { locations: [{ ref: 'rear', location: 'back' }] });
    const all = await download(till);
    expect(all.items.find(({ sku }) => sku === 'PLACE')?.stock).toEqual([
      { location_ref: 'rear', quantity: 9 },
    ]);
    expect(all.items.find(({ sku }) => sku === 'FIRST')?.stock).toEqual([
      { location_ref: 'rear', quantity: 0 },
    ]);
    await admin(site, 'PUT', `/connections/${till.id}`, { name: 'Another name' });
    expect((await page(till, { cursor: all.cursor })).items).toEqual([]);
    await admin(site, 'PUT', `/connections/${till.id}`, {
      locations: [
        { ref: 'rear', location: 'back' },
        { ref: 'front', location: 'main' },
      ],
    });
    const anew = await download(till, all.cursor);
    expect(skusOf(anew.items)).toEqual(skusOf(all.items));
    expect(anew.items.find(({ sku }) => sku === 'PLACE')?.stock).toEqual([
      { location_ref: 'rear', quantity: 9 },
      { location_ref: 'front', quantity: 4 },
    ]);
  });

  it('tells of archived items; records that name one wait until it is brought back', async () => {
    const till = await reader(site);
    const { id } = await createItem(site, 'GONE', 5);
    const before = await download(till);
    const deleted = await site.request('DELETE', `/switchboard/items/${id}`);
    expect(deleted.status).toBe(204);
    const told = await download(till, before.cursor);
    expect(told.items).toMatchObject([{ sku: 'GONE', deleted: true }]);
    const listed = async (which: string) =>
      (await admin(site, 'GET', `/items?search=GONE&archived=${which}`)).length;
    expect([await listed('true'), await listed('false')]).toEqual([1, 0]);
    expect((await admin(site, 'GET', `/items/${id}`)).archived_at).toEqual(expect.any(String));

    const sale = await till.sale([['GONE', 2]]);
    await settled(site, sale.body.event_id, 'needs_mapping');
    expect(await levelOf(site, 'GONE')).toBe(5);
    expect((await site.request('DELETE', '/switchboard/items/999999')).status).toBe(404);
    await admin(site, 'PUT', `/items/${id}`, { archived: false });
    await settled(site, sale.body.event_id, 'applied');
    const back = await download(till, told.cursor);
    expect(back.items).toMatchObject([{ sku: 'GONE', deleted: false, stock: [{ quantity: 3 }] }]);
  });

  it('has the name and the price of the site’s product, and its changes', async () => {
    const till = await reader(site);
    const create = (articleNumber: string, title: string, stock: number, barcode: string) =>
      query('create', { data: { articleNumber, title, stock, barcode } });
    await create('LAMP', 'Lamp', 19, 'EUR');
    await create('TEA', 'Tea', 1250, 'JPY');
    await create('ODD', 'Odd', 1, 'nothing');
    for (const sku of ['LAMP', 'TEA', 'ODD']) {
      const sale = await till.sale([[sku, 1]]);
      await settled(site, sale.body.event_id, 'applied');
    }
    const all = await download(till);
    const of = (items: readonly Item[], sku: string) => items.find((item) => item.sku === sku);
    expect(of(all.items, 'LAMP')).toMatchObject({ name: 'Lamp', price: 1900, currency: 'EUR' });
    expect(of(all.items, 'TEA')).toMatchObject({ name: 'Tea', price: 1250, currency: 'JPY' });
    expect(of(all.items, 'ODD')).toMatchObject({ name: 'Odd', price: null, currency: null });

    const where = { articleNumber: 'LAMP' };
    await query('update', { where, data: { stock: 24 } });
    const dearer = await download(till, all.cursor);
    expect(dearer.items).toMatchObject([{ sku: 'LAMP', price: 2400 }]);
    await query('updateMany', { where: { barcode: 'JPY' }, data: { title: 'Green tea' } });
    const renamed = await download(till, dearer.cursor);
    expect(renamed.items).toMatchObject([{ sku: 'TEA', name: 'Green tea' }]);
    await query('delete', { where });
    const gone = await download(till, renamed.cursor);
    // Not for sale any more, and for sale again once there is such a product.
    expect(gone.items).toMatchObject([{ sku: 'LAMP', name: null, price: null, deleted: true }]);
    await create('LAMP', 'Lamp again', 30, 'EUR');
    const back = await download(till, gone.cursor);
    expect(back.items).toMatchObject([{ sku: 'LAMP', price: 3000, deleted: false }]);
  });

  it('tells that the old article is deleted where an item has another SKU', async () => {
    const till = await reader(site);
    const { id } = await createItem(site, 'OLD-NAME', 4);
    const before = await download(till);
    await admin(site, 'PUT', `/items/${id}`, { sku: 'NEW-NAME' });
    const told = await download(till, before.cursor, 1);
    expect(told.items).toMatchObject([
      { sku: 'OLD-NAME', gtin: null, deleted: true, stock: [{ quantity: 0 }] },
      { sku: 'NEW-NAME', deleted: false, stock: [{ quantity: 4 }] },
    ]);
    // Another item of the old name is an article of its own.
    await createItem(site, 'OLD-NAME', 1);
    const again = await download(till, told.cursor);
    expect(again.items).toMatchObject([{ sku: 'OLD-NAME', deleted: false }]);
    const all = (await download(till)).items.filter(({ sku }) => /-NAME$/.test(sku));
    expect(all.map(({ sku, deleted }) => [sku, deleted])).toEqual([
      ['NEW-NAME', false],
      ['OLD-NAME', false],
    ]);
  });

  it('has one item of a product whose code changes, with its stock', async () => {
    const till = await reader(site);
    await query('create', { data: { articleNumber: 'CODE-1', title: 'Code', stock: 5 } });
    const sale = await till.sale([['CODE-1', 1]]);
    await settled(site, sale.body.event_id, 'applied');
    const level = await levelOf(site, 'CODE-1');
    const before = await download(till);
    await query('update', {
      where: { articleNumber: 'CODE-1' },
      data: { articleNumber: 'CODE-2' },
    });
    const told = await download(till, before.cursor);
    expect(told.items.map(({ sku, deleted }) => [sku, deleted])).toEqual([
      ['CODE-1', true],
      ['CODE-2', false],
    ]);
    const next = await till.sale([['CODE-2', 1]]);
    await settled(site, next.body.event_id, 'applied');
    expect(await levelOf(site, 'CODE-1')).toBeUndefined();
    expect(await levelOf(site, 'CODE-2')).toBe((level ?? 0) - 1);
    const late = await till.sale([['CODE-1', 1]]);
    await settled(site, late.body.event_id, 'needs_mapping');
  });

  it('looks for no text in a number: a line waits that names no barcode of the site', async () => {
    const till = await reader(site);
    const gtins = ['no-number', '4006381333999', '99999999999999', '0x10', '1e3'];
    const line_items = gtins.map((gtin) => ({ gtin, quantity: 1 }));
    const tried = await till.send('validate', {
      kind: 'sale',
      body: { ...saleBody([]), line_items },
    });
    expect([tried.status, tried.body.unknown?.length]).toEqual([200, gtins.length]);
    const sale = await till.sale([], { line_items });
    await settled(site, sale.body.event_id, 'needs_mapping');
  });

  it.each([
    [1_234_567, '01234567'],
    [12_345, '00000000012345'],
    [76_543_210, '0000076543210'],
  ])('the number %d is the barcode %s', async (stock, gtin) => {
    const till = await reader(site);
    const articleNumber = `BARCODE-${stock}`;
    const sale = await till.sale([], { line_items: [{ gtin, quantity: 1 }] });
    await settled(site, sale.body.event_id, 'needs_mapping');
    await query('create', { data: { articleNumber, title: 'Barcode', stock } });
    await settled(site, sale.body.event_id, 'applied');
    const again = await till.sale([], { line_items: [{ gtin: gtin.slice(-8), quantity: 1 }] });
    await settled(site, again.body.event_id, 'applied');
    expect(await levelOf(site, articleNumber)).toBe(-2);
  });

  it.each([
    ['{"limit":0}', 'limit'],
    ['{"limit":1001}', 'limit'],
    ['{"limit":1.5}', 'limit'],
    ['{"limit":"10"}', 'limit'],
    ['{"limit":null}', 'limit'],
    ['{"cursor":""}', 'cursor'],
    ['{"cursor":"1"}', 'cursor'],
    ['{"cursor":null}', 'cursor'],
    ['{"cursor":7}', 'cursor'],
    ['{"external_ids":[]}', 'external_ids'],
    ['', 'body'],
    ['[]', 'body'],
  ])('refuses %s', async (text, field) => {
    const till = await reader(site);
    const answer = await till.send('catalogue', text);
    expect([answer.status, answer.body.code, answer.body.schema, answer.body.field]).toEqual([
      400,
      'schema_invalid',
      'catalogue.v1',
      field,
    ]);
  });

  it('needs the scope stock:read', async () => {
    const till = await createTill(site);
    const answer = await till.send('catalogue', {});
    expect([answer.status, answer.body.required_scope]).toEqual([403, 'stock:read']);
  });

  it('starts anew after a cursor of changes that this database never had', async () => {
    const till = await reader(site);
    const all = await download(till);
    const ahead = all.cursor.replace(/^\d+/, '999999999');
    expect(skusOf((await download(till, ahead)).items)).toEqual(skusOf(all.items));
  });

  // SQLite has one connection: nothing is read while a transaction is open.
  if (database !== 'sqlite') {
    it('does not miss a change whose transaction was open while later ones were read', async () => {
      const till = await reader(site);
      const slow = await createItem(site, 'SLOW', 1);
      const quick = await createItem(site, 'QUICK', 1);
      const before = await download(till);
      await site.evaluate(async ({ strapi, state }, id) => {
        const opened = new Promise<void>((resolve) => {
          state.slowDone = strapi.db.transaction(async () => {
            await strapi
              .service('plugin::switchboard.stock-levels')
              .adjust(id, { quantity: 5, reason: 'slow' });
            resolve();
            await new Promise<void>((go) => {
              state.letSlowGo = go;
            });
          });
        });
        await opened;
      }, slow.id);
      await adjust(quick.id, 1);
      const meanwhile = await download(till, before.cursor);
      expect(meanwhile.items).toMatchObject([{ sku: 'QUICK', stock: [{ quantity: 2 }] }]);
      await site.evaluate(async ({ state }) => {
        state.letSlowGo();
        await state.slowDone;
      });
      const after = await download(till, meanwhile.cursor);
      expect(after.items).toMatchObject([{ sku: 'SLOW', stock: [{ quantity: 6 }] }]);
    });

    it('does not miss what is changed and renamed while a page is put together', async () => {
      const till = await reader(site);
      const changed = await createItem(site, 'CHANGED', 1);
      const renamed = await createItem(site, 'NAME-1', 1);
      const before = await download(till);
      await site.evaluate(async ({ strapi, state }) => {
        const { client } = strapi.db.connection;
        const original = client._query;
        client._query = async function query(this: unknown, ...args: unknown[]) {
          const answer = await original.apply(this, args);
          if (!/switchboard_catalogue\W.*order by/.test((args[1] as { sql: string }).sql))
            return answer;
          client._query = original;
          await new Promise<void>((go) => {
            state.letPageGo = go;
            state.pageWaits = true;
          });
          return answer;
        };
      });
      const asked = page(till, { cursor: before.cursor });
      await waitFor(() => site.control('state', { key: 'pageWaits' }));
      // Each is given its number by another reader.
      await adjust(changed.id, 1);
      await download(till, before.cursor);
      await admin(site, 'PUT', `/items/${renamed.id}`, { sku: 'NAME-2' });
      await download(till, before.cursor);
      await site.evaluate(async ({ state }) => state.letPageGo());
      const first = await asked;
      const rest = await download(till, first.cursor);
      expect(skusOf([...first.items, ...rest.items])).toEqual(['CHANGED', 'NAME-1', 'NAME-2']);
    });
  }

  it('is complete in the end, whoever changes and reads at the same time', async () => {
    const other = database === 'sqlite' ? site : await site.sibling({ accounts: false });
    try {
      const till = await reader(site);
      const ids: number[] = [];
      for (let at = 0; at < 12; at += 1) ids.push((await createItem(site, `BUSY-${at}`)).id);
      const seen = new Map<string, Item>();
      let cursor: string | undefined;
      let writing = true;
      const write = async (seed: number): Promise<void> => {
        for (let round = 0; round < 25; round += 1) {
          const id = ids[(round * 7 + seed * 5) % ids.length];
          await adjust(id as number, 1 + ((round + seed) % 3), { occurred_at: isoAgo(1) });
        }
      };
      const read = async (): Promise<void> => {
        for (let round = 0, last = false; !last; round += 1) {
          last = !writing;
          for (let more = true; more;) {
            const next: Page = await page(
              till,
              { limit: 3, ...(cursor !== undefined && { cursor }) },
              round % 2 === 0 ? site : other
            );
            // Now and then the answer is lost, and the same page is asked for again.
            if (round % 5 !== 3 || last) {
              for (const item of next.items) seen.set(item.sku, item);
              cursor = next.cursor;
            }
            more = next.has_more && (round % 5 !== 3 || last);
          }
        }
      };
      const writers = Promise.all([write(1), write(2), write(3)]).finally(() => {
        writing = false;
      });
      await Promise.all([writers, read()]);
      const whole = await download(till);
      const byName = new Map(whole.items.map((item) => [item.sku, item]));
      expect(Object.fromEntries([...seen].sort())).toEqual(Object.fromEntries([...byName].sort()));
      for (const sku of seen.keys()) {
        if (!sku.startsWith('BUSY')) continue;
        expect(seen.get(sku)?.stock[0]?.quantity).toBe(await levelOf(site, sku));
      }
    } finally {
      if (other !== site) await other.stop();
    }
  });

  it('starts anew where a backup took the place of what was told', async () => {
    const till = await reader(site);
    const { id } = await createItem(site, 'RESTORED', 1);
    const early = await download(till);
    const saved = await site.evaluate(async ({ strapi }) => {
      const { connection } = strapi.db;
      const rows = {} as Record<string, Record<string, unknown>[]>;
      for (const name of ['catalogue', 'catalogue_head', 'catalogue_changes']) {
        rows[name] = await connection(`switchboard_${name}`);
      }
      return rows;
    });
    await adjust(id, 1);
    const late = await download(till, early.cursor);
    expect(skusOf(late.items)).toEqual(['RESTORED']);
    await site.evaluate(async ({ strapi }, rows) => {
      const { connection } = strapi.db;
      for (const [name, kept] of Object.entries(rows)) {
        await connection(`switchboard_${name}`).delete();
        if (kept.length > 0) await connection.batchInsert(`switchboard_${name}`, kept, 50);
      }
    }, saved);
    await site.restart();
    // Numbers that were told before are given to other changes.
    for (let at = 0; at < 3; at += 1) await createItem(site, `AFTER-BACKUP-${at}`);
    const anew = await download(till, late.cursor);
    expect(skusOf(anew.items)).toEqual(skusOf((await download(till)).items));
    const since = await download(till, early.cursor);
    expect(skusOf(since.items)).toEqual(expect.arrayContaining(['AFTER-BACKUP-0']));
    expect(since.items.length).toBeLessThan(anew.items.length);
  });
});
