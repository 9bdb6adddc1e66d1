import { randomUUID } from 'node:crypto';
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
import { createAdminUser, FIRST_ADMIN } from '../support/accounts';

describeEach(anyDatabase(), 'a refund that is held', (database) => {
  let site: Site;
  let till: Till;
  beforeAll(async () => {
    site = await startSite({ database, options: { pos: { ratePerMinute: 100_000 } } });
    till = await createTill(site, {
      scopes: ['sale:write', 'refund:write', 'inventory:write', 'closing:write'],
    });
  }, 120_000);
  afterAll(() => site?.stop(), 60_000);

  const held = async (sale: string, more: Record<string, unknown> = {}): Promise<number> => {
    const { body } = await till.refund(sale, { occurred_at: isoAgo(10), ...more });
    await settled(site, body.event_id, 'held');
    return body.event_id;
  };
  const accept = (id: number) =>
    site.request('POST', `/switchboard/pos-events/${id}/accept-without-sale`);
  const sell = async (sku: string, quantity: number, id: string, more = {}): Promise<void> => {
    const { body } = await till.sale([[sku, quantity]], {
      ...{ external_id: id, total: 1000, occurred_at: isoAgo(60) },
      ...more,
    });
    await settled(site, body.event_id, 'applied');
  };
  const totals = async () => {
    const day = (shift: number) =>
      new Date(Date.now() + shift * 86_400_000).toISOString().slice(0, 10);
    const query = `from=${day(-2)}&to=${day(2)}`;
    return (await admin(site, 'GET', `/connections/${till.id}/summary?${query}`)).totals;
  };

  it('says what it waits for, in the list and when it is processed again', async () => {
    const id = await held('sale-awaited', { line_items: [{ sku: 'NOT-KNOWN', quantity: 1 }] });
    const waits = {
      state: 'held',
      waiting_for_sale: 'sale-awaited',
      accepted_without_sale_at: null,
      held_until: expect.any(String),
      waiting: [{ line: 0, sku: 'NOT-KNOWN' }],
    };
    expect(await eventOf(site, id)).toMatchObject(waits);
    expect(await admin(site, 'POST', `/pos-events/${id}/reprocess`, {}, 200)).toMatchObject(waits);
    await allProcessed(site);
    expect(await admin(site, 'GET', '/pos-events?state=held')).toEqual([
      expect.objectContaining({ id, ...waits }),
    ]);
  });

  it('without lines waits for its sale for however long that takes', async () => {
    const id = await held('sale-for-ever');
    const waits = { state: 'held', waiting_for_sale: 'sale-for-ever', held_until: null };
    expect(await eventOf(site, id)).toMatchObject(waits);
    // As the grace period leaves it.
    await site.evaluate(
      ({ strapi }, event, at) =>
        strapi.db
          .connection('switchboard_pos_events')
          .where({ id: event })
          .update({ received_at: at }),
      id,
      Date.now() - 25 * 3_600_000
    );
    await admin(site, 'POST', `/pos-events/${id}/reprocess`, {}, 200);
    await waitFor(async () => (await eventOf(site, id)).flags.includes('sale_never_seen'));
    expect(await eventOf(site, id)).toMatchObject(waits);
    const listed = await admin(site, 'GET', '/pos-events?state=held');
    expect(listed.find((one: { id: number }) => one.id === id)).toMatchObject(waits);
  });

  it('is applied without its sale where its owner accepts it, and only once', async () => {
    await createItem(site, 'ALONE', 10);
    const id = await held('never-sent', {
      total: 300,
      currency: 'GBP',
      line_items: [{ sku: 'ALONE', quantity: 3 }],
    });
    const answer = await accept(id);
    expect(answer.status).toBe(200);
    expect(answer.body.data).toMatchObject({ id, accepted_without_sale_at: expect.any(String) });
    const event = await settled(site, id, 'applied');
    expect(event).toMatchObject({ flags: ['sale_never_seen'], waiting_for_sale: null });
    expect(event.movements).toEqual([expect.objectContaining({ type: 'refund', effect: 3 })]);
    expect(await levelOf(site, 'ALONE')).toBe(13);
    const again = await accept(id);
    expect([again.status, again.body.error.name]).toEqual([409, 'ConflictError']);
    expect(await levelOf(site, 'ALONE')).toBe(13);
  });

  it('keeps who had it processed again and accepted it, and when', async () => {
    await createItem(site, 'TRACED', 10);
    const id = await held('traced', { line_items: [{ sku: 'TRACED', quantity: 1 }] });
    expect((await eventOf(site, id)).by_hand).toEqual([]);
    const started = Date.now() - 1000;
    const { token } = await createAdminUser(site, { role: 'Super Admin' });
    const again = await site.request('POST', `/switchboard/pos-events/${id}/reprocess`, {
      as: { token },
    });
    const reprocessed = {
      action: 'reprocessed',
      made_by: 'Eve Super Admin',
      at: expect.stringMatching(/\+00:00$/),
    };
    expect(again.body.data.by_hand).toEqual([reprocessed]);
    expect((await accept(id)).status).toBe(200);
    const { by_hand: trace } = await settled(site, id, 'applied');
    const { firstname, lastname } = FIRST_ADMIN;
    expect(trace).toEqual([
      reprocessed,
      { ...reprocessed, action: 'accepted_without_sale', made_by: `${firstname} ${lastname}` },
    ]);
    for (const { at } of trace) expect(Date.parse(at)).toBeGreaterThanOrEqual(started);
    // Refused, so nothing was done.
    expect((await accept(id)).status).toBe(409);
    expect((await eventOf(site, id)).by_hand).toEqual(trace);
  });

  it('keeps the latest 50 of what was done by hand', async () => {
    const id = await held('often');
    await site.evaluate(
      ({ strapi }, event, by_hand) =>
        strapi.db.connection('switchboard_pos_events').where({ id: event }).update({ by_hand }),
      id,
      JSON.stringify(
        Array.from({ length: 50 }, (_none, at) => ({ action: 'reprocessed', made_by: 'Old', at }))
      )
    );
    const { by_hand: trace } = await admin(site, 'POST', `/pos-events/${id}/reprocess`, {}, 200);
    expect(trace).toHaveLength(50);
    expect(Date.parse(trace[0].at)).toBe(1);
    expect(trace.at(-1).made_by).toBe(`${FIRST_ADMIN.firstname} ${FIRST_ADMIN.lastname}`);
  });

  it.each([
    ['with lines', [{ sku: 'LATE', quantity: 3 }]],
    ['without lines', undefined],
  ])('%s counts nothing twice when its sale comes after all', async (_what, lines) => {
    const sku = `LATE-${randomUUID()}`;
    const line_items = lines?.map((line) => ({ ...line, sku }));
    await createItem(site, sku, 10);
    // As it comes out where the sale comes first.
    const first = randomUUID();
    await sell(sku, 2, first);
    const before = await totals();
    const usual = await till.refund(first, { occurred_at: isoAgo(10), line_items });
    const expected = await settled(site, usual.body.event_id, 'applied');
    const [one] = await totals();
    const cost = one.refunds.total - before[0].refunds.total;
    expect(await levelOf(site, sku)).toBe(10);

    const late = randomUUID();
    const id = await held(late, { line_items });
    await accept(id);
    await settled(site, id, 'applied');
    expect(await levelOf(site, sku)).toBe(lines ? 13 : 10);
    await sell(sku, 2, late);
    const event = await settled(site, id, 'applied');
    expect(event.flags).toEqual(expected.flags);
    await allProcessed(site);
    expect(await levelOf(site, sku)).toBe(10);
    const [both] = await totals();
    expect(both.refunds.total - one.refunds.total).toBe(cost);
    expect(both.sales.total - one.sales.total).toBe(1000);
    expect(await rebuild(site)).toMatchObject({ differences: [] });
  });

  it('that goes nowhere yet waits for a place', async () => {
    await createItem(site, 'HOMELESS', 10);
    const places = [];
    for (const code of ['EAST', 'WEST']) {
      places.push(await admin(site, 'POST', '/locations', { name: code, code }));
    }
    const two = await createTill(site, {
      locations: places.map(({ id, code }) => ({ ref: code, location: id })),
    });
    const sent = await two.refund('never-sent', { line_items: [{ sku: 'HOMELESS', quantity: 1 }] });
    await settled(site, sent.body.event_id, 'held');
    expect((await accept(sent.body.event_id)).status).toBe(200);
    await settled(site, sent.body.event_id, 'needs_mapping');
  });

  it('alone is accepted, by those who may have records processed again', async () => {
    await createItem(site, 'SOLD', 10);
    const { body } = await till.sale([['SOLD', 1]]);
    await settled(site, body.event_id, 'applied');
    expect((await accept(body.event_id)).status).toBe(409);
    expect((await accept(999_999)).status).toBe(404);
    const id = await held('for-nobody');
    const { token } = await createAdminUser(site, { role: 'Editor' });
    const refused = await site.request(
      'POST',
      `/switchboard/pos-events/${id}/accept-without-sale`,
      { as: { token } }
    );
    expect(refused.status).toBe(403);
    expect(await eventOf(site, id)).toMatchObject({ state: 'held' });
  });
});
