import { createAdminRole, createAdminUser } from '../support/accounts';
import type { Level, Stocktake, StockGridRow, Transfer } from '../../shared/contracts/stock';
import { databases, describeEach, itOnce } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { admin, createItem, createTill, isoAgo, levelOf, rebuild, settled } from './pos-till';

describeEach(databases(), 'stock that is moved and counted by hand', (database) => {
  let site: Site;
  let north: { id: number };

  beforeAll(async () => {
    site = await startSite({ database });
    north = await admin(site, 'POST', '/locations', { name: 'North', code: 'north' });
  }, 120_000);
  afterAll(() => site?.stop(), 60_000);

  const transfer = (body: object, status = 201): Promise<Transfer> =>
    admin(site, 'POST', '/transfers', body, status);
  const levels = async (sku: string) => [
    await levelOf(site, sku, 'main'),
    await levelOf(site, sku, 'north'),
  ];
  const refusal = async (path: string, body: object) => {
    const answer = await site.request('POST', `/switchboard${path}`, { body });
    const paths = answer.body.error?.details?.errors?.map((one: { path: string[] }) =>
      one.path.join('.')
    );
    return { status: answer.status, paths };
  };

  it('a transfer is two movements of one document, once for each external id', async () => {
    const { id: item } = await createItem(site, 'MUG', 10);
    const body = {
      external_id: 'T-1',
      from: 'main',
      to: north.id,
      occurred_at: isoAgo(60),
      lines: [{ item, quantity: 4, reason: 'for the fair' }],
    };
    const made = await transfer(body);
    expect(made).toMatchObject({
      external_id: 'T-1',
      duplicate: false,
      from: { code: 'main' },
      to: { code: 'north' },
      lines: [
        {
          item: { id: item, sku: 'MUG' },
          quantity: 4,
          movements: [
            { quantity: -4, effect: -4 },
            { quantity: 4, effect: 4 },
          ],
        },
      ],
    });
    expect(await levels('MUG')).toEqual([6, 4]);
    const again = await transfer({ ...body, lines: [{ item: 'MUG', quantity: 9 }] }, 200);
    expect(again).toEqual({ ...made, duplicate: true });
    expect(await levels('MUG')).toEqual([6, 4]);
    const { duplicate, ...document } = made;
    expect(duplicate).toBe(false);
    expect(await admin(site, 'GET', `/transfers/${made.id}`)).toEqual(document);
    expect(await admin(site, 'GET', '/transfers')).toEqual([document]);
    const [level] = await admin(site, 'GET', '/levels?sku=MUG&location=north');
    const [movement] = await admin(site, 'GET', `/levels/${level.id}/movements`);
    expect(movement).toMatchObject({
      type: 'transfer',
      quantity: 4,
      note: 'for the fair',
      document_id: made.id,
      made_by: made.made_by,
    });
    expect(made.made_by).toEqual(expect.any(String));
  });

  it('many of one external id at once are one', async () => {
    await createItem(site, 'PLATE', 10);
    const body = {
      external_id: 'T-many',
      from: 'main',
      to: 'north',
      lines: [{ item: 'PLATE', quantity: 3 }],
    };
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => site.request('POST', '/switchboard/transfers', { body }))
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 200, 200, 201]);
    expect(await levels('PLATE')).toEqual([7, 3]);
  });

  itOnce(database)(
    'a later count of one side stands for that side, in any order of arrival',
    async () => {
      const till = await createTill(site, { locations: [{ ref: 'n', location: 'north' }] });
      const lines = (item: string) => [{ item, quantity: 5 }];
      for (const [sku, countFirst] of [
        ['BOWL-A', true],
        ['BOWL-B', false],
      ] as const) {
        await createItem(site, sku, 20);
        const count = async () => {
          const answer = await till.count([[sku, 8]], {
            occurred_at: isoAgo(100),
            location_ref: 'n',
          });
          await settled(site, answer.body.event_id, 'applied');
        };
        const move = () =>
          transfer({ from: 'main', to: 'north', occurred_at: isoAgo(200), lines: lines(sku) });
        for (const step of countFirst ? [count, move] : [move, count]) await step();
        expect(await levels(sku)).toEqual([15, 8]);
      }
      expect((await rebuild(site)).differences).toEqual([]);
    }
  );

  itOnce(database)(
    'a stocktake is one count, dated when counting began, and a preview of it stores nothing',
    async () => {
      const till = await createTill(site);
      await createItem(site, 'FORK', 49);
      await createItem(site, 'KNIFE', 30);
      const began = isoAgo(300);
      const sold = await till.sale([['FORK', 2]], { occurred_at: isoAgo(100) });
      await settled(site, sold.body.event_id, 'applied');
      const body = {
        location: 'main',
        occurred_at: began,
        counts: [
          { item: 'FORK', quantity: 9 },
          { item: 'KNIFE', quantity: 30, reason: 'autumn' },
        ],
      };
      const expected = [
        { item: { sku: 'FORK' }, counted: 9, before: 47, after: 7, reason: null },
        { item: { sku: 'KNIFE' }, counted: 30, before: 30, after: 30, reason: null },
      ];
      const preview: Stocktake = await admin(
        site,
        'POST',
        '/stocktakes',
        { ...body, preview: true },
        200
      );
      expect(preview).toMatchObject({ id: null, counts: expected });
      expect(await levelOf(site, 'FORK')).toBe(47);
      expect(await admin(site, 'GET', '/stocktakes')).toEqual([]);

      const made: Stocktake = await admin(site, 'POST', '/stocktakes', body);
      expect(made).toMatchObject({ id: expect.any(Number), counts: expected });
      expect(Date.parse(made.occurred_at)).toBe(Date.parse(began));
      expect(await levelOf(site, 'FORK')).toBe(7);
      expect(await admin(site, 'GET', `/stocktakes/${made.id}`)).toEqual(made);
      const older = await till.count([['FORK', 99]], { occurred_at: isoAgo(400) });
      expect(older.status).toBe(409);
      const stale: Stocktake = await admin(site, 'POST', '/stocktakes', {
        ...body,
        occurred_at: isoAgo(500),
      });
      expect(stale.counts[0]).toMatchObject({ before: 7, after: 7, reason: 'stale_count' });
      const [level] = await admin(site, 'GET', '/levels?sku=FORK');
      const explanation = await admin(site, 'GET', `/levels/${level.id}/explanation`);
      expect(explanation.terms).toEqual([
        { type: 'count', reason: null, quantity: 9, movements: 1 },
        { type: 'sale', reason: null, quantity: -2, movements: 1 },
      ]);
      expect((await rebuild(site)).differences).toEqual([]);
    }
  );

  itOnce(database)(
    'says what time it is, so that no browser has to: a count dated by it fits the sales',
    async () => {
      await createItem(site, 'CLOCK', 10);
      const till = await createTill(site);
      const answer = await site.request('GET', '/switchboard/stocktakes/clock');
      expect(answer.status).toBe(200);
      const { now } = answer.body.data as { now: string };
      expect(now).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+00:00)$/);
      expect(Math.abs(Date.parse(now) - Date.now())).toBeLessThan(60_000);
      const sale = await till.sale([['CLOCK', 2]], { occurred_at: new Date().toISOString() });
      await settled(site, sale.body.event_id, 'applied');
      const counts = [{ item: 'CLOCK', quantity: 20 }];
      await admin(site, 'POST', '/stocktakes', { location: 'main', occurred_at: now, counts }, 201);
      expect(await levelOf(site, 'CLOCK', 'main')).toBe(18);
      const asked = await site.request('GET', '/switchboard/stocktakes/clock?at=now');
      expect(asked.status).toBe(400);
    }
  );

  it('takes a test count of more lines than a database takes rows of one statement', async () => {
    const skus = Array.from({ length: 501 }, (_one, index) => `LINE-${index}`);
    await site.evaluate(async ({ strapi }, all) => {
      const items = strapi.plugin('switchboard').service('stock-items');
      for (const sku of all) await items.createItem({ sku, name: sku, opening: [] });
    }, skus);
    const trial = await createTill(site, { mode: 'test' });
    const counted = await trial.count(skus.map((sku) => [sku, 1] as [string, number]));
    expect(counted.status).toBe(202);
    await settled(site, counted.body.event_id, 'simulated');
  });

  itOnce(database)('tells its time to whoever may count, and to nobody else', async () => {
    const role = await createAdminRole(site, ['plugin::switchboard.stock.read']);
    const reader = await createAdminUser(site, { role });
    const as = { as: reader };
    expect((await site.request('GET', '/switchboard/stocktakes', as)).status).toBe(200);
    expect((await site.request('GET', '/switchboard/stocktakes/clock', as)).status).toBe(403);
  });

  itOnce(database)('of two counts of one moment by hand the later one wins', async () => {
    await createItem(site, 'TWICE', 1);
    const at = { location: 'main', occurred_at: isoAgo(50) };
    for (const quantity of [5, 3]) {
      await admin(site, 'POST', '/stocktakes', { ...at, counts: [{ item: 'TWICE', quantity }] });
    }
    expect(await levelOf(site, 'TWICE')).toBe(3);
    expect((await rebuild(site)).differences).toEqual([]);
  });

  itOnce(database)(
    'a level is set to what was counted, or changed by some, after a preview',
    async () => {
      const { id } = await createItem(site, 'SPOON', 49);
      const change = (body: object, status = 201) =>
        admin(site, 'POST', `/items/${id}/adjust`, body, status);
      expect(await change({ counted: 7, preview: true }, 200)).toMatchObject({
        before: 49,
        after: 7,
        location: { code: 'main' },
      });
      expect(await change({ quantity: -2, preview: true }, 200)).toMatchObject({
        before: 49,
        after: 47,
      });
      expect(await levelOf(site, 'SPOON')).toBe(49);
      const level: Level = await change({ counted: 7, reason: 'shelf' });
      expect(level).toMatchObject({ quantity: 7, sku: 'SPOON' });
      expect(await change({ quantity: 2, reason: 'found' })).toMatchObject({ quantity: 9 });
      const movements = await admin(site, 'GET', `/levels/${level.id}/movements`);
      expect(movements).toMatchObject([
        { type: 'adjustment', quantity: 2, note: 'found', made_by: expect.any(String) },
        { type: 'count', quantity: 7, note: 'shelf', made_by: expect.any(String) },
      ]);
      expect(await refusal(`/items/${id}/adjust`, { counted: 1, quantity: 1 })).toEqual({
        status: 400,
        paths: ['quantity'],
      });
      expect((await refusal('/items/999999/adjust', { counted: 1 })).status).toBe(404);
    }
  );

  it('shows the grid sorted, with low marks of levels', async () => {
    const grid = async (query: string): Promise<StockGridRow[]> =>
      admin(site, 'GET', `/stock-grid?search=GRID-&${query}`);
    for (const [sku, quantity] of [
      ['GRID-B', 5],
      ['GRID-A', 30],
      ['GRID-C', -1],
    ] as const) {
      await createItem(site, sku, quantity, { low_at: 2 });
    }
    const skus = async (query: string) => (await grid(query)).map(({ sku }) => sku);
    expect(await skus('sort=sku')).toEqual(['GRID-A', 'GRID-B', 'GRID-C']);
    expect(await skus('sort=-sku')).toEqual(['GRID-C', 'GRID-B', 'GRID-A']);
    expect(await skus('sort=total')).toEqual(['GRID-C', 'GRID-B', 'GRID-A']);
    expect(await skus('sort=-total')).toEqual(['GRID-A', 'GRID-B', 'GRID-C']);
    expect(await skus('low=true')).toEqual(['GRID-C']);
    expect(await skus('negative=false&sort=sku')).toEqual(['GRID-A', 'GRID-B']);
    const [row] = await grid('sort=sku');
    const { id } = row!.levels[0]!;
    expect(await admin(site, 'PUT', `/levels/${id}`, { low_at: 30 })).toMatchObject({ low_at: 30 });
    expect(await skus('low=true&sort=sku')).toEqual(['GRID-A', 'GRID-C']);
    expect((await grid('sort=sku'))[0]).toMatchObject({
      low: true,
      low_at: 2,
      levels: [{ low_at: 30, low: true, quantity: 30 }],
    });
    expect(await admin(site, 'PUT', `/levels/${id}`, { low_at: null })).toMatchObject({
      low_at: null,
    });
    expect(await skus('low=true&sort=sku')).toEqual(['GRID-C']);
    expect((await site.request('GET', '/switchboard/stock-grid?sort=price')).status).toBe(400);
    expect(await admin(site, 'GET', `/locations/${north.id}`)).toMatchObject({ code: 'north' });
    for (const path of ['locations', 'levels', 'transfers', 'stocktakes']) {
      expect((await site.request('GET', `/switchboard/${path}/999999`)).status).toBe(404);
    }
  });

  itOnce(database)('refuses what makes no sense, and names the field', async () => {
    const lines = [{ item: 'MUG', quantity: 1 }];
    const to = { from: 'main', to: 'north' };
    const ahead = new Date(Date.now() + 60_000).toISOString();
    const cases: [string, object, string][] = [
      ['/transfers', { ...to, lines: [] }, 'lines'],
      ['/transfers', { from: 'main', to: 'main', lines }, 'to'],
      ['/transfers', { from: 'nowhere', to: 'main', lines }, 'from'],
      ['/transfers', { ...to, lines: [{ item: 'NONE', quantity: 1 }] }, 'lines.0.item'],
      ['/transfers', { ...to, lines: [{ item: 'MUG', quantity: 0 }] }, 'lines.0.quantity'],
      ['/transfers', { ...to, occurred_at: ahead, lines }, 'occurred_at'],
      ['/stocktakes', { location: 'main', counts: [] }, 'counts'],
      ['/stocktakes', { counts: lines }, 'location'],
      ['/stocktakes', { location: 'main', counts: [lines[0], lines[0]] }, 'counts.1.item'],
      [
        '/stocktakes',
        { location: 'main', counts: [{ item: 'MUG', quantity: -1 }] },
        'counts.0.quantity',
      ],
      ['/stocktakes', { location: 'main', occurred_at: 'now', counts: lines }, 'occurred_at'],
    ];
    for (const [path, body, field] of cases) {
      expect([field, await refusal(path, body)]).toEqual([field, { status: 400, paths: [field] }]);
    }
    expect(await levels('MUG')).toEqual([6, 4]);
  });
});
