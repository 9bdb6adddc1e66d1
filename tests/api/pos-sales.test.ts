import { databases, describeEach, itOnce } from '../support/databases';
import { type Site, startSite } from '../support/site';
import {
  admin,
  allProcessed,
  createItem,
  createTill,
  eventOf,
  settled,
  type Till,
} from './pos-till';

jest.setTimeout(180_000);

describeEach(databases(), 'what was sold', (database) => {
  let site: Site;
  let mug: { id: number };
  beforeAll(async () => {
    site = await startSite({
      database,
      options: { pos: { ratePerMinute: 100_000, timeZone: 'America/New_York' } },
    });
    mug = await createItem(site, 'MUG', 1000);
  });
  afterAll(() => site?.stop());

  const days = (query: string) => admin(site, 'GET', `/sales-days?${query}`);
  const figures = (currency: string, sales: number[], refunds: number[] = [0, 0]) => ({
    currency,
    sales: { count: sales[0], total: sales[1] },
    refunds: { count: refunds[0], total: refunds[1] },
  });

  const sale = (
    till: Till,
    occurredAt: string,
    total: number,
    more: Record<string, unknown> = {}
  ) => till.sale([['MUG', 1]], { occurred_at: occurredAt, total, ...more });

  it('is told by day of the shop’s zone, connection and item, with refunds, to the cent', async () => {
    const [one, two] = [await createTill(site), await createTill(site)];
    const test = await createTill(site, { mode: 'test' });
    // The clocks of New York go forward on the 8th: it begins at 05:00 and ends at 04:00 UTC.
    await sale(one, '2026-03-08T04:59:00Z', 1);
    await sale(one, '2026-03-08T05:00:00Z', 20, { external_id: 'first' });
    await sale(one, '2026-03-09T03:59:59Z', 300);
    await sale(one, '2026-03-09T04:00:00Z', 4000);
    await sale(two, '2026-03-08T12:00:00Z', 50_000, { currency: 'EUR' });
    await sale(test, '2026-03-08T12:00:00Z', 600_000);
    await one.refund('first', { occurred_at: '2026-03-09T12:00:00Z', total: 7 });
    await one.send('sale', {
      external_id: 'lines',
      occurred_at: '2026-03-08T13:00:00Z',
      currency: 'GBP',
      total: 1000,
      line_items: [
        { sku: 'MUG', quantity: 3, unit_price: 399 },
        { sku: '=NOT-YET', quantity: 1, unit_price: 5 },
      ],
    });
    await allProcessed(site);
    const range = 'from=2026-03-07&to=2026-03-09';
    const gbp = [
      { day: '2026-03-07', ...figures('GBP', [1, 1]) },
      { day: '2026-03-08', ...figures('GBP', [3, 1320]) },
      { day: '2026-03-09', ...figures('GBP', [1, 4000], [1, 7]) },
    ];
    const eur = { day: '2026-03-08', ...figures('EUR', [1, 50_000]) };
    expect(await days(range)).toEqual([gbp[0], eur, gbp[1], gbp[2]]);
    expect(await days(`${range}&connection=${one.id}`)).toEqual(gbp);
    expect(await days('from=2026-03-08&to=2026-03-08&group=day')).toEqual([eur, gbp[1]]);
    expect(await days(`${range}&group=connection`)).toEqual([
      { connection: { id: one.id }, ...figures('GBP', [5, 5321], [1, 7]) },
      { connection: { id: two.id }, ...figures('EUR', [1, 50_000]) },
    ]);
    const summary = await admin(site, 'GET', `/connections/${one.id}/summary?${range}`);
    expect(summary).toEqual({ totals: [figures('GBP', [5, 5321], [1, 7])] });

    const item = { id: mug.id, sku: 'MUG' };
    const ofMug = { item, ...figures('GBP', [5, 1197], [1, 0]) };
    const inEuros = { item, ...figures('EUR', [1, 0]) };
    expect(await days(`${range}&group=item`)).toEqual([inEuros, ofMug]);
    // A line that waited counts by item once its item is known; takings had it before.
    const late = await createItem(site, '=NOT-YET', 5);
    const [event] = await admin(site, 'GET', '/pos-events?external_id=lines');
    await settled(site, event.event_id, 'applied');
    const ofLate = { item: { id: late.id, sku: '=NOT-YET' }, ...figures('GBP', [1, 5]) };
    expect(await days(`${range}&group=item`)).toEqual([inEuros, ofMug, ofLate]);
    expect(await days(`${range}&item=${late.id}`)).toEqual([
      { day: '2026-03-08', ...figures('GBP', [1, 5]) },
    ]);
    expect(await days(range)).toEqual([gbp[0], eur, gbp[1], gbp[2]]);

    const csv = await site.request('GET', `/switchboard/sales-days?${range}&group=item&format=csv`);
    expect(csv.headers['content-type']).toMatch(/^text\/csv/);
    expect(csv.text).toBe(
      'item,currency,sales_count,sales_total,refunds_count,refunds_total\r\n' +
        'MUG,EUR,1,0,0,0\r\n' +
        'MUG,GBP,5,1197,1,0\r\n' +
        "'=NOT-YET,GBP,1,5,0,0\r\n"
    );
  });

  it('is told exactly where sums are larger than a JSON number holds', async () => {
    const till = await createTill(site, {
      scopes: ['sale:write', 'refund:write', 'closing:write'],
    });
    const most = Number.MAX_SAFE_INTEGER;
    const line = { sku: 'MUG', quantity: 3, unit_price: most };
    for (const total of [most, most, 3]) {
      await sale(till, '2026-05-01T12:00:00Z', total, {
        ...(total === 3 && { external_id: 'large', line_items: [line] }),
      });
    }
    // What a till takes back as a sale below nothing.
    await sale(till, '2026-05-01T12:00:00Z', -most, { currency: 'EUR' });
    await sale(till, '2026-05-01T12:00:00Z', -most, { currency: 'EUR' });
    // Of sales that never come: one says its total, one what no amount of this API may be.
    await till.refund('never', {
      occurred_at: '2026-05-01T13:00:00Z',
      currency: 'GBP',
      total: most,
    });
    await till.refund('neither', {
      occurred_at: '2026-05-01T13:00:00Z',
      currency: 'GBP',
      line_items: [{ sku: 'MUG', quantity: 1_000_000_000, unit_price: most }],
    });
    const day = 'from=2026-05-01&to=2026-05-01';
    const range = `${day}&connection=${till.id}`;
    const gbp = {
      currency: 'GBP',
      sales: { count: 3, total: '18014398509481985' },
      refunds: { count: 2, total: most },
    };
    const eur = {
      currency: 'EUR',
      sales: { count: 2, total: '-18014398509481982' },
      refunds: { count: 0, total: 0 },
    };
    await allProcessed(site);
    const expected = [
      { day: '2026-05-01', ...eur },
      { day: '2026-05-01', ...gbp },
    ];
    expect(await days(range)).toEqual(expected);
    const byItem = await days(`${range}&group=item`);
    expect(byItem.map(({ sales }: { sales: object }) => sales)).toEqual([
      { count: 2, total: 0 },
      { count: 3, total: '27021597764222973' },
    ]);
    const csv = await site.request('GET', `/switchboard/sales-days?${range}&format=csv`);
    expect(csv.text.split('\r\n').slice(1, 3)).toEqual([
      '2026-05-01,EUR,2,-18014398509481982,0,0',
      `2026-05-01,GBP,3,18014398509481985,2,${most}`,
    ]);
    const summary = await admin(site, 'GET', `/connections/${till.id}/summary?${day}`);
    expect(summary.totals[1].sales.total).toBe('18014398509481985');
    const sums = { sales: { count: 3, total: most }, refunds: { count: 2, total: most } };
    const { body } = await till.send('closing', {
      external_id: 'large-z',
      occurred_at: '2026-05-02T00:00:00Z',
      from: '2026-05-01T00:00:00Z',
      to: '2026-05-02T00:00:00Z',
      totals: [
        { ...sums, currency: 'GBP' },
        { currency: 'EUR', sales: { count: 2, total: -most }, refunds: { count: 0, total: 0 } },
      ],
    });
    const differences = [
      { currency: 'GBP', field: 'sales.total', till: most, site: '18014398509481985' },
      { currency: 'EUR', field: 'sales.total', till: -most, site: '-18014398509481982' },
    ];
    expect(body).toMatchObject({ state: 'differs', differences });
    expect((await eventOf(site, body.event_id)).closing).toEqual({ differences });
  });

  itOnce(database)('does not hang on the order in which a sale and its refunds come', async () => {
    const lines = [
      { sku: 'MUG', quantity: 2, unit_price: 500 },
      { sku: 'UNKNOWN', quantity: 1, unit_price: 500 },
    ];
    const sold = {
      external_id: 'sold',
      occurred_at: '2026-04-01T12:00:00Z',
      currency: 'GBP',
      total: 1000,
      line_items: lines,
    };
    const refund = (id: string, minute: number, more: Record<string, unknown> = {}) => ({
      external_id: id,
      sale_external_id: 'sold',
      occurred_at: `2026-04-01T13:0${minute}:00Z`,
      ...more,
    });
    const records: [string, object][] = [
      ['sale', sold],
      ['refund', refund('third', 1, { line_items: [{ sku: 'MUG', quantity: 1 }] })],
      ['refund', refund('told', 2, { total: 100, line_items: [{ sku: 'MUG', quantity: 1 }] })],
      ['refund', refund('rest', 3)],
    ];
    // 1000/3, the 100 it says, and what is left; the one that comes last takes it at its own time.
    for (const order of [
      [0, 1, 2, 3],
      [3, 2, 1, 0],
      [2, 0, 3, 1],
    ]) {
      const till = await createTill(site);
      for (const index of order) {
        const [kind, body] = records[index] ?? ['sale', {}];
        await till.send(kind, body);
        await allProcessed(site);
      }
      expect(await days(`from=2026-04-01&to=2026-04-01&connection=${till.id}`)).toEqual([
        { day: '2026-04-01', ...figures('GBP', [1, 1000], [3, 1000]) },
      ]);
      expect(await days(`from=2026-04-01&to=2026-04-01&connection=${till.id}&group=item`)).toEqual([
        { item: { id: mug.id, sku: 'MUG' }, ...figures('GBP', [1, 1000], [2, 1000]) },
      ]);
    }
  });

  itOnce(database).each([
    ['to=2026-03-01', 'from'],
    ['from=2026-03-01&to=2026-02-30', 'to'],
    ['from=2026-03-02&to=2026-03-01', 'to'],
    ['from=2000-03-02&to=2026-03-01', 'to'],
    ['from=1&to=2026-03-01', 'from'],
    ['from=2026-03-01&to=2026-03-01&group=week', 'group'],
    ['from=2026-03-01&to=2026-03-01&format=xml', 'format'],
    ['from=2026-03-01&to=2026-03-01&connection=x', 'connection'],
    ['from=2026-03-01&to=2026-03-01&item=-1', 'item'],
  ])('%s is a 400 that names the field', async (query, field) => {
    const { status, body } = await site.request('GET', `/switchboard/sales-days?${query}`);
    expect([status, body.error.name]).toEqual([400, 'ValidationError']);
    expect(body.error.details.errors.map(({ path }: { path: string[] }) => path[0])).toContain(
      field
    );
  });

  itOnce(database)('of a connection that is not there is a 404', async () => {
    const path = '/switchboard/connections/999999/summary?from=2026-03-01&to=2026-03-01';
    expect((await site.request('GET', path)).status).toBe(404);
  });
});
