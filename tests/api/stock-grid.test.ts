import type { StockGridRow } from '../../shared/contracts/stock';
import type { Page } from '../../shared/contracts/webhooks';
import { describeEach, anyDatabase } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { admin, createItem, createTill, settled } from './pos-till';

describeEach(anyDatabase(), 'what the stock and event screens are drawn from', (database) => {
  let site: Site;
  let north: { id: number; code: string };

  beforeAll(async () => {
    site = await startSite({ database });
    north = await admin(site, 'POST', '/locations', { name: 'North', code: 'north' });
    const south = await admin(site, 'POST', '/locations', { name: 'South', code: 'south' });
    for (const [index, sku] of ['ALPHA', 'BETA', 'GAMMA'].entries()) {
      await admin(site, 'POST', '/items', {
        sku,
        name: `Item ${sku.toLowerCase()}`,
        low_at: 2,
        opening: [
          { quantity: 10 + index },
          { location: north.id, quantity: index },
          { location: south.id, quantity: 5 },
        ],
      });
    }
  }, 120_000);
  afterAll(() => site?.stop(), 60_000);

  const grid = async (query: string): Promise<Page<StockGridRow>> =>
    (await site.request('GET', `/switchboard/stock-grid${query}`)).body;

  it('pages by item, and no location of an item is on another page', async () => {
    const first = await grid('?per_page=2&page=1');
    expect(first.data.map(({ sku }) => sku)).toEqual(['ALPHA', 'BETA']);
    expect(first.meta.pagination).toEqual({ page: 1, per_page: 2, page_count: 2, total: 3 });
    for (const row of first.data) expect(row.levels).toHaveLength(3);
    const second = await grid('?per_page=2&page=2');
    expect(second.data.map(({ sku }) => sku)).toEqual(['GAMMA']);
    expect(second.data[0]).toMatchObject({ total: 12 + 2 + 5, low: true, negative: false });
    expect(second.data[0]?.levels).toContainEqual(
      expect.objectContaining({
        location: { id: north.id, code: 'north', name: 'North' },
        quantity: 2,
        last_counted_at: null,
      })
    );
  });

  it('finds by SKU and name, and says what is below nothing', async () => {
    const found = await grid('?search=item%20BETA');
    expect(found.data.map(({ sku }) => sku)).toEqual(['BETA']);
    expect((await grid('?search=%25')).data).toEqual([]);
    const { id } = found.data[0]!;
    await admin(site, 'POST', `/items/${id}/adjust`, { location: north.id, quantity: -4 });
    const [after] = (await grid('?search=BETA')).data;
    expect(after).toMatchObject({ total: 11 - 3 + 5, negative: true });
    // SQLite knows the small letters of ASCII alone.
    await admin(site, 'PUT', `/items/${id}`, { name: 'Écharpe' });
    expect((await grid('?search=%C3%89charpe')).data.map(({ sku }) => sku)).toEqual(['BETA']);
  });

  it('lists events of several states at once, and refuses one that is none', async () => {
    const till = await createTill(site);
    await createItem(site, 'KNOWN', 5);
    const partly = await till.sale([
      ['KNOWN', 1],
      ['UNKNOWN', 1],
    ]);
    const wholly = await till.sale([['UNKNOWN', 1]]);
    const applied = await till.sale([['KNOWN', 1]]);
    await settled(site, partly.body.event_id, 'partially_applied');
    await settled(site, wholly.body.event_id, 'needs_mapping');
    await settled(site, applied.body.event_id, 'applied');
    const list = await site.request(
      'GET',
      `/switchboard/pos-events?connection=${till.id}&state=needs_mapping,partially_applied`
    );
    expect(list.body.data.map(({ id }: { id: number }) => id)).toEqual([
      wholly.body.event_id,
      partly.body.event_id,
    ]);
    const bad = await site.request('GET', '/switchboard/pos-events?state=needs_mapping,nonsense');
    expect([bad.status, bad.body.error.name]).toEqual([400, 'ValidationError']);
  });

  it('says what a simulated record did not know', async () => {
    const till = await createTill(site, { mode: 'test' });
    const sale = await till.sale([
      ['KNOWN', 1],
      ['NEVER-SEEN', 2],
    ]);
    const event = await settled(site, sale.body.event_id, 'simulated');
    expect(event.waiting).toEqual([{ line: 1, sku: 'NEVER-SEEN' }]);
    await createItem(site, 'NEVER-SEEN', 1);
    const known = await site.request('GET', `/switchboard/pos-events/${sale.body.event_id}`);
    expect(known.body.data.state).toBe('simulated');
  });
});
