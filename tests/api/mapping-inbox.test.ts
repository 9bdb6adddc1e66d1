import type { Resolved, UnknownValue } from '../../shared/contracts/pos-mapping';
import { anyDatabase, databases, describeEach, itOnce } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import {
  admin,
  createItem,
  createTill,
  isoAgo,
  levelOf,
  rebuild,
  settled,
  type Till,
} from './pos-till';

describeEach(databases(), 'the mapping inbox', (database) => {
  let site: Site;
  let till: Till;

  beforeAll(async () => {
    site = await startSite({ database });
    till = await createTill(site, {
      scopes: ['sale:write', 'refund:write', 'inventory:write', 'stock:read'],
    });
  }, 120_000);
  afterAll(() => site?.stop(), 60_000);

  const inbox = async (query = ''): Promise<UnknownValue[]> =>
    admin(site, 'GET', `/mapping-inbox?per_page=100${query}`);
  const rowOf = async (value: string): Promise<UnknownValue | undefined> =>
    (await inbox()).find((row) => row.value === value);
  const resolve = (body: object): Promise<Resolved> =>
    admin(site, 'POST', '/mapping-inbox/resolve', body, 200);
  const undo = (id: number | null) => admin(site, 'POST', '/mapping-inbox/undo', { id }, 200);
  const level = async (sku: string, quantity: number, location = '') =>
    waitFor(
      async () => (await levelOf(site, sku, location)) === quantity,
      30_000,
      `${sku} to be ${quantity}`
    );
  const waiting = async (lines: [string, number][], more = {}) => {
    const { body } = await till.sale(lines, more);
    await settled(site, body.event_id, 'needs_mapping');
    return body.event_id as number;
  };

  it('has a row for each unknown value, which an existing item resolves, for later records too', async () => {
    await createItem(site, 'SCARF', 40);
    const first = await waiting([['SCARF-GREY', 2]]);
    const second = await waiting([['SCARF-GREY', 1]]);
    const row = await rowOf('SCARF-GREY');
    expect(row).toEqual({
      kind: 'sku',
      value: 'SCARF-GREY',
      records: 2,
      by_kind: { sale: 2, refund: 0, inventory: 0 },
      pieces: 3,
      first_at: expect.stringMatching(/\+00:00$/),
      last_at: expect.stringMatching(/\+00:00$/),
    });
    const { id: item } = (await admin(site, 'GET', '/items?search=SCARF'))[0];
    const asked = { kind: 'sku', value: 'SCARF-GREY', to: { item } };
    expect(await resolve({ ...asked, preview: true })).toEqual({ id: null, records: 2, pieces: 3 });
    expect(await rowOf('SCARF-GREY')).toEqual(row);
    const { id, ...reached } = await resolve(asked);
    expect(reached).toEqual({ records: 2, pieces: 3 });
    expect(id).toEqual(expect.any(Number));
    for (const event of [first, second]) await settled(site, event, 'applied');
    expect(await rowOf('SCARF-GREY')).toBeUndefined();
    await level('SCARF', 37);

    const later = await till.sale([['SCARF-GREY', 4]]);
    await settled(site, later.body.event_id, 'applied');
    await level('SCARF', 33);
    const [mapping] = await admin(site, 'GET', '/mapping-inbox/resolved');
    expect(mapping).toMatchObject({
      id,
      kind: 'sku',
      value: 'SCARF-GREY',
      to: { item: { id: item, sku: 'SCARF' }, created: false },
    });

    expect(await undo(id)).toEqual({ id, records: 3 });
    for (const event of [first, second, later.body.event_id]) {
      await settled(site, event, 'needs_mapping');
    }
    await level('SCARF', 40);
    expect(await rowOf('SCARF-GREY')).toMatchObject({ records: 3, pieces: 7 });
    expect(await undo(id)).toEqual({ id, records: 0 });

    const other = await createItem(site, 'SCARF-OTHER', 10);
    await resolve({ kind: 'sku', value: 'SCARF-GREY', to: { item: other.id } });
    await level('SCARF-OTHER', 3);
    await level('SCARF', 40);
    expect((await rebuild(site)).differences).toEqual([]);
  });

  itOnce(database)(
    'makes an item where there is none, and archives it when that is undone',
    async () => {
      const gtin = '4006381333931';
      const sale = await till.send('sale', {
        external_id: 'by-gtin',
        occurred_at: isoAgo(0),
        currency: 'GBP',
        total: 1,
        line_items: [{ gtin, quantity: 2 }],
      });
      await settled(site, sale.body.event_id, 'needs_mapping');
      expect(await rowOf(gtin)).toMatchObject({
        kind: 'gtin',
        records: 1,
        by_kind: { sale: 1, refund: 0, inventory: 0 },
        pieces: 2,
      });
      const { id } = await resolve({
        kind: 'gtin',
        value: gtin,
        to: { create: { sku: 'PEN', name: 'Pen' } },
      });
      await settled(site, sale.body.event_id, 'applied');
      await level('PEN', -2);
      const later = await till.sale([['PEN', 1]]);
      await settled(site, later.body.event_id, 'applied');
      await undo(id);
      await settled(site, sale.body.event_id, 'needs_mapping');
      await settled(site, later.body.event_id, 'needs_mapping');
      await level('PEN', 0);
      expect(await rowOf(gtin)).toMatchObject({ kind: 'gtin', records: 1 });
      await resolve({ kind: 'gtin', value: gtin, to: { create: { sku: 'PEN' } } });
      await level('PEN', -3);
      expect((await rebuild(site)).differences).toEqual([]);
    }
  );

  itOnce(database)(
    'takes back only its own lines where it brought an archived item back',
    async () => {
      const { id: item } = await createItem(site, 'TIE', 10);
      const before = await till.sale([['TIE', 2]]);
      await settled(site, before.body.event_id, 'applied');
      await admin(site, 'DELETE', `/items/${item}`, undefined, 204);
      const after = await waiting([['TIE', 3]]);
      const { id } = await resolve({ kind: 'sku', value: 'TIE', to: { create: true } });
      await settled(site, after, 'applied');
      await level('TIE', 5);
      expect(await undo(id)).toEqual({ id, records: 1 });
      await settled(site, after, 'needs_mapping');
      await level('TIE', 8);
      expect((await admin(site, 'GET', `/items/${item}`)).archived_at).not.toBeNull();
      const { state, movements } = await admin(site, 'GET', `/pos-events/${before.body.event_id}`);
      expect([state, movements]).toEqual(['applied', [expect.objectContaining({ quantity: -2 })]]);
      expect((await rebuild(site)).differences).toEqual([]);
    }
  );

  itOnce(database)('takes a count back that was mapped to the wrong item', async () => {
    await createItem(site, 'CUP', 20);
    const sold = await till.sale([['CUP', 3]], { occurred_at: isoAgo(600) });
    await settled(site, sold.body.event_id, 'applied');
    const counted = await till.count([['CUP-OLD', 99]], { occurred_at: isoAgo(300) });
    await settled(site, counted.body.event_id, 'needs_mapping');
    const { id } = await resolve({ kind: 'sku', value: 'CUP-OLD', to: { item: 'CUP' } });
    await level('CUP', 99);
    await undo(id);
    await level('CUP', 17);
    await settled(site, counted.body.event_id, 'needs_mapping');
    const again = await till.count([['CUP', 5]], { occurred_at: isoAgo(400) });
    expect(again.status).toBe(202);
    await level('CUP', 5);
    expect((await rebuild(site)).differences).toEqual([]);
  });

  it('loses nothing that commits while it waits to take a count back', async () => {
    const { id: item } = await createItem(site, 'PLATE', 100);
    const counted = await till.count([['PLATE-OLD', 999]], { occurred_at: isoAgo(300) });
    await settled(site, counted.body.event_id, 'needs_mapping');
    const { id } = await resolve({ kind: 'sku', value: 'PLATE-OLD', to: { item: 'PLATE' } });
    await level('PLATE', 999);
    // Another node that writes a sale of five, and takes its time to commit.
    const selling = site.evaluate(
      ({ strapi }, itemId) =>
        strapi.db.connection.transaction(async (trx: typeof strapi.db.connection) => {
          const [row] = await trx('switchboard_levels').where({ item_id: itemId }).forUpdate();
          const quantity = Number(row.quantity) - 5;
          const at = Date.now();
          const line = { level_id: row.id, type: 'adjustment', at, quantity: -5, effect: -5 };
          await trx('switchboard_movements').insert({ ...line, quantity_after: quantity });
          await trx('switchboard_levels').where({ id: row.id }).update({ quantity });
          await new Promise((resolve) => setTimeout(resolve, 1500));
        }),
      item
    );
    await new Promise((resolve) => setTimeout(resolve, 300));
    await undo(id);
    await selling;
    await settled(site, counted.body.event_id, 'needs_mapping');
    await level('PLATE', 95);
    expect((await rebuild(site)).differences).toEqual([]);
  });

  it('takes back what is sold of an item while the mapping that made it is undone', async () => {
    const sellers = await Promise.all([1, 2, 3, 4].map(() => createTill(site)));
    await waiting([['UNDER-WAY', 1]]);
    const { id } = await resolve({ kind: 'sku', value: 'UNDER-WAY', to: { create: true } });
    await level('UNDER-WAY', -1);
    const sell = () => sellers.map((seller) => seller.sale([['UNDER-WAY', 1]]));
    const answers = [...sell(), ...sell()];
    await undo(id);
    answers.push(...sell());
    for (const { body } of await Promise.all(answers)) {
      await settled(site, body.event_id, 'needs_mapping');
    }
    expect(await rowOf('UNDER-WAY')).toMatchObject({ records: 13, pieces: 13 });
    await level('UNDER-WAY', 0);
    expect((await rebuild(site)).differences).toEqual([]);
  });

  it('maps the location of one connection', async () => {
    const annex = await admin(site, 'POST', '/locations', { name: 'Annex', code: 'annex' });
    await createItem(site, 'BOOK', 9);
    const located = await createTill(site, {
      name: 'Located',
      locations: [{ ref: 'shop', location: 'main' }],
    });
    const more = { location_ref: 'store-2' };
    const { body } = await located.sale([['BOOK', 2]], more);
    await settled(site, body.event_id, 'needs_mapping');
    const row = await rowOf('store-2');
    expect(row).toMatchObject({
      kind: 'location_ref',
      connection: { id: located.id, name: 'Located' },
      records: 1,
      by_kind: { sale: 1, refund: 0, inventory: 0 },
      pieces: 2,
    });
    const { id } = await resolve({
      kind: 'location_ref',
      value: 'store-2',
      connection: located.id,
      to: { location: annex.id },
    });
    await level('BOOK', -2, 'annex');
    const later = await located.sale([['BOOK', 1]], more);
    await settled(site, later.body.event_id, 'applied');
    await level('BOOK', -3, 'annex');
    await undo(id);
    await settled(site, body.event_id, 'needs_mapping');
    await settled(site, later.body.event_id, 'needs_mapping');
    await level('BOOK', 0, 'annex');
    expect(await rowOf('store-2')).toMatchObject({ records: 2, pieces: 3 });
    expect(await levelOf(site, 'BOOK', 'main')).toBe(9);
    expect((await rebuild(site)).differences).toEqual([]);
  });

  it('is paged, filtered and searched', async () => {
    for (const sku of ['PAGE-1', 'PAGE-2', 'PAGE-3']) await waiting([[sku, 1]]);
    const { body } = await site.request(
      'GET',
      '/switchboard/mapping-inbox?search=page-&kind=sku&per_page=2'
    );
    expect(body.data.map(({ value }: UnknownValue) => value)).toEqual(['PAGE-3', 'PAGE-2']);
    expect(body.meta.pagination).toMatchObject({ total: 3, page_count: 2 });
    expect(await inbox('&search=page-&kind=gtin')).toEqual([]);
  });

  // What follows is of the rules of mappings; random-worlds.test.ts plays them on each database, too.
  if (!anyDatabase().includes(database)) return;

  it('ignores what its owner says to ignore, and brings it back', async () => {
    await createItem(site, 'PAPER', 10);
    const { body } = await till.sale([
      ['BAG', 1],
      ['PAPER', 2],
    ]);
    await settled(site, body.event_id, 'partially_applied');
    const { id } = await resolve({ kind: 'sku', value: 'BAG', to: { ignore: true } });
    const event = await settled(site, body.event_id, 'applied');
    expect(event).toMatchObject({ waiting: [], ignored: [0] });
    const only = await till.sale([['BAG', 1]]);
    await settled(site, only.body.event_id, 'applied');
    await undo(id);
    await settled(site, only.body.event_id, 'needs_mapping');
    await settled(site, body.event_id, 'partially_applied');
    expect(await rowOf('BAG')).toMatchObject({ records: 2, pieces: 2 });
    await level('PAPER', 8);
  });

  it('keeps a newer count in mind that was accepted, and waits, when it takes one back', async () => {
    const { id: item } = await createItem(site, 'JUG', 20);
    const counted = await till.count([['JUG-OLD', 99]], { occurred_at: isoAgo(900) });
    await settled(site, counted.body.event_id, 'needs_mapping');
    const { id } = await resolve({ kind: 'sku', value: 'JUG-OLD', to: { item: 'JUG' } });
    await level('JUG', 99);
    // As accepting a count leaves it, until it is processed.
    await site.evaluate(
      ({ strapi }, itemId, at) =>
        strapi.db
          .connection('switchboard_levels')
          .where({ item_id: itemId })
          .update({ accepted_count_at: at }),
      item,
      Date.now() - 300_000
    );
    await undo(id);
    await level('JUG', 20);
    const older = await till.count([['JUG', 5]], { occurred_at: isoAgo(600) });
    expect([older.status, older.body.code]).toEqual([409, 'stale_count']);
    expect((await till.count([['JUG', 6]], { occurred_at: isoAgo(60) })).status).toBe(202);
    await level('JUG', 6);
  });

  it('has all wait again that named a value, in the ledger or not, where its mapping made the item', async () => {
    const located = await createTill(site, { locations: [{ ref: 'shop', location: 'main' }] });
    const first = await waiting([['MADE', 1]]);
    const { id } = await resolve({ kind: 'sku', value: 'MADE', to: { create: true } });
    await settled(site, first, 'applied');
    const nowhere = await located.sale([['MADE', 2]], { location_ref: 'MADE-PLACE' });
    await settled(site, nowhere.body.event_id, 'needs_mapping');
    const refund = await till.refund('made-never', { line_items: [{ sku: 'MADE', quantity: 1 }] });
    await settled(site, refund.body.event_id, 'held');

    expect(await undo(id)).toEqual({ id, records: 3 });
    await settled(site, first, 'needs_mapping');
    await waitFor(async () => (await rowOf('MADE'))?.records === 3, 30_000, 'three to wait');

    await createItem(site, 'MEANT', 10);
    await resolve({ kind: 'sku', value: 'MADE', to: { item: 'MEANT' } });
    await level('MEANT', 9);
    const { id: place } = await admin(site, 'POST', '/locations', {
      name: 'P',
      code: 'made-place',
    });
    const named = { kind: 'location_ref', value: 'MADE-PLACE', connection: located.id };
    await resolve({ ...named, to: { location: place } });
    await level('MEANT', -2, 'made-place');
    await settled(site, nowhere.body.event_id, 'applied');
    expect((await rebuild(site)).differences).toEqual([]);
  });

  it('takes a value back that was mapped twice, from both', async () => {
    for (const sku of ['FIRST', 'SECOND', 'RIGHT']) await createItem(site, sku, 10);
    const one = await waiting([['CORRECTED', 1]]);
    await resolve({ kind: 'sku', value: 'CORRECTED', to: { item: 'FIRST' } });
    await settled(site, one, 'applied');
    const { id } = await resolve({ kind: 'sku', value: 'CORRECTED', to: { item: 'SECOND' } });
    const two = await till.sale([['CORRECTED', 2]]);
    await settled(site, two.body.event_id, 'applied');
    await level('FIRST', 9);
    await level('SECOND', 8);

    expect(await undo(id)).toEqual({ id, records: 2 });
    for (const event of [one, two.body.event_id]) await settled(site, event, 'needs_mapping');
    await level('FIRST', 10);
    await level('SECOND', 10);
    await resolve({ kind: 'sku', value: 'CORRECTED', to: { item: 'RIGHT' } });
    await level('RIGHT', 7);
    expect((await rebuild(site)).differences).toEqual([]);
  });

  it('refuses no count in test mode for one that was mapped to the wrong item', async () => {
    await createItem(site, 'TRIED', 10);
    const trial = await createTill(site, { mode: 'test' });
    const first = await trial.count([['TRIED-OLD', 5]], { occurred_at: isoAgo(900) });
    await settled(site, first.body.event_id, 'simulated');
    const { id } = await resolve({ kind: 'sku', value: 'TRIED-OLD', to: { item: 'TRIED' } });
    const wrong = await trial.count([['TRIED-OLD', 99]], { occurred_at: isoAgo(300) });
    await settled(site, wrong.body.event_id, 'simulated');
    const refused = await trial.count([['TRIED', 5]], { occurred_at: isoAgo(600) });
    expect(refused.status).toBe(409);
    await undo(id);
    await waitFor(
      async () => (await trial.count([['TRIED', 5]], { occurred_at: isoAgo(600) })).status === 202
    );
  });

  it('says of which kinds the records are, for each of the values', async () => {
    await waiting([
      ['KIND-A', 2],
      ['KIND-B', 1],
    ]);
    const adjustment = await till.count([['KIND-A', -4]], { mode: 'relative' });
    await settled(site, adjustment.body.event_id, 'needs_mapping');
    const refund = await till.refund('kind-never', {
      line_items: [{ sku: 'KIND-A', quantity: 3 }],
    });
    await settled(site, refund.body.event_id, 'held');
    await admin(site, 'POST', `/pos-events/${refund.body.event_id}/accept-without-sale`, {}, 200);
    await settled(site, refund.body.event_id, 'needs_mapping');
    expect(await rowOf('KIND-A')).toMatchObject({
      records: 3,
      by_kind: { sale: 1, refund: 1, inventory: 1 },
      pieces: 9,
    });
    expect(await rowOf('KIND-B')).toMatchObject({
      records: 1,
      by_kind: { sale: 1, refund: 0, inventory: 0 },
      pieces: 1,
    });
  });

  it('refunds follow their sale through a mapping and back', async () => {
    await createItem(site, 'HAT', 10);
    const sale = await till.sale([['HAT-RED', 3]], { external_id: 'hat-sale' });
    const refund = await till.refund('hat-sale');
    await settled(site, sale.body.event_id, 'needs_mapping');
    const { id } = await resolve({ kind: 'sku', value: 'HAT-RED', to: { item: 'HAT' } });
    await settled(site, refund.body.event_id, 'applied');
    await level('HAT', 10);
    const event = await admin(site, 'GET', `/pos-events/${refund.body.event_id}`);
    expect(event.movements).toMatchObject([{ sku: 'HAT', quantity: 3 }]);
    await undo(id);
    await settled(site, sale.body.event_id, 'needs_mapping');
    await settled(site, refund.body.event_id, 'needs_mapping');
    await level('HAT', 10);
    expect((await rebuild(site)).differences).toEqual([]);
  });

  it('maps the location of a connection that was deleted since: its records are there', async () => {
    await createItem(site, 'GLOBE', 9);
    const { id: cellar } = await admin(site, 'POST', '/locations', {
      name: 'Cellar',
      code: 'cellar',
    });
    const gone = await createTill(site, { locations: [{ ref: 'shop', location: 'main' }] });
    const { body } = await gone.sale([['GLOBE', 2]], { location_ref: 'under' });
    await settled(site, body.event_id, 'needs_mapping');
    await admin(site, 'DELETE', `/connections/${gone.id}`, undefined, 204);
    expect(await rowOf('under')).toMatchObject({ connection: { id: gone.id }, records: 1 });
    const named = { kind: 'location_ref', value: 'under', connection: gone.id };
    await resolve({ ...named, to: { location: cellar } });
    await settled(site, body.event_id, 'applied');
    expect(await levelOf(site, 'GLOBE', 'cellar')).toBe(-2);
  });

  it('judges counts by the location that a reference is mapped to', async () => {
    const yard = await admin(site, 'POST', '/locations', { name: 'Yard', code: 'yard' });
    for (const sku of ['VASE', 'BOWL']) await createItem(site, sku, 9);
    const located = await createTill(site, {
      name: 'Counting',
      locations: [{ ref: 'shop', location: 'main' }],
    });
    const count = (lines: [string, number][], seconds: number, to = 'inventory') => {
      const body = {
        external_id: `yard-${seconds}`,
        occurred_at: isoAgo(seconds),
        location_ref: 'yard-ref',
        mode: 'absolute',
        counts: lines.map(([sku, quantity]) => ({ sku, quantity })),
      };
      return located.send(to, to === 'inventory' ? body : { kind: 'inventory', body });
    };
    const first = await count([['VASE', 1]], 900);
    await settled(site, first.body.event_id, 'needs_mapping');
    await resolve({
      kind: 'location_ref',
      value: 'yard-ref',
      connection: located.id,
      to: { location: yard.id },
    });
    await level('VASE', 1, 'yard');
    const newer = await count([['VASE', 2]], 300);
    expect(newer.status).toBe(202);
    // Whether the newer one was applied by now or waits.
    const older = await count([['VASE', 3]], 600);
    expect([older.status, older.body.code]).toEqual([409, 'stale_count']);
    const asked = await count([['VASE', 3]], 601, 'validate');
    expect([asked.status, asked.body.code]).toEqual([409, 'stale_count']);
    const both: [string, number][] = [
      ['VASE', 3],
      ['BOWL', 4],
    ];
    const stale = [{ sku: 'VASE', quantity: 3 }];
    expect((await count(both, 602, 'validate')).body).toMatchObject({ ok: true, stale });
    const part = await count(both, 603);
    expect([part.status, part.body.stale]).toEqual([202, stale]);
    await level('BOWL', 4, 'yard');
    await level('VASE', 2, 'yard');
    expect((await rebuild(site)).differences).toEqual([]);
  });

  it('holds what is mapped to an archived item until the item is back', async () => {
    const { id: item } = await createItem(site, 'LAMP', 5);
    await waiting([['LAMP-X', 1]]);
    await resolve({ kind: 'sku', value: 'LAMP-X', to: { item } });
    await level('LAMP', 4);
    await admin(site, 'DELETE', `/items/${item}`, undefined, 204);
    const event = await waiting([['LAMP-X', 1]]);
    await admin(site, 'PUT', `/items/${item}`, { archived: false });
    await settled(site, event, 'applied');
    await level('LAMP', 3);
  });

  it.each([
    [{ value: 'X', to: { ignore: true } }, 'kind'],
    [{ kind: 'sku', value: '', to: { ignore: true } }, 'value'],
    [{ kind: 'sku', value: 'X', to: {} }, 'to'],
    [{ kind: 'sku', value: 'X', to: { item: 1, ignore: true } }, 'to'],
    [{ kind: 'sku', value: 'X', to: { item: 999_999 } }, 'to.item'],
    [{ kind: 'sku', value: 'X', to: { item: 'NONE' } }, 'to.item'],
    [{ kind: 'sku', value: 'X', to: { location: 1 } }, 'to.location'],
    [{ kind: 'location_ref', value: 'X', to: { location: 1 } }, 'connection'],
    [{ kind: 'location_ref', value: 'X', connection: 999, to: { location: 1 } }, 'connection'],
    [{ kind: 'location_ref', value: 'X', connection: 1, to: { ignore: true } }, 'to.location'],
    [{ kind: 'location_ref', value: 'X', connection: 1, to: { location: 'none' } }, 'to.location'],
  ])('refuses %j and names %s', async (body, field) => {
    const answer = await site.request('POST', '/switchboard/mapping-inbox/resolve', { body });
    expect(answer.status).toBe(400);
    const paths = answer.body.error.details.errors.map(({ path }: { path: string[] }) =>
      path.join('.')
    );
    expect(paths).toContain(field);
  });

  it('refuses no count for one that was accepted for the wrong item and was not applied yet', async () => {
    await createItem(site, 'QUEUED', 10);
    const known = await till.count([['QUEUED', 8]], { occurred_at: isoAgo(900) });
    await settled(site, known.body.event_id, 'applied');
    const { id } = await resolve({ kind: 'sku', value: 'QUEUED-OLD', to: { item: 'QUEUED' } });
    await site.restart({ options: { pos: { process: false } } });
    const wrong = await till.count([['QUEUED-OLD', 99]], { occurred_at: isoAgo(300) });
    expect(wrong.status).toBe(202);
    await undo(id);
    await site.restart({ options: {} });
    await settled(site, wrong.body.event_id, 'needs_mapping');
    const older = await till.count([['QUEUED', 5]], { occurred_at: isoAgo(1000) });
    expect([older.status, older.body.code]).toEqual([409, 'stale_count']);
    expect((await till.count([['QUEUED', 5]], { occurred_at: isoAgo(600) })).status).toBe(202);
    await level('QUEUED', 5);
    expect((await rebuild(site)).differences).toEqual([]);
  });

  it('knows no mapping of another id, and nobody without the action', async () => {
    const { status } = await site.request('POST', '/switchboard/mapping-inbox/undo', {
      body: { id: 999_999 },
    });
    expect(status).toBe(404);
    expect(
      (await site.request('POST', '/switchboard/mapping-inbox/undo', { body: {} })).status
    ).toBe(400);
  });
});
