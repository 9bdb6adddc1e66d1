import { randomUUID } from 'node:crypto';
import { describeEach, anyDatabase } from '../support/databases';
import { type Site, startSite } from '../support/site';
import {
  admin,
  allProcessed,
  createItem,
  createTill,
  isoAgo,
  levelOf,
  saleBody,
  settled,
  type Till,
} from './pos-till';

jest.setTimeout(180_000);

const PRODUCT = 'api::product.product';
const ALL = ['sale:write', 'refund:write', 'inventory:write', 'stock:read'];

/** Everything that a record could leave behind. */
const TABLES = [
  'switchboard_pos_events',
  'switchboard_record_queue',
  'switchboard_pos_waits',
  'switchboard_items',
  'switchboard_levels',
  'switchboard_movements',
  'switchboard_deliveries',
];

describeEach(anyDatabase(), 'a record that is tried', (database) => {
  let site: Site;
  let till: Till;

  beforeAll(async () => {
    site = await startSite({
      database,
      options: {
        pos: { ratePerMinute: 100_000 },
        stock: { contentType: PRODUCT, sku: 'articleNumber', gtin: 'barcode', quantity: 'stock' },
      },
    });
    await admin(site, 'POST', '/locations', { name: 'Back', code: 'back' });
    await site.request('POST', '/api/fw-crm/v1/webhooks', {
      body: { name: 'All', url: 'http://127.0.0.1:9/', events: ['*'], active: true },
    });
    till = await createTill(site, {
      scopes: ALL,
      locations: [
        { ref: 'front', location: 'main' },
        { ref: 'rear', location: 'back' },
      ],
    });
  });
  afterAll(() => site?.stop());

  const rowsOf = async (): Promise<Record<string, number>> => {
    const counts: Record<string, number> = {};
    for (const name of TABLES) {
      const [row] = await site.control('sql', { statement: `SELECT COUNT(*) AS n FROM ${name}` });
      counts[name] = Number(row.n);
    }
    return counts;
  };

  /** Tries a record, and says that nothing of it is left. */
  const tried = async (kind: string, body: unknown, by: Till = till) => {
    const before = await rowsOf();
    const answer = await by.send('validate', { kind, body });
    expect(await rowsOf()).toEqual(before);
    return answer;
  };

  it('is told its movements and the levels after them, as they come about when it is sent', async () => {
    await createItem(site, 'TRY', 10);
    const body = saleBody([['TRY', 3]], { location_ref: 'front', occurred_at: isoAgo(60) });
    const expected = {
      ok: true,
      state: 'applied',
      duplicate: false,
      stale: [],
      flags: [],
      movements: [
        { sku: 'TRY', location_ref: 'front', quantity: -3, effect: -3, quantity_after: 7 },
      ],
      unknown: [],
    };
    const first = await tried('sale', body);
    expect([first.status, first.body]).toEqual([200, expected]);
    expect((await tried('sale', body)).body).toEqual(expected);
    expect(await levelOf(site, 'TRY', 'main')).toBe(10);

    const sent = await till.send('sale', body);
    expect([sent.status, sent.body.duplicate]).toEqual([202, false]);
    await settled(site, sent.body.event_id, 'applied');
    expect(await levelOf(site, 'TRY', 'main')).toBe(7);
    expect((await tried('sale', body)).body).toEqual({
      ...expected,
      duplicate: true,
      movements: [],
    });
    const changed = await tried('sale', { ...body, total: 101 });
    expect(changed.body).toMatchObject({ duplicate: true, flags: ['payload_mismatch'] });

    // Two refunds that each take what is left: the second one is capped.
    const refund = (more: object) => ({
      external_id: randomUUID(),
      sale_external_id: body.external_id,
      occurred_at: isoAgo(0),
      ...more,
    });
    const whole = await tried('refund', refund({}));
    expect(whole.body).toMatchObject({
      state: 'applied',
      movements: [{ sku: 'TRY', location_ref: 'front', quantity: 3, quantity_after: 10 }],
    });
    const over = await tried('refund', refund({ line_items: [{ sku: 'TRY', quantity: 5 }] }));
    expect(over.body).toMatchObject({ flags: ['over_refund'], movements: [{ effect: 3 }] });
    const unseen = await tried('refund', refund({ sale_external_id: 'never' }));
    expect(unseen.body).toMatchObject({ state: 'held', movements: [] });
  });

  it('is told of counts: what they set, lines that are stale, and 409 where all are', async () => {
    await createItem(site, 'COUNT', 10);
    await createItem(site, 'FRESH', 10);
    const count = (at: string, skus: readonly string[]) => ({
      external_id: randomUUID(),
      occurred_at: at,
      mode: 'absolute',
      location_ref: 'front',
      counts: skus.map((sku) => ({ sku, quantity: 4 })),
    });
    const sale = saleBody([['COUNT', 1]], { location_ref: 'front', occurred_at: isoAgo(10) });
    const sold = await till.send('sale', sale);
    await settled(site, sold.body.event_id, 'applied');
    // A count that is older than the sale: the sale is taken off again.
    const set = await tried('inventory', count(isoAgo(100), ['COUNT']));
    expect(set.body).toMatchObject({
      state: 'applied',
      stale: [],
      movements: [{ quantity: 4, effect: -6, quantity_after: 3 }],
    });
    expect((await till.send('inventory', count(isoAgo(50), ['COUNT']))).status).toBe(202);
    await allProcessed(site);
    const some = await tried('inventory', count(isoAgo(60), ['COUNT', 'FRESH']));
    expect(some.body).toMatchObject({
      state: 'applied',
      stale: [{ sku: 'COUNT', quantity: 4 }],
      movements: [{ effect: 0 }, { sku: 'FRESH', effect: -6, quantity_after: 4 }],
    });
    const none = await tried('inventory', count(isoAgo(60), ['COUNT']));
    expect([none.status, none.body]).toEqual([
      409,
      {
        ok: false,
        code: 'stale_count',
        message: expect.any(String),
        stale: [{ sku: 'COUNT', quantity: 4 }],
      },
    ]);
  });

  it('is told what nobody knows here, each once, and its flags', async () => {
    await createItem(site, 'KNOWN', 1);
    const unknown = await tried('sale', {
      ...saleBody([]),
      location_ref: 'front',
      occurred_at: new Date(Date.now() + 100_000).toISOString(),
      line_items: [
        { sku: 'NOBODY', quantity: 1 },
        { sku: 'NOBODY', quantity: 2 },
        { gtin: '4006381333931', quantity: 1 },
        { sku: 'KNOWN', quantity: 1 },
      ],
    });
    expect(unknown.body).toMatchObject({
      state: 'partially_applied',
      flags: ['clock_ahead'],
      movements: [{ sku: 'KNOWN', effect: -1 }],
      unknown: [{ sku: 'NOBODY' }, { gtin: '4006381333931' }],
    });
    const nowhere = await tried('sale', saleBody([['KNOWN', 1]], { location_ref: 'moon' }));
    expect(nowhere.body).toMatchObject({
      state: 'needs_mapping',
      movements: [],
      unknown: [{ location_ref: 'moon' }],
    });
    // A product of the site's becomes an item when a record is sent, not when it is tried.
    await site.control('query', {
      uid: PRODUCT,
      method: 'create',
      params: { data: { title: 'Lamp', articleNumber: 'LAMP', stock: 12 } },
    });
    const lamp = await tried('sale', saleBody([['LAMP', 2]], { location_ref: 'front' }));
    expect(lamp.body).toMatchObject({
      state: 'applied',
      movements: [{ sku: 'LAMP', effect: -2, quantity_after: 10 }],
    });
    const stock = await site.control('query', {
      uid: PRODUCT,
      method: 'findOne',
      params: { where: { articleNumber: 'LAMP' } },
    });
    expect(stock.stock).toBe(12);
  });

  it('is answered what its single would be refused for', async () => {
    const bad = await tried('sale', saleBody([['TRY', 0]], { location_ref: 'front' }));
    expect([bad.status, bad.body.code, bad.body.schema, bad.body.field]).toEqual([
      400,
      'schema_invalid',
      'sale.v1',
      'line_items[0].quantity',
    ]);
    const nowhere = await tried('sale', saleBody([['TRY', 1]]));
    expect([nowhere.status, nowhere.body.field]).toEqual([400, 'location_ref']);
    const large = await tried('sale', saleBody([], { meta: { a: 'x'.repeat(270_000) } }));
    expect([large.status, large.body.code]).toEqual([413, 'payload_too_large']);
    for (const [text, field] of [
      ['{"kind":"gift","body":{}}', 'kind'],
      ['{"kind":"sale"}', 'body'],
      ['{"body":{}}', 'kind'],
      ['{"kind":"sale","kind":"sale","body":{}}', 'kind'],
      ['{"kind":"sale","body":{},"records":[]}', 'records'],
      ['[]', 'body'],
    ] as const) {
      const answer = await till.send('validate', text);
      expect([text, answer.status, answer.body.schema, answer.body.field]).toEqual([
        text,
        400,
        'validate.v1',
        field,
      ]);
    }
  });

  it('needs its kind’s scope, and is told levels with stock:read only', async () => {
    const seller = await createTill(site, { scopes: ['sale:write'], mode: 'test' });
    await createItem(site, 'SCOPE', 5);
    const sale = await tried('sale', saleBody([['SCOPE', 1]]), seller);
    expect(sale.body).toMatchObject({ state: 'simulated', duplicate: false });
    expect(sale.body.movements).toEqual([
      { sku: 'SCOPE', location_ref: null, quantity: -1, effect: -1 },
    ]);
    const refund = { external_id: 'r', sale_external_id: 's', occurred_at: isoAgo(0) };
    const refused = await tried('refund', refund, seller);
    expect([refused.status, refused.body.required_scope]).toEqual([403, 'refund:write']);
    const kept = await admin(site, 'GET', `/connections/${seller.id}/refusals`);
    expect(kept[0]).toMatchObject({
      kind: 'validate',
      code: 'insufficient_scope',
      external_id: 'r',
    });
  });
});
