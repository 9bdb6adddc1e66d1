import { createAdminRole, createAdminUser } from '../support/accounts';
import { describeEach, anyDatabase } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import { admin, allProcessed, createItem, createTill, eventOf, type Till } from './pos-till';

jest.setTimeout(180_000);

const WRITES = ['sale:write', 'refund:write', 'inventory:write', 'closing:write'];
const DAY = '2026-03-02';
const at = (time: string): string => `${DAY}T${time}Z`;

describeEach(anyDatabase(), 'the log of tills', (database) => {
  let site: Site;
  let till: Till;
  let other: Till;
  beforeAll(async () => {
    site = await startSite({ database, options: { pos: { timeZone: 'Asia/Kolkata' } } });
    for (const sku of ['MUG-BLUE', 'BOWL']) await createItem(site, sku, 100);
    till = await createTill(site, { name: 'Front', scopes: WRITES, customers: 'create' });
    other = await createTill(site, { name: 'Back', scopes: WRITES });
    await till.send('sale', {
      external_id: 'till-1-000123',
      occurred_at: at('09:00:00'),
      currency: 'GBP',
      total: 1798,
      line_items: [
        { sku: 'MUG-BLUE', quantity: 2, unit_price: 600 },
        { sku: 'NEVER-HEARD-OF', quantity: 1, unit_price: 598 },
      ],
      customer: { email: 'ada@example.test', first_name: 'Ada', last_name: 'Lovelace' },
    });
    await till.refund('till-1-000123', {
      external_id: 'R-7',
      occurred_at: at('10:00:00'),
      line_items: [{ sku: 'MUG-BLUE', quantity: 1 }],
    });
    await other.send('sale', {
      external_id: 'back_1%',
      occurred_at: at('11:00:00'),
      currency: 'EUR',
      total: 500,
      line_items: [{ sku: 'BOWL', quantity: 3, unit_price: 100 }],
    });
    await allProcessed(site);
  });
  afterAll(() => site?.stop());

  const found = async (query: string): Promise<string[]> =>
    (await admin(site, 'GET', `/pos-events?${query}`)).map(
      ({ external_id: id }: { external_id: string }) => id
    );
  const sought = (text: string, more = '') => found(`q=${encodeURIComponent(text)}${more}`);

  it('is searched by part of an id, SKU and customer, and by an amount', async () => {
    expect(await sought('000123')).toEqual(['R-7', 'till-1-000123']);
    expect(await sought('mug-b')).toEqual(['R-7', 'till-1-000123']);
    expect(await sought('ada love')).toEqual(['till-1-000123']);
    expect(await sought('17.98')).toEqual(['till-1-000123']);
    expect(await sought('6.00')).toEqual(['R-7']);
    expect(await sought('5')).toEqual(['back_1%']);
    expect(await sought('%')).toEqual(['back_1%']);
    expect(await sought('back_1%')).toEqual(['back_1%']);
    expect(await sought('total')).toEqual([]);
    expect(await sought('000123', '&kind=refund')).toEqual(['R-7']);
    expect(await sought('000123', `&connection=${other.id}`)).toEqual([]);
    const { body } = await site.request(
      'GET',
      '/switchboard/pos-events?q=000123&per_page=1&page=2'
    );
    expect(body.data.map(({ kind }: { kind: string }) => kind)).toEqual(['sale']);
    expect(body.meta.pagination).toMatchObject({ page: 2, total: 2, page_count: 2 });
    expect(Date.parse(body.meta.searched_from)).toBeLessThanOrEqual(
      Date.parse(body.data[0].received_at)
    );
  });

  it('says so of a search where nothing is left to be searched', async () => {
    const { body } = await site.request('GET', '/switchboard/pos-events?q=x&state=failed');
    expect([body.data, body.meta.searched_from]).toEqual([[], null]);
  });

  it.each([
    ['nothing', 'q='],
    ['white space', 'q=%20'],
    ['too much', `q=${'x'.repeat(201)}`],
  ])('answers a search for %s with a 400 that names it', async (_what, query) => {
    const { status, body } = await site.request('GET', `/switchboard/pos-events?${query}`);
    expect([status, body.error.details.errors[0].path]).toEqual([400, ['q']]);
  });

  it('has what records count for, and a sale its refunds and its contact', async () => {
    const [listed] = await admin(site, 'GET', '/pos-events?external_id=till-1-000123');
    expect(listed).toMatchObject({
      money: { currency: 'GBP', total: 1798 },
      closing_summary: null,
    });
    const [refund] = await admin(site, 'GET', '/pos-events?external_id=R-7');
    expect(refund.money).toEqual({ currency: 'GBP', total: 600 });
    const sale = await waitFor(async () => {
      const event = await eventOf(site, listed.id);
      return event.contact === null ? null : event;
    });
    expect(sale).toMatchObject({
      sale: null,
      refunds: [{ id: refund.id, external_id: 'R-7' }],
    });
    const contacts = await site.request(
      'GET',
      `/switchboard/contacts/${sale.contact.id}/purchases`
    );
    const bought = contacts.body.data.map(({ external_id: id }: { external_id: string }) => id);
    expect(bought).toContain('till-1-000123');
    expect(await eventOf(site, refund.id)).toMatchObject({
      refunds: [],
      sale: { id: listed.id, external_id: 'till-1-000123' },
    });
  });

  it('has how closings compare, beside them', async () => {
    const closing = await till.send('closing', {
      external_id: 'Z-1',
      occurred_at: at('18:00:00'),
      from: at('00:00:00'),
      to: at('18:00:00'),
      totals: [
        { currency: 'GBP', sales: { count: 2, total: 1798 }, refunds: { count: 1, total: 600 } },
      ],
      external_ids: ['till-1-000123', 'R-7', 'lost'],
    });
    expect(closing.body.state).toBe('differs');
    const closings = await admin(site, 'GET', `/pos-events?kind=closing&connection=${till.id}`);
    expect(closings).toHaveLength(1);
    expect(closings[0]).toMatchObject({ external_id: 'Z-1', money: null });
    const { from, to, ...summary } = closings[0].closing_summary;
    expect([from, to].map(Date.parse)).toEqual([at('00:00:00'), at('18:00:00')].map(Date.parse));
    expect(summary).toEqual({
      missing: 1,
      unexpected: 0,
      differences: [{ currency: 'GBP', field: 'sales.count', till: 2, site: 1 }],
    });
    expect(await found(`kind=closing&connection=${other.id}`)).toEqual([]);
    expect(await found('kind=closing')).toEqual(['Z-1']);
  });

  it('counts pieces where it is asked to, of unknown items too', async () => {
    const read = async (query: string) =>
      (await site.request('GET', `/switchboard/sales-days?from=${DAY}&to=${DAY}${query}`)).body;
    const byTill = await read('&group=connection&pieces=true');
    expect(byTill.data.map(({ pieces }: { pieces: unknown }) => pieces)).toEqual([
      { sold: 3, returned: 1 },
      { sold: 3, returned: 0 },
    ]);
    expect(byTill.meta.names).toEqual({ [till.id]: 'Front', [other.id]: 'Back' });
    expect(byTill.meta.time_zone).toBe('Asia/Kolkata');
    const byItem = await read('&group=item&pieces=true');
    expect(
      byItem.data.map(({ item, pieces }: { item: { sku: string }; pieces: unknown }) => [
        item.sku,
        pieces,
      ])
    ).toEqual([
      ['MUG-BLUE', { sold: 2, returned: 1 }],
      ['BOWL', { sold: 3, returned: 0 }],
    ]);
    expect((await read('&pieces=false')).data[0]).not.toHaveProperty('pieces');
    const csv = await site.request(
      'GET',
      `/switchboard/sales-days?from=${DAY}&to=${DAY}&group=connection&pieces=true&format=csv`
    );
    expect(csv.text.split('\r\n').slice(0, 2)).toEqual([
      'connection,currency,sales_count,sales_total,refunds_count,refunds_total,pieces_sold,pieces_returned,connection_name',
      `${till.id},GBP,1,1798,1,600,3,1,Front`,
    ]);
  });

  it('says which day it is in the shop', async () => {
    const day = (offset: number) =>
      new Intl.DateTimeFormat('en-CA', { timeZone: 'Asia/Kolkata' }).format(Date.now() + offset);
    const { today, time_zone: zone } = await admin(site, 'GET', '/shop-day');
    expect(zone).toBe('Asia/Kolkata');
    // Midnight may pass between the two.
    expect([day(0), day(-60_000)]).toContain(today);
  });

  it('lists what was refused of all connections, newest first', async () => {
    expect((await till.send('sale', { external_id: 'BAD-1' })).status).toBe(400);
    expect((await other.send('sale', { external_id: 'BAD-2' })).status).toBe(400);
    const { body } = await site.request('GET', '/switchboard/pos-refusals');
    expect(body.data).toMatchObject([
      { external_id: 'BAD-2', code: 'schema_invalid', connection: { id: other.id, name: 'Back' } },
      { external_id: 'BAD-1', connection: { id: till.id, name: 'Front' } },
    ]);
    expect(body.meta.pagination.total).toBe(2);
    const own = await admin(site, 'GET', `/pos-refusals?connection=${till.id}`);
    expect(own).toHaveLength(1);
    const wrong = await site.request('GET', '/switchboard/pos-refusals?connection=x');
    expect(wrong.status).toBe(400);
  });

  it('gives refusals to those who may see connections, the day to those who may see sales', async () => {
    const ask = async (action: string): Promise<number[]> => {
      const role = await createAdminRole(site, [`plugin::switchboard.${action}`]);
      const { token } = await createAdminUser(site, { role });
      const answers = await Promise.all(
        ['pos-refusals', 'shop-day'].map((path) =>
          site.request('GET', `/switchboard/${path}`, { as: { token } })
        )
      );
      return answers.map(({ status }) => status);
    };
    expect(await ask('connections.read')).toEqual([200, 403]);
    expect(await ask('sales.read')).toEqual([403, 200]);
  });
});
