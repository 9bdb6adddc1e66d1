import { spawn } from 'node:child_process';
import { createAdminRole, createAdminUser } from '../support/accounts';
import { describeEach, anyDatabase } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import {
  admin,
  allProcessed,
  createItem,
  createTill,
  eventOf,
  isoAgo,
  levelOf,
  rebuild,
  settled,
  type Till,
} from './pos-till';
import { logSoFar } from './delivery-support';

jest.setTimeout(180_000);

const PRODUCT = 'api::product.product';

describeEach(anyDatabase(), 'a site with products of its own', (database) => {
  let site: Site;
  let till: Till;

  beforeAll(async () => {
    site = await startSite({
      database,
      options: {
        pos: { ratePerMinute: 100_000, refundGraceHours: 1.5 / 3600 },
        stock: { contentType: PRODUCT, sku: 'articleNumber', gtin: 'barcode', quantity: 'stock' },
      },
    });
    till = await createTill(site);
  });
  afterAll(() => site?.stop());

  const product = (data: Record<string, unknown>) =>
    site.control('query', { uid: PRODUCT, method: 'create', params: { data } });
  const stockOf = async (articleNumber: string): Promise<number> =>
    (
      await site.control('query', {
        uid: PRODUCT,
        method: 'findOne',
        params: { where: { articleNumber } },
      })
    ).stock;

  it('a till in test mode leaves nothing of itself in stock, and still says what it would do', async () => {
    await product({ title: 'Trial', articleNumber: 'TRIAL', barcode: '4006381333955', stock: 12 });
    const annex = await admin(site, 'POST', '/locations', { name: 'Trials', code: 'trials' });
    const trial = await createTill(site, {
      mode: 'test',
      scopes: ['sale:write', 'refund:write', 'inventory:write', 'stock:read'],
    });
    const sold = await trial.sale([['TRIAL', 2]], { external_id: 'trial-1' });
    const refunded = await trial.refund('trial-1');
    const counted = await trial.count([['TRIAL', 7]]);
    const { simulated } = await settled(site, sold.body.event_id, 'simulated');
    expect(simulated).toEqual([expect.objectContaining({ sku: 'TRIAL', effect: -2 })]);
    const back = await settled(site, refunded.body.event_id, 'simulated');
    expect(back.simulated).toEqual([expect.objectContaining({ sku: 'TRIAL', quantity: 2 })]);
    await settled(site, counted.body.event_id, 'simulated');
    const status = await trial.send('status', { external_ids: ['trial-1'] });
    expect(status.body.records[0].movements).toEqual([
      expect.objectContaining({ sku: 'TRIAL', quantity: -2, quantity_after: 10 }),
    ]);
    expect(await admin(site, 'GET', '/items?search=TRIAL')).toEqual([]);
    expect(await stockOf('TRIAL')).toBe(12);

    // Months later, as the shop wrote it meanwhile.
    await site.control('query', {
      uid: PRODUCT,
      method: 'update',
      params: { where: { articleNumber: 'TRIAL' }, data: { stock: 30 } },
    });
    const live = await till.sale([['TRIAL', 1]]);
    await settled(site, live.body.event_id, 'applied');
    expect([await stockOf('TRIAL'), await levelOf(site, 'TRIAL')]).toEqual([29, 29]);

    const elsewhere = await createTill(site, {
      mode: 'test',
      locations: [{ ref: 'trials', location: annex.id }],
    });
    const first = await elsewhere.count([['TRIAL', 5]]);
    await settled(site, first.body.event_id, 'simulated');
    const older = await elsewhere.count([['TRIAL', 4]], { occurred_at: isoAgo(60) });
    expect(older.status).toBe(409);
    expect(await admin(site, 'GET', '/levels?sku=TRIAL')).toHaveLength(1);
    expect((await rebuild(site)).differences).toEqual([]);
  });

  it('a sale finds the product by SKU or GTIN and writes its stock in the same transaction', async () => {
    await product({ title: 'Lamp', articleNumber: 'LAMP', barcode: '4006381333931', stock: 12 });
    const sale = await till.send('sale', {
      external_id: 'lamp-1',
      occurred_at: isoAgo(0),
      currency: 'EUR',
      total: 1,
      line_items: [
        { sku: 'LAMP', quantity: 2 },
        { gtin: '04006381333931', quantity: 1 },
      ],
    });
    await settled(site, sale.body.event_id, 'applied');
    expect(await stockOf('LAMP')).toBe(9);
    expect(await levelOf(site, 'LAMP')).toBe(9);
    expect((await rebuild(site)).differences).toEqual([]);
  });

  it('an item follows the GTIN of its product, which may be another one’s afterwards', async () => {
    const [one, two, three] = ['4012345000009', '4012345000016', '4012345000023'] as const;
    const give = (articleNumber: string, barcode: string | null) =>
      site.control('query', {
        uid: PRODUCT,
        method: 'update',
        params: { where: { articleNumber }, data: { barcode } },
      });
    const sold = async (gtin: string): Promise<string> => {
      const sale = await till.sale([], { line_items: [{ gtin, quantity: 1 }] });
      const { state, movements } = await waitFor(
        async () => {
          const event = await eventOf(site, sale.body.event_id);
          if (event.state === 'pending') throw new Error('it is pending');
          return event;
        },
        30_000,
        'the sale to be processed'
      );
      return movements[0]?.sku ?? state;
    };
    const gtinOf = async (sku: string) =>
      (await admin(site, 'GET', `/items?search=${sku}`))[0].gtin;
    await product({ title: 'A', articleNumber: 'CODE-A', barcode: one, stock: 10 });
    await product({ title: 'B', articleNumber: 'CODE-B', barcode: two, stock: 10 });
    expect([await sold(one), await sold(two)]).toEqual(['CODE-A', 'CODE-B']);
    await give('CODE-A', two);
    await give('CODE-B', one);
    expect([await gtinOf('CODE-A'), await gtinOf('CODE-B')]).toEqual([two, one]);
    expect([await sold(one), await sold(two)]).toEqual(['CODE-B', 'CODE-A']);
    await give('CODE-A', three);
    expect([await sold(three), await sold(two)]).toEqual(['CODE-A', 'needs_mapping']);

    // The goods of a product that is gone are another product's now, and then its own again.
    await site.control('query', {
      uid: PRODUCT,
      method: 'delete',
      params: { where: { articleNumber: 'CODE-A' } },
    });
    expect(await sold(three)).toBe('CODE-A');
    await product({ title: 'C', articleNumber: 'CODE-C', barcode: three, stock: 10 });
    expect(await sold(three)).toBe('CODE-C');
    await give('CODE-C', null);
    await product({ title: 'A', articleNumber: 'CODE-A', barcode: three, stock: 10 });
    expect(await sold(three)).toBe('CODE-A');

    // One that somebody gave the item by hand is not the product's.
    const { id } = (await admin(site, 'GET', '/items?search=CODE-B'))[0];
    await admin(site, 'PUT', `/items/${id}`, { gtin: '4012345000030' });
    await give('CODE-B', two);
    expect(await gtinOf('CODE-B')).toBe('4012345000030');
    expect((await rebuild(site)).differences).toEqual([]);
  });

  it('an item names the product that has its SKU, byte for byte', async () => {
    const made = await product({ title: 'Vase', articleNumber: 'VASE', stock: 1 });
    const { id } = await createItem(site, 'VASE');
    expect((await admin(site, 'GET', `/items/${id}`)).product).toEqual({
      content_type: PRODUCT,
      document_id: made.documentId,
      label: 'VASE',
    });
    const other = await createItem(site, 'vase');
    expect((await admin(site, 'GET', `/items/${other.id}`)).product).toBeNull();
  });

  it('a sale that waits for a product applies once the product is created', async () => {
    const sale = await till.sale([['CHAIR', 1]]);
    await settled(site, sale.body.event_id, 'needs_mapping');
    await product({ title: 'Chair', articleNumber: 'CHAIR', stock: 4 });
    await settled(site, sale.body.event_id, 'applied');
    expect(await stockOf('CHAIR')).toBe(3);
  });

  it('a refund whose sale never comes is applied by itself after the grace period, and capped when it comes after all', async () => {
    await createItem(site, 'GRACE', 10);
    const refund = await till.refund('never-seen', { line_items: [{ sku: 'GRACE', quantity: 3 }] });
    const whole = await till.refund('never-seen-either');
    await settled(site, refund.body.event_id, 'held');
    const alone = await settled(site, refund.body.event_id, 'applied');
    expect(alone.flags).toContain('sale_never_seen');
    expect(await levelOf(site, 'GRACE')).toBe(13);
    const held = await waitFor(async () => {
      const event = await settled(site, whole.body.event_id, 'held');
      return event.flags.includes('sale_never_seen') && event;
    });
    expect(held.movements).toEqual([]);
    const sale = await till.sale([['GRACE', 2]], {
      external_id: 'never-seen',
      occurred_at: isoAgo(60),
    });
    await settled(site, sale.body.event_id, 'applied');
    expect(await levelOf(site, 'GRACE')).toBe(10);
  });

  it('records and stock go out as events, in the transaction of the ledger', async () => {
    await createItem(site, 'EVENT', 2);
    const webhook = await site.request('POST', '/api/fw-crm/v1/webhooks', {
      body: {
        name: 'Stock',
        url: 'http://127.0.0.1:9/',
        events: ['pos.sale', 'pos.refund', 'pos.inventory', 'stock.changed', 'stock.low'],
      },
    });
    expect([webhook.status, webhook.text]).toEqual([201, expect.any(String)]);
    const sale = await till.sale([['EVENT', 2]], { external_id: 'event-1' });
    await settled(site, sale.body.event_id, 'applied');
    const log = await site.request('GET', `/api/fw-crm/v1/webhooks/${webhook.body.id}/deliveries`);
    const sent = new Map<string, Record<string, unknown>>(
      log.body.data.map((delivery: { event: string; request: { body: string } }) => [
        delivery.event,
        JSON.parse(delivery.request.body).data,
      ])
    );
    expect([...sent.keys()].sort()).toEqual(['pos.sale', 'stock.changed', 'stock.low']);
    expect(sent.get('pos.sale')).toMatchObject({
      event_id: sale.body.event_id,
      state: 'applied',
      external_id: 'event-1',
      line_items: [{ sku: 'EVENT', quantity: 2 }],
    });
    expect(sent.get('stock.changed')).toMatchObject({
      item: { sku: 'EVENT' },
      location: { code: 'main' },
      quantity: 0,
      previous_quantity: 2,
    });
    const subjects = new Map(
      log.body.data.map((one: { event: string; subject: unknown }) => [one.event, one.subject])
    );
    const record = { type: 'till_record', id: String(sale.body.event_id), label: 'event-1' };
    expect(subjects.get('pos.sale')).toEqual(record);
    const item = subjects.get('stock.low') as { type: string; id: string };
    expect(item).toMatchObject({ type: 'item', label: 'EVENT' });
    const found = await site.request(
      'GET',
      `/api/fw-crm/v1/webhook-deliveries?subject_type=item&subject_id=${item.id}`
    );
    expect(found.body.data).toHaveLength(2);
    const offered = await site.request('GET', '/api/fw-crm/v1/webhooks/events');
    const groups = offered.body.data
      .filter(({ event }: { event: string }) => /^(pos|stock)\./.test(event))
      .map(({ group }: { group: string }) => group);
    expect(groups).toEqual(Array(7).fill('Point of sale'));
  });

  it('every admin route asks for its permission and names what is wrong', async () => {
    const role = await createAdminRole(site, ['plugin::switchboard.stock.read']);
    const { token } = await createAdminUser(site, { role });
    const as = { token };
    expect((await site.request('GET', '/switchboard/levels', { as })).status).toBe(200);
    for (const [method, route] of [
      ['GET', '/connections'],
      ['GET', '/pos-events'],
      ['POST', '/items'],
      ['POST', '/locations'],
      ['POST', '/levels/rebuild'],
      ['POST', '/connections'],
    ] as const) {
      expect([
        route,
        (await site.request(method, `/switchboard${route}`, { as, body: {} })).status,
      ]).toEqual([route, 403]);
      expect(
        (await site.request(method, `/switchboard${route}`, { as: 'nobody', body: {} })).status
      ).toBe(401);
    }
    const wrong: [string, string, unknown, number, RegExp][] = [
      ['POST', '/items', { sku: '' }, 400, /sku/],
      ['POST', '/items', { sku: 'LAMP' }, 400, /sku/],
      ['POST', '/items', { sku: 'X1', opening: [{ quantity: 1.5 }] }, 400, /opening/],
      [
        'POST',
        '/items',
        { sku: 'X2', opening: [{ location: 'nowhere', quantity: 1 }] },
        400,
        /opening/,
      ],
      ['POST', '/items/999999/adjust', { quantity: 1 }, 404, /not found/i],
      ['POST', '/connections', { name: 'x', scopes: ['all'] }, 400, /scopes/],
      [
        'POST',
        '/connections',
        { name: 'x', scopes: [], locations: [{ ref: 'a', location: 99 }] },
        400,
        /locations/,
      ],
      ['POST', '/locations', { name: 'x', code: 'main' }, 400, /code/],
      ['GET', '/pos-events?state=nonsense', undefined, 400, /state/],
      ['GET', '/pos-events/999999', undefined, 404, /not found/i],
      ['GET', '/levels/abc', undefined, 404, /not found/i],
      ['GET', '/levels?per_page=1000', undefined, 400, /per_page/],
    ];
    for (const [method, route, body, status, text] of wrong) {
      const answer = await site.request(method, `/switchboard${route}`, { body });
      expect([route, answer.status]).toEqual([route, status]);
      expect(answer.text).toMatch(text);
    }
  });

  it('a secret is shown once and never again', async () => {
    const other = await createTill(site);
    const list = await site.request('GET', '/switchboard/connections?per_page=100');
    const single = await site.request('GET', `/switchboard/connections/${other.id}`);
    const changed = await site.request('PUT', `/switchboard/connections/${other.id}`, {
      body: { name: 'Renamed', mode: 'test' },
    });
    for (const answer of [list, single, changed]) {
      expect(answer.status).toBe(200);
      expect(answer.text).not.toContain('pos_secret_');
      expect(answer.text).not.toContain('"secret"');
    }
    await allProcessed(site);
    expect(await logSoFar(site)).not.toContain('pos_secret_');
  });
});

describe('the command that rebuilds stock', () => {
  it('an option that names no attribute stops the boot and lists the possible ones', async () => {
    const failure = startSite({
      options: { stock: { contentType: PRODUCT, sku: 'nonsense' } },
      accounts: false,
    });
    await expect(failure).rejects.toThrow(/switchboard\.stock\.sku.*articleNumber/s);
  });

  it('loads the site, reports no difference, and ends', async () => {
    const site = await startSite();
    try {
      const till = await createTill(site);
      await createItem(site, 'BIN', 5);
      await settled(site, (await till.sale([['BIN', 1]])).body.event_id, 'applied');
      const output = await site.evaluate(
        ({ require }, file) =>
          new Promise<string>((resolve) => {
            const { execFile } = require('node:child_process');
            execFile(
              process.execPath,
              [file],
              { cwd: process.cwd(), env: process.env },
              (_error: unknown, out: string, err: string) => resolve(`${out}${err}`)
            );
          }),
        `${process.cwd()}/bin/stock-rebuild.js`
      );
      expect(output).toMatch(/^1 levels, 0 differences\.$/m);
    } finally {
      await site.stop();
    }
  });

  it('says how it is used', async () => {
    const child = spawn(process.execPath, ['bin/stock-rebuild.js', '--help']);
    const code = await new Promise((resolve) => {
      child.on('close', resolve);
    });
    expect(code).toBe(0);
  });
});
