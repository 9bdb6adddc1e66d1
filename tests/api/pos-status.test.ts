import { randomUUID } from 'node:crypto';
import { describeEach, anyDatabase } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { allProcessed, createItem, createTill, isoAgo, saleBody, settled } from './pos-till';

jest.setTimeout(180_000);

describeEach(anyDatabase(), 'what became of a record', (database) => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({ database, options: { pos: { ratePerMinute: 100_000 } } });
    await createItem(site, 'STATUS', 10);
  });
  afterAll(() => site?.stop());

  it('is told by its id, in the order asked, with its movements', async () => {
    const till = await createTill(site, {
      scopes: ['sale:write', 'refund:write', 'stock:read'],
      locations: [{ ref: 'shop', location: 'main' }],
    });
    const id = 'Été-1';
    const from = Date.now();
    const sale = await till.sale(
      [
        ['STATUS', 2],
        ['NEW', 1],
      ],
      { external_id: id }
    );
    await settled(site, sale.body.event_id, 'partially_applied');
    const refundId = randomUUID();
    const held = await till.refund('unseen', { external_id: refundId });
    await settled(site, held.body.event_id, 'held');
    await till.sale([['STATUS', 9]], { external_id: id });

    const ids = ['nobody', refundId, id, id.toLowerCase(), id];
    const answer = await till.send('status', { external_ids: ids });
    expect(answer.status).toBe(200);
    const whole = {
      external_id: id,
      event_id: sale.body.event_id,
      kind: 'sale',
      state: 'partially_applied',
      flags: ['payload_mismatch'],
      accepted_at: expect.any(String),
      movements: [
        { sku: 'STATUS', location_ref: 'shop', quantity: -2, effect: -2, quantity_after: 8 },
      ],
    };
    expect(answer.body).toEqual({
      ok: true,
      records: [
        { external_id: 'nobody', state: 'unknown' },
        {
          external_id: refundId,
          event_id: held.body.event_id,
          kind: 'refund',
          state: 'held',
          flags: [],
          accepted_at: expect.any(String),
          movements: [],
        },
        whole,
        { external_id: 'été-1', state: 'unknown' },
        whole,
      ],
    });
    const accepted = Date.parse(answer.body.records[2].accepted_at);
    expect(Math.abs(accepted - from)).toBeLessThan(60_000);
    expect(answer.headers['content-type']).toMatch(/^application\/json/);
  });

  it('is its own connection’s to know, and has what test mode would have moved', async () => {
    const till = await createTill(site, { mode: 'test' });
    const other = await createTill(site);
    const sale = await till.sale([['STATUS', 1]], { external_id: 'test-1' });
    await settled(site, sale.body.event_id, 'simulated');
    const own = await till.send('status', { external_ids: ['test-1'] });
    expect(own.body.records[0]).toMatchObject({
      state: 'simulated',
      movements: [{ sku: 'STATUS', location_ref: null, quantity: -1, effect: -1 }],
    });
    expect(own.body.records[0].movements[0]).not.toHaveProperty('quantity_after');
    const foreign = await other.send('status', { external_ids: ['test-1'] });
    expect(foreign.body.records).toEqual([{ external_id: 'test-1', state: 'unknown' }]);
  });

  it('of a hundred records at once is one answer; of 101 it is a 400', async () => {
    const till = await createTill(site);
    const ids = Array.from({ length: 100 }, () => randomUUID());
    const records = ids.map((id) => ({
      kind: 'sale',
      body: saleBody([['STATUS', 1]], { external_id: id, occurred_at: isoAgo(1) }),
    }));
    await till.send('batch', { records });
    await allProcessed(site);
    const answer = await till.send('status', { external_ids: ids });
    const told = answer.body.records as { external_id: string; state: string }[];
    expect(told.map(({ external_id: id }) => id)).toEqual(ids);
    expect(new Set(told.map(({ state }) => state))).toEqual(new Set(['applied']));
    const many = await till.send('status', { external_ids: [...ids, 'one more'] });
    expect([many.status, many.body.field, many.body.schema]).toEqual([
      400,
      'external_ids',
      'status.v1',
    ]);
  });

  it.each([
    ['{}', 'external_ids'],
    ['{"external_ids":"x"}', 'external_ids'],
    ['{"external_ids":["a",1]}', 'external_ids[1]'],
    ['{"external_ids":[""]}', 'external_ids[0]'],
    ['{"external_ids":["\\u0000"]}', 'external_ids[0]'],
    [`{"external_ids":["${'x'.repeat(129)}"]}`, 'external_ids[0]'],
    ['{"external_ids":[],"external_ids":[]}', 'external_ids'],
    ['{"external_ids":[],"records":[]}', 'records'],
    ['null', 'body'],
  ])('%s is a 400', async (text, field) => {
    const till = await createTill(site);
    const answer = await till.send('status', text);
    expect([answer.status, answer.body.code, answer.body.field]).toEqual([
      400,
      'schema_invalid',
      field,
    ]);
  });
});
