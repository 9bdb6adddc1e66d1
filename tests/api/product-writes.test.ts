import { anyDatabase, databases, describeEach, itOnce } from '../support/databases';
import { type InSite, type Site, startSite } from '../support/site';
import { admin, createItem, createTill, levelOf, rebuild, settled, type Till } from './pos-till';

jest.setTimeout(240_000);

/** Stands for products with drafts and languages: `headline` is the SKU, `rank` the stock. */
const PRODUCT = 'api::story.story';
const STOCK = { contentType: PRODUCT, sku: 'headline', quantity: 'rank', name: 'teaser' };
const OPTIONS = { pos: { ratePerMinute: 1_000_000 }, stock: STOCK };

interface Row {
  id: number;
  documentId: string;
  headline: string;
  rank: number | null;
  publishedAt: string | null;
}

describeEach(databases(), 'what a site writes into its own products', (database) => {
  let site: Site;
  let till: Till;

  beforeAll(async () => {
    site = await startSite({ database, options: OPTIONS });
    till = await createTill(site);
  });
  afterAll(() => site?.stop());

  const query = (method: string, params: object) =>
    site.control('query', { uid: PRODUCT, method, params });
  const documents = (method: string, params: object) =>
    site.control('documents', { uid: PRODUCT, method, params });
  const rowsOf = (documentId: string): Promise<Row[]> =>
    query('findMany', { where: { documentId }, orderBy: { id: 'asc' } });
  const numbersOf = async (documentId: string): Promise<(number | null)[]> =>
    (await rowsOf(documentId)).map(({ rank }) => rank);
  const published = async (headline: string, rank: number): Promise<string> =>
    (await documents('create', { data: { headline, rank }, status: 'published' })).documentId;
  const sell = async (sku: string, quantity = 1): Promise<void> => {
    const sale = await till.sale([[sku, quantity]]);
    await settled(site, sale.body.event_id, 'applied');
  };
  const productMovements = async (sku: string) => {
    const [level] = await admin(site, 'GET', `/levels?sku=${sku}`);
    const movements = await admin(site, 'GET', `/levels/${level.id}/movements`);
    return movements
      .filter(({ reason }: { reason: string | null }) => reason === 'product')
      .map(({ type, quantity, effect }: Record<string, unknown>) => [type, quantity, effect]);
  };

  it.each([
    ['update', (id: string) => query('update', { where: { documentId: id }, data: { rank: 6 } })],
    [
      'updateMany',
      (id: string) => query('updateMany', { where: { documentId: id }, data: { rank: 6 } }),
    ],
    ['documents', (id: string) => documents('update', { documentId: id, data: { rank: 6 } })],
    [
      'sql',
      (id: string) =>
        site.control('sql', {
          statement: 'UPDATE stories SET rank = 6 WHERE document_id = ?',
          bindings: [id],
        }),
    ],
  ] as const)('by %s is an adjustment, and no sold piece is for sale again', async (way, write) => {
    const sku = `WAY-${way}`;
    const id = await published(sku, 10);
    await sell(sku);
    expect(await numbersOf(id)).toEqual([9, 9]);
    await write(id);
    if (way !== 'sql') expect([await levelOf(site, sku), await numbersOf(id)]).toEqual([6, [6, 6]]);
    await sell(sku);
    expect([await levelOf(site, sku), await numbersOf(id)]).toEqual([5, [5, 5]]);
    expect(await productMovements(sku)).toEqual([['adjustment', -3, -3]]);
    expect((await rebuild(site)).differences).toEqual([]);
  });

  it('is an adjustment for each of two writes that one transaction makes side by side', async () => {
    const sku = 'BESIDE';
    const id = await published(sku, 10);
    await sell(sku);
    await site.evaluate(
      async ({ strapi }, uid, documentId) => {
        const write = (rank: number) =>
          strapi.db.query(uid).update({ where: { documentId }, data: { rank } });
        await strapi.db.transaction(() => Promise.all([write(7), write(4)]));
      },
      PRODUCT,
      id
    );
    expect([await levelOf(site, sku), await numbersOf(id)]).toEqual([4, [4, 4]]);
    expect((await productMovements(sku)).sort()).toEqual([
      ['adjustment', -2, -2],
      ['adjustment', -3, -3],
    ]);
  });

  it.each(['publish', 'discardDraft'])(
    'is kept up in the row that somebody’s %s replaces while a sale waits for it',
    async (method) => {
      const sku = `REPLACED-${method}`;
      const id = await published(sku, 10);
      await sell(sku);
      const replacing = site.evaluate(
        async ({ strapi }, uid, documentId, how) =>
          strapi.db.transaction(async () => {
            await strapi.documents(uid)[how]({ documentId });
            await new Promise((resolve) => setTimeout(resolve, 700));
          }),
        PRODUCT,
        id,
        method
      );
      await new Promise((resolve) => setTimeout(resolve, 300));
      await Promise.all([sell(sku), replacing]);
      expect([await levelOf(site, sku), await numbersOf(id)]).toEqual([8, [8, 8]]);
      await sell(sku);
      expect([await levelOf(site, sku), await numbersOf(id)]).toEqual([7, [7, 7]]);
      expect(await productMovements(sku)).toEqual([]);
    }
  );

  it('goes by the host’s own condition, and follows a write that is rolled back in nothing', async () => {
    const [one, two] = [await published('COND-1', 5), await published('COND-2', 5)];
    await sell('COND-1');
    await sell('COND-2');
    // The host's updateMany knows of no filters.
    await query('updateMany', {
      where: { documentId: { $in: [one, two] } },
      filters: { headline: 'COND-1' },
      data: { rank: 2 },
    });
    expect([await levelOf(site, 'COND-1'), await levelOf(site, 'COND-2')]).toEqual([2, 2]);
    const failed = site.evaluate(
      async ({ strapi }, uid, documentId) =>
        strapi.db.transaction(async () => {
          await strapi.db.query(uid).update({ where: { documentId }, data: { rank: 1 } });
          throw new Error('no');
        }),
      PRODUCT,
      one
    );
    await expect(failed).rejects.toThrow('no');
    expect([await levelOf(site, 'COND-1'), await numbersOf(one)]).toEqual([2, [2, 2]]);
  });

  itOnce(database)(
    'counts in the draft at once, and what the draft is called when it is published',
    async () => {
      const id = await published('DRAFT-A', 10);
      await sell('DRAFT-A');
      await documents('update', { documentId: id, data: { headline: 'DRAFT-B', rank: 7 } });
      expect([await levelOf(site, 'DRAFT-A'), await numbersOf(id)]).toEqual([7, [7, 7]]);
      // Nobody sells what is not called so yet, and nobody forgets it.
      const early = await till.sale([['DRAFT-B', 1]]);
      await settled(site, early.body.event_id, 'needs_mapping');
      await sell('DRAFT-A');
      await documents('publish', { documentId: id });
      await settled(site, early.body.event_id, 'applied');
      expect([await levelOf(site, 'DRAFT-B'), await numbersOf(id)]).toEqual([5, [5, 5]]);
      expect(await levelOf(site, 'DRAFT-A')).toBeUndefined();
      await documents('discardDraft', { documentId: id });
      await documents('unpublish', { documentId: id });
      await sell('DRAFT-B');
      expect([await levelOf(site, 'DRAFT-B'), await numbersOf(id)]).toEqual([4, [4]]);
      expect(await productMovements('DRAFT-B')).toEqual([['adjustment', -2, -2]]);
    }
  );

  it('goes by the one product that is changed where a condition matches several', async () => {
    const ids = [await published('SEVERAL-1', 5), await published('SEVERAL-2', 5)];
    for (const sku of ['SEVERAL-1', 'SEVERAL-2']) await sell(sku);
    const where = { documentId: { $in: ids }, headline: { $startsWith: 'SEVERAL' } };
    // The host changes the first row that it finds, and no other product.
    await query('update', { where, data: { rank: 2 } });
    const levels = [await levelOf(site, 'SEVERAL-1'), await levelOf(site, 'SEVERAL-2')];
    expect([...levels].sort()).toEqual([2, 4]);
    for (const [at, level] of levels.entries()) {
      expect(await numbersOf(ids[at] ?? '')).toEqual([level, level]);
      const moved = level === 2 ? [['adjustment', -2, -2]] : [];
      expect(await productMovements(`SEVERAL-${at + 1}`)).toEqual(moved);
    }
    // One row of one of them is gone; both products still have the other one.
    await query('delete', { where });
    const left = await Promise.all(ids.map(rowsOf));
    expect(left.map(({ length }) => length).sort()).toEqual([1, 2]);
    const gone = await site.evaluate(async ({ strapi }) =>
      strapi.db
        .connection('switchboard_items')
        .where('sku', 'like', 'SEVERAL%')
        .where({ product_gone: true })
        .pluck('sku')
    );
    expect(gone).toEqual([]);
  });

  it('beyond what its column can hold loses no movement', async () => {
    const id = await published('RANGE', 10);
    await sell('RANGE');
    const [level] = await admin(site, 'GET', '/levels?sku=RANGE');
    for (let at = 0; at < 3; at += 1) {
      await admin(site, 'POST', `/items/${level.item_id}/adjust`, { quantity: 1_000_000_000 });
    }
    await sell('RANGE');
    expect(await levelOf(site, 'RANGE')).toBe(3_000_000_008);
    expect(await numbersOf(id)).toEqual([2_147_483_647, 2_147_483_647]);
    await documents('update', { documentId: id, data: { rank: 2_147_483_640 } });
    expect(await levelOf(site, 'RANGE')).toBe(3_000_000_001);
  });

  it('while tills sell for the first time comes to the same, whoever is first', async () => {
    const names = Array.from({ length: 8 }, (_one, at) => `RUSH-${at}`);
    const ids = await Promise.all(names.map((name) => published(name, 100)));
    await Promise.all([
      ...names.map((name) => till.sale([[name, 1]])),
      // Read and written in one statement: all that a site can do about a race of its own.
      ...ids.map((documentId) =>
        site.evaluate(
          async ({ strapi }: InSite, uid: string, id: string) => {
            const subtract = () =>
              strapi.db.transaction(async () => {
                const { tableName } = strapi.db.metadata.get(uid);
                const rows = await (
                  await strapi.db.transaction()
                )
                  .get()(tableName)
                  .where({ document_id: id })
                  .orderBy('id')
                  .forUpdate();
                await strapi.db.query(uid).updateMany({
                  where: { documentId: id },
                  data: { rank: Number(rows[0].rank) - 10 },
                });
              });
            await subtract();
          },
          PRODUCT,
          documentId
        )
      ),
    ]);
    for (const [at, name] of names.entries()) {
      await sell(name);
      expect([name, await levelOf(site, name), await numbersOf(ids[at] ?? '')]).toEqual([
        name,
        88,
        [88, 88],
      ]);
    }
    expect((await rebuild(site)).differences).toEqual([]);
  });

  if (database !== 'sqlite') {
    it.each(['rename', 'mend'] as const)(
      'is no victim of a %s under way: nobody has the item before its product',
      async (way) => {
        const sku = `ORDER-${way}`;
        const id = await published(sku, 9);
        await sell(sku);
        const [level] = await admin(site, 'GET', `/levels?sku=${sku}`);
        const taken = await site.evaluate(
          async ({ strapi, state }, [uid, documentId, item, to]) => {
            const { tableName } = strapi.db.metadata.get(uid as string);
            const trx = await strapi.db.connection.transaction();
            try {
              if (to === null) {
                await trx('switchboard_levels').where({ item_id: item }).increment('quantity', 1);
              }
              await trx.commit();
              const editor = await strapi.db.connection.transaction();
              try {
                // An editor's save has the product, and goes on to its item and level.
                await editor(tableName).where({ document_id: documentId }).forUpdate();
                state.other =
                  to === null
                    ? strapi.service('plugin::switchboard.stock-rebuild').rebuild({ mend: true })
                    : strapi
                        .service('plugin::switchboard.stock-items')
                        .updateItem(item, { sku: to });
                await new Promise((resolve) => setTimeout(resolve, 700));
                await editor('switchboard_items').where({ id: item }).forUpdate().noWait();
                await editor('switchboard_levels').where({ item_id: item }).forUpdate().noWait();
                return 'free';
              } finally {
                await editor.rollback();
              }
            } catch (error) {
              return String(error);
            } finally {
              await state.other;
            }
          },
          [PRODUCT, id, level.item_id, way === 'rename' ? `${sku}-2` : null] as const
        );
        expect(taken).toBe('free');
      }
    );

    it('is written by a movement whose transaction is older than a rename', async () => {
      const id = await published('RENAME-A', 9);
      await sell('RENAME-A');
      const [level] = await admin(site, 'GET', '/levels?sku=RENAME-A');
      await site.evaluate(async ({ strapi, state }, item) => {
        const opened = new Promise<void>((resolve) => {
          state.olderDone = strapi.db.transaction(async () => {
            const trx = (await strapi.db.transaction()).get();
            await trx('switchboard_items').where({ id: item }).first();
            resolve();
            await new Promise<void>((go) => {
              state.letOlderGo = go;
            });
            await strapi
              .service('plugin::switchboard.stock-levels')
              .adjust(item, { quantity: -1, reason: 'older' });
          });
        });
        await opened;
      }, level.item_id);
      await query('updateMany', { where: { documentId: id }, data: { headline: 'RENAME-B' } });
      await site.evaluate(async ({ state }) => {
        state.letOlderGo();
        await state.olderDone;
      });
      expect([await levelOf(site, 'RENAME-B'), await numbersOf(id)]).toEqual([7, [7, 7]]);
    });
  }

  // What follows has no statement that is not in the above.
  if (!anyDatabase().includes(database)) return;

  it('says nothing in a new language, and nothing by what it leaves out', async () => {
    const id = await published('WORDS', 4);
    await sell('WORDS');
    await documents('update', { documentId: id, data: { teaser: 'Not of the stock' } });
    await query('update', { where: { documentId: id }, data: { rank: null } });
    expect([await levelOf(site, 'WORDS'), await numbersOf(id)]).toEqual([3, [3, 3]]);
  });

  it('is called what its version in the default language is called, whichever is published last', async () => {
    await site.evaluate(({ strapi }) =>
      strapi.plugin('i18n').service('locales').create({ code: 'fr', name: 'French' })
    );
    const reader = await createTill(site, { scopes: ['stock:read'] });
    const told = async () =>
      (await reader.send('catalogue', {})).body.items
        .filter(({ sku }: { sku: string }) => sku.startsWith('SPEECH'))
        .map(({ sku, name, deleted }: Record<string, unknown>) => [sku, name, deleted]);
    const id = await published('SPEECH', 4);
    const write = (locale: string, data: object) =>
      documents('update', { documentId: id, locale, data, status: 'published' });
    await write('en', { teaser: 'Lamp' });
    await sell('SPEECH');
    await write('fr', { headline: 'SPEECH-FR', teaser: 'Lampe', rank: 3 });
    await write('en', { teaser: 'Big lamp' });
    expect(await told()).toEqual([['SPEECH', 'Big lamp', false]]);
    await sell('SPEECH');
    await write('fr', { headline: 'SPEECH', teaser: 'Grande lampe' });
    await write('en', { teaser: 'Large lamp' });
    expect(await told()).toEqual([['SPEECH', 'Large lamp', false]]);
    await sell('SPEECH');
    expect([await levelOf(site, 'SPEECH'), await numbersOf(id)]).toEqual([1, [1, 1, 1, 1]]);
  });

  it('of an archived item is there when it is brought back', async () => {
    const id = await published('ARCHIVE', 8);
    await sell('ARCHIVE');
    const [level] = await admin(site, 'GET', '/levels?sku=ARCHIVE');
    await site.request('DELETE', `/switchboard/items/${level.item_id}`);
    await documents('update', { documentId: id, data: { rank: 3 } });
    await admin(site, 'PUT', `/items/${level.item_id}`, { archived: false });
    await sell('ARCHIVE');
    expect([await levelOf(site, 'ARCHIVE'), await numbersOf(id)]).toEqual([2, [2, 2]]);
  });

  it('is the opening of an item that is made by hand, which else writes its own into it', async () => {
    const [one, two] = [await published('HAND-1', 6), await published('HAND-2', 6)];
    await createItem(site, 'HAND-1');
    await createItem(site, 'HAND-2', 20);
    await sell('HAND-1');
    await sell('HAND-2');
    expect([await levelOf(site, 'HAND-1'), await numbersOf(one)]).toEqual([5, [5, 5]]);
    expect([await levelOf(site, 'HAND-2'), await numbersOf(two)]).toEqual([19, [19, 19]]);
    expect(await productMovements('HAND-2')).toEqual([]);
  });

  it('stays for sale where a mapping is undone that made its item', async () => {
    const sku = 'MADE-BY-MAPPING';
    const id = await published(sku, 10);
    const wrong = await till.sale([[`NOT-${sku}`, 2]]);
    await settled(site, wrong.body.event_id, 'needs_mapping');
    const asked = { kind: 'sku', value: `NOT-${sku}`, to: { create: { sku } } };
    const mapping = await admin(site, 'POST', '/mapping-inbox/resolve', asked, 200);
    await settled(site, wrong.body.event_id, 'applied');
    const own = await till.sale([[sku, 1]]);
    await settled(site, own.body.event_id, 'applied');
    expect([await levelOf(site, sku), await numbersOf(id)]).toEqual([7, [7, 7]]);
    await admin(site, 'POST', '/mapping-inbox/undo', { id: mapping.id }, 200);
    await settled(site, wrong.body.event_id, 'needs_mapping');
    await settled(site, own.body.event_id, 'applied');
    await sell(sku);
    expect([await levelOf(site, sku), await numbersOf(id)]).toEqual([8, [8, 8]]);
    // Its line was the mapping's, and is found at the same place without it: nothing moves.
    const { movements } = await settled(site, own.body.event_id, 'applied');
    expect(movements).toEqual([expect.objectContaining({ type: 'sale', effect: -1 })]);
    expect((await rebuild(site)).differences).toEqual([]);
  });

  it('is refused where the site says so, in whatever way, and the movement is there', async () => {
    const id = await published('REFUSE', 5);
    await sell('REFUSE');
    await site.restart({ options: { ...OPTIONS, stock: { ...STOCK, onProductWrite: 'refuse' } } });
    for (const refused of [
      documents('update', { documentId: id, data: { rank: 1 } }),
      query('updateMany', { where: { documentId: id }, data: { rank: 1 } }),
    ]) {
      await expect(refused).rejects.toThrow(/adjust it in the admin panel/);
    }
    expect([await levelOf(site, 'REFUSE'), await numbersOf(id)]).toEqual([4, [4, 4]]);
    // What it has already, and all else, may be written.
    await documents('update', { documentId: id, data: { rank: 4, teaser: 'new' } });
    expect(await productMovements('REFUSE')).toEqual([]);
  });
});
