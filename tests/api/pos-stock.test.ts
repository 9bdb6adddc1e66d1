import { anyDatabase, databases, describeEach, itOnce } from '../support/databases';
import { type Site, startSite } from '../support/site';
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

jest.setTimeout(120_000);

describeEach(databases(), 'from a till to the shelf', (database) => {
  let site: Site;
  let till: Till;

  beforeAll(async () => {
    site = await startSite({ database, options: { pos: { ratePerMinute: 100_000 } } });
    till = await createTill(site);
  });
  afterAll(() => site?.stop());

  it('a sale is accepted at once and takes its goods off the shelf', async () => {
    await createItem(site, 'SALE-1', 10);
    const answer = await till.sale([['SALE-1', 3]]);
    expect(answer.status).toBe(202);
    expect(answer.body).toEqual({
      ok: true,
      event_id: expect.any(Number),
      state: 'pending',
      duplicate: false,
    });
    const event = await settled(site, answer.body.event_id, 'applied');
    expect(event.movements).toEqual([
      expect.objectContaining({
        type: 'sale',
        quantity: -3,
        effect: -3,
        sku: 'SALE-1',
        quantity_after: 7,
      }),
    ]);
    expect(await levelOf(site, 'SALE-1')).toBe(7);
  });

  itOnce(database)('a repeat changes nothing and says where the record stands', async () => {
    await createItem(site, 'DUP-1', 10);
    const body = {
      external_id: 'dup-1',
      occurred_at: isoAgo(1),
      currency: 'EUR',
      total: 1,
      line_items: [{ sku: 'DUP-1', quantity: 1 }],
    };
    const first = await till.send('sale', body);
    await settled(site, first.body.event_id, 'applied');
    const again = await till.send('sale', body);
    expect(again.status).toBe(200);
    expect(again.body).toEqual({
      ok: true,
      event_id: first.body.event_id,
      state: 'applied',
      duplicate: true,
    });
    const other = await till.send('sale', { ...body, total: 2 });
    expect(other.status).toBe(200);
    expect(other.body).toMatchObject({ duplicate: true, payload_mismatch: true });
    expect((await eventOf(site, first.body.event_id)).flags).toContain('payload_mismatch');
    expect(await levelOf(site, 'DUP-1')).toBe(9);
  });

  it('ids that differ in letter case are two records, and so are those of two kinds one', async () => {
    await createItem(site, 'CASE-1', 10);
    const lower = await till.sale([['CASE-1', 1]], { external_id: 'case-a' });
    const upper = await till.sale([['CASE-1', 1]], { external_id: 'CASE-A' });
    expect([lower.status, upper.status]).toEqual([202, 202]);
    const refund = await till.refund('case-a', { external_id: 'case-a' });
    expect(refund.body).toMatchObject({ duplicate: true, payload_mismatch: true });
    await allProcessed(site);
    expect(await levelOf(site, 'CASE-1')).toBe(8);
  });

  itOnce(database)(
    'refunds of one sale share what it sold: over that nothing comes back',
    async () => {
      await createItem(site, 'OVER-1', 10);
      const sale = await till.sale([['OVER-1', 3]], {
        external_id: 'over-sale',
        occurred_at: isoAgo(60),
      });
      await settled(site, sale.body.event_id, 'applied');
      const later = await till.refund('over-sale', {
        occurred_at: isoAgo(10),
        line_items: [{ sku: 'OVER-1', quantity: 3 }],
      });
      await settled(site, later.body.event_id, 'applied');
      expect(await levelOf(site, 'OVER-1')).toBe(10);
      const earlier = await till.refund('over-sale', {
        occurred_at: isoAgo(20),
        line_items: [{ sku: 'OVER-1', quantity: 2 }],
      });
      await settled(site, earlier.body.event_id, 'applied');
      const capped = await eventOf(site, later.body.event_id);
      expect(capped.flags).toContain('over_refund');
      expect(
        capped.movements.map(({ quantity, reason }: { quantity: number; reason: string }) => [
          quantity,
          reason,
        ])
      ).toEqual([
        [3, null],
        [-2, 'reallocated'],
      ]);
      expect(await levelOf(site, 'OVER-1')).toBe(10);
    }
  );

  itOnce(database)(
    'a till in test mode writes no stock at any step, refunds included',
    async () => {
      await createItem(site, 'TEST-1', 10);
      const test = await createTill(site, { mode: 'test' });
      const refund = await test.refund('test-sale');
      await settled(site, refund.body.event_id, 'held');
      const sale = await test.sale([['TEST-1', 4]], {
        external_id: 'test-sale',
        occurred_at: isoAgo(50),
      });
      const event = await settled(site, sale.body.event_id, 'simulated');
      expect(event.movements).toEqual([]);
      expect(event.simulated).toEqual([expect.objectContaining({ sku: 'TEST-1', effect: -4 })]);
      const simulated = await settled(site, refund.body.event_id, 'simulated');
      expect(simulated.simulated).toEqual([
        expect.objectContaining({ type: 'refund', quantity: 4 }),
      ]);
      const count = await test.count([['TEST-1', 99]]);
      await settled(site, count.body.event_id, 'simulated');
      expect((await test.count([['TEST-1', 99]], { occurred_at: isoAgo(90) })).status).toBe(409);
      expect((await till.count([['TEST-1', 12]], { occurred_at: isoAgo(90) })).status).toBe(202);
      await allProcessed(site);
      expect(await levelOf(site, 'TEST-1')).toBe(12);
      expect(
        (await test.refund('test-sale', { line_items: [{ sku: 'TEST-1', quantity: 9 }] })).status
      ).toBe(202);
      await allProcessed(site);
      expect(await levelOf(site, 'TEST-1')).toBe(12);
    }
  );

  it('50 parallel identical sales: one 202, the rest 200, stock moved once', async () => {
    await createItem(site, 'PAR-1', 10);
    const body = {
      external_id: 'parallel',
      occurred_at: isoAgo(0),
      currency: 'GBP',
      total: 5,
      line_items: [{ sku: 'PAR-1', quantity: 1 }],
    };
    const answers = await Promise.all(Array.from({ length: 50 }, () => till.send('sale', body)));
    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses).toEqual([...Array(49).fill(200), 202]);
    expect(new Set(answers.map(({ body: { event_id: id } }) => id)).size).toBe(1);
    await allProcessed(site);
    expect(await levelOf(site, 'PAR-1')).toBe(9);
  });

  it('the rebuild finds no difference, and mends one that is made by hand', async () => {
    await allProcessed(site);
    expect((await rebuild(site)).differences).toEqual([]);
    await site.control('sql', {
      statement:
        "UPDATE switchboard_levels SET quantity = quantity + 5 WHERE item_id = (SELECT id FROM switchboard_items WHERE sku = 'PAR-1')",
    });
    expect((await rebuild(site)).differences).toEqual([
      expect.objectContaining({ sku: 'PAR-1', quantity: 14, should_be: 9 }),
    ]);
    await admin(site, 'POST', '/levels/rebuild', { mend: true }, 200);
    expect((await rebuild(site)).differences).toEqual([]);
  });

  // What follows is of the rules of stock; random-worlds.test.ts plays them on each database, too.
  if (!anyDatabase().includes(database)) return;

  it('a refund that comes before its sale is held, then applied when the sale comes', async () => {
    await createItem(site, 'REF-1', 10);
    const refund = await till.refund('sale-to-come', { occurred_at: isoAgo(1) });
    await settled(site, refund.body.event_id, 'held');
    expect(await levelOf(site, 'REF-1')).toBe(10);
    const sale = await till.sale([['REF-1', 4]], {
      external_id: 'sale-to-come',
      occurred_at: isoAgo(9),
    });
    await settled(site, sale.body.event_id, 'applied');
    const event = await settled(site, refund.body.event_id, 'applied');
    expect(event.movements).toEqual([expect.objectContaining({ type: 'refund', effect: 4 })]);
    expect(await levelOf(site, 'REF-1')).toBe(10);
  });

  it('damaged goods do not go back on the shelf', async () => {
    await createItem(site, 'DMG-1', 5);
    const sale = await till.sale([['DMG-1', 1]], { external_id: 'dmg' });
    await settled(site, sale.body.event_id, 'applied');
    const refund = await till.refund('dmg', { restock: false });
    const event = await settled(site, refund.body.event_id, 'applied');
    expect(event.movements).toEqual([
      expect.objectContaining({ quantity: 1, effect: 0, reason: 'no_restock' }),
    ]);
    expect(await levelOf(site, 'DMG-1')).toBe(4);
  });

  it('a count sets the level, later movements stay, earlier ones are covered, older counts are refused', async () => {
    await createItem(site, 'CNT-1', 5);
    const late = await till.sale([['CNT-1', 2]], { occurred_at: isoAgo(10) });
    await settled(site, late.body.event_id, 'applied');
    const count = await till.count([['CNT-1', 50]], { occurred_at: isoAgo(20) });
    await settled(site, count.body.event_id, 'applied');
    expect(await levelOf(site, 'CNT-1')).toBe(48);
    const early = await till.sale([['CNT-1', 7]], { occurred_at: isoAgo(30) });
    const event = await settled(site, early.body.event_id, 'applied');
    expect(event.movements).toEqual([
      expect.objectContaining({ effect: 0, reason: 'covered_by_count' }),
    ]);
    expect(await levelOf(site, 'CNT-1')).toBe(48);
    const stale = await till.count([['CNT-1', 9]], {
      occurred_at: isoAgo(25),
      external_id: 'stale-1',
    });
    expect(stale.status).toBe(409);
    expect(stale.body).toMatchObject({
      ok: false,
      code: 'stale_count',
      stale: [{ sku: 'CNT-1', quantity: 9 }],
    });
    const reused = await till.count([['CNT-1', 9]], {
      occurred_at: isoAgo(1),
      external_id: 'stale-1',
    });
    expect(reused.status).toBe(202);
  });

  it('a count with some stale lines is accepted; those have no effect', async () => {
    await createItem(site, 'PART-1', 1);
    await createItem(site, 'PART-2', 1);
    const first = await till.count([['PART-1', 10]], { occurred_at: isoAgo(10) });
    expect(first.status).toBe(202);
    const second = await till.count(
      [
        ['PART-1', 90],
        ['PART-2', 20],
      ],
      { occurred_at: isoAgo(20) }
    );
    expect(second.status).toBe(202);
    expect(second.body.stale).toEqual([{ sku: 'PART-1', quantity: 90 }]);
    const event = await settled(site, second.body.event_id, 'applied');
    expect(event.movements.map(({ reason }: { reason: string }) => reason).sort()).toEqual(
      [null, 'stale_count'].sort()
    );
    expect([await levelOf(site, 'PART-1'), await levelOf(site, 'PART-2')]).toEqual([10, 20]);
  });

  it('lines of an unknown item wait, and apply by themselves once it exists', async () => {
    await createItem(site, 'KNOWN-1', 5);
    const sale = await till.sale([
      ['KNOWN-1', 1],
      ['LATER-1', 2],
    ]);
    const parked = await settled(site, sale.body.event_id, 'partially_applied');
    expect(parked.waiting).toEqual([{ line: 1, sku: 'LATER-1' }]);
    await createItem(site, 'LATER-1', 10);
    await settled(site, sale.body.event_id, 'applied');
    expect(await levelOf(site, 'LATER-1')).toBe(8);
    expect(await levelOf(site, 'KNOWN-1')).toBe(4);
  });

  it('a sale in an unknown location waits until the connection maps it', async () => {
    await createItem(site, 'PLACE-1', 0);
    const [north, south] = [
      await admin(site, 'POST', '/locations', { name: 'North', code: 'north' }),
      await admin(site, 'POST', '/locations', { name: 'South', code: 'south' }),
    ];
    const two = await createTill(site, {
      locations: [{ ref: 'n', location: north.id }],
    });
    const sale = await two.sale([['PLACE-1', 1]], { location_ref: 's' });
    await settled(site, sale.body.event_id, 'needs_mapping');
    await admin(site, 'PUT', `/connections/${two.id}`, {
      locations: [
        { ref: 'n', location: north.id },
        { ref: 's', location: south.code },
      ],
    });
    await settled(site, sale.body.event_id, 'applied');
    expect(await levelOf(site, 'PLACE-1', 'south')).toBe(-1);
    const nowhere = await two.sale([['PLACE-1', 1]]);
    expect(nowhere.status).toBe(400);
    expect(nowhere.body).toMatchObject({ code: 'schema_invalid', field: 'location_ref' });
  });

  it('tills of one group refund each other’s sales; a sale id of two of them waits for the owner', async () => {
    await createItem(site, 'GRP-1', 10);
    const [one, two, three] = [
      await createTill(site, { group: 'front' }),
      await createTill(site, { group: 'front' }),
      await createTill(site, { group: 'front' }),
    ];
    await settled(
      site,
      (await one.sale([['GRP-1', 2]], { external_id: 'g' })).body.event_id,
      'applied'
    );
    const refund = await two.refund('g');
    await settled(site, refund.body.event_id, 'applied');
    expect(await levelOf(site, 'GRP-1')).toBe(10);
    await settled(
      site,
      (await three.sale([['GRP-1', 1]], { external_id: 'g' })).body.event_id,
      'applied'
    );
    await settled(site, refund.body.event_id, 'needs_mapping');
    expect(await levelOf(site, 'GRP-1')).toBe(7);
  });

  it('the owner adjusts, and every movement can be read', async () => {
    const item = await createItem(site, 'ADJ-1', 10);
    const level = await admin(site, 'POST', `/items/${item.id}/adjust`, {
      quantity: -3,
      reason: 'Broken',
    });
    expect(level).toMatchObject({ sku: 'ADJ-1', quantity: 7 });
    const movements = await admin(site, 'GET', `/levels/${level.id}/movements`);
    expect(movements).toEqual([
      expect.objectContaining({ type: 'adjustment', effect: -3, note: 'Broken', event_id: null }),
    ]);
  });

  it('the rebuild finds no difference in any of it', async () => {
    await allProcessed(site);
    expect((await rebuild(site)).differences).toEqual([]);
  });
});
