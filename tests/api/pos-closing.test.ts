import { randomUUID } from 'node:crypto';
import { describeEach, anyDatabase } from '../support/databases';
import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import { createWebhook } from './delivery-support';
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

const SCOPES = ['sale:write', 'refund:write', 'closing:write'];
const DAY = '2026-03-01';
const at = (time: string): string => `${DAY}T${time}:00+01:00`;

interface Sums {
  sales?: [count: number, total: number];
  refunds?: [count: number, total: number];
}

const totalsOf = (sums: Record<string, Sums>) =>
  Object.entries(sums).map(([currency, { sales = [0, 0], refunds = [0, 0] }]) => ({
    currency,
    sales: { count: sales[0], total: sales[1] },
    refunds: { count: refunds[0], total: refunds[1] },
  }));

const closing = (sums: Record<string, Sums>, more: Record<string, unknown> = {}) => ({
  external_id: randomUUID(),
  occurred_at: at('18:05'),
  from: at('09:00'),
  to: at('18:00'),
  totals: totalsOf(sums),
  ...more,
});

describeEach(anyDatabase(), 'closings', (database) => {
  let site: Site;
  let receiver: Receiver;
  beforeAll(async () => {
    receiver = await startReceiver();
    site = await startSite({ database, options: { pos: { ratePerMinute: 100_000 } } });
    await createItem(site, 'MUG', 1000);
  });
  afterAll(async () => {
    await receiver?.close();
    await site?.stop();
  });

  const newTill = (more: Record<string, unknown> = {}): Promise<Till> =>
    createTill(site, { scopes: SCOPES, ...more });

  const sale = (till: Till, time: string, total: number, more: Record<string, unknown> = {}) =>
    till.sale([['MUG', 2]], { occurred_at: at(time), total, ...more });

  it('match, from the first record of the range to the last before its end', async () => {
    const till = await newTill();
    await sale(till, '08:59', 1);
    await sale(till, '09:00', 1000, { external_id: 'a' });
    await sale(till, '17:59', 1598, { external_id: 'b' });
    await sale(till, '12:00', 500, { external_id: 'c', currency: 'EUR' });
    await sale(till, '18:00', 1);
    await till.refund('a', { external_id: 'r', occurred_at: at('17:00'), total: 250 });
    const body = closing(
      { GBP: { sales: [2, 2598], refunds: [1, 250] }, EUR: { sales: [1, 500] } },
      { external_ids: ['a', 'b', 'c', 'r'] }
    );
    const first = await till.send('closing', body);
    expect([first.status, first.body]).toEqual([
      202,
      {
        ok: true,
        event_id: expect.any(Number),
        state: 'matched',
        duplicate: false,
        missing: [],
        unexpected: [],
        differences: [],
      },
    ]);
    const again = await till.send('closing', body);
    expect([again.status, again.body]).toEqual([200, { ...first.body, duplicate: true }]);
    const other = await till.send('closing', { ...body, totals: [] });
    expect(other.body).toEqual({ ...first.body, duplicate: true, payload_mismatch: true });
    expect(await eventOf(site, first.body.event_id)).toMatchObject({
      kind: 'closing',
      state: 'matched',
      flags: ['payload_mismatch'],
      closing: { missing: [], unexpected: [], differences: [] },
    });
    const listed = await admin(site, 'GET', `/pos-events?kind=closing&connection=${till.id}`);
    expect(listed).toEqual([expect.objectContaining({ kind: 'closing', state: 'matched' })]);
    const status = await till.send('status', { external_ids: [body.external_id] });
    expect(status.body.records[0]).toMatchObject({
      kind: 'closing',
      state: 'matched',
      movements: [],
    });
    const reprocessed = await admin(
      site,
      'POST',
      `/pos-events/${first.body.event_id}/reprocess`,
      {},
      200
    );
    expect(reprocessed).toMatchObject({ kind: 'closing', state: 'matched' });
  });

  it('name exactly what is missing, unexpected and different, and late records amend them', async () => {
    const till = await newTill();
    const webhook = await createWebhook(site, receiver.url, { events: ['pos.closing'] });
    await sale(till, '10:00', 700, { external_id: 'here' });
    await sale(till, '11:00', 40, { external_id: 'not-listed' });
    const body = closing(
      { GBP: { sales: [2, 1700], refunds: [1, 300] } },
      { external_ids: ['here', 'late', 'late-refund'] }
    );
    const first = await till.send('closing', body);
    expect([first.status, first.body]).toEqual([
      202,
      {
        ok: true,
        event_id: expect.any(Number),
        state: 'differs',
        duplicate: false,
        missing: ['late', 'late-refund'],
        unexpected: ['not-listed'],
        differences: [
          { currency: 'GBP', field: 'sales.total', till: 1700, site: 740 },
          { currency: 'GBP', field: 'refunds.count', till: 1, site: 0 },
          { currency: 'GBP', field: 'refunds.total', till: 300, site: 0 },
        ],
      },
    ]);
    await sale(till, '12:00', 1000, { external_id: 'late' });
    await till.refund('late', {
      external_id: 'late-refund',
      occurred_at: at('13:00'),
      total: 300,
    });
    const amended = await till.send('closing', body);
    expect([amended.status, amended.body]).toEqual([
      200,
      {
        ...first.body,
        duplicate: true,
        missing: [],
        differences: [
          { currency: 'GBP', field: 'sales.count', till: 2, site: 3 },
          { currency: 'GBP', field: 'sales.total', till: 1700, site: 1740 },
        ],
      },
    ]);
    const fits = closing({ GBP: { sales: [4, 1800], refunds: [1, 300] } });
    const second = await till.send('closing', fits);
    expect(second.body).toMatchObject({ state: 'differs' });
    expect(second.body).not.toHaveProperty('missing');
    expect(second.body).not.toHaveProperty('unexpected');
    await sale(till, '17:00', 60);
    // Nobody asks: processing the record amends the closing.
    await settled(site, second.body.event_id, 'matched');
    expect((await eventOf(site, second.body.event_id)).closing).toEqual({ differences: [] });
    await sale(till, '17:01', 1);
    await settled(site, second.body.event_id, 'differs');
    const told = await waitFor(
      async () => {
        const found = receiver.requests
          .map(({ json }) => json.data)
          .filter(({ event_id: id }) => id === second.body.event_id);
        if (found.length < 3) throw new Error(`${found.length} events`);
        return found;
      },
      30_000,
      'three events of the closing'
    );
    expect(told.map(({ state }) => state).sort()).toEqual(['differs', 'differs', 'matched']);
    expect(told).toContainEqual({ ...second.body, connection: { id: till.id, name: 'Till 1' } });
    await site.request('DELETE', `/switchboard/webhooks/${webhook.id}`);
  });

  it('count held and waiting records, and cost refunds by what their sale cost', async () => {
    const till = await newTill();
    await till.send('sale', {
      external_id: 'priced',
      occurred_at: at('10:00'),
      currency: 'GBP',
      total: 1000,
      line_items: [
        { sku: 'UNKNOWN-1', quantity: 3, unit_price: 300 },
        { sku: 'MUG', quantity: 1, unit_price: 300 },
      ],
    });
    // A third of three quarters of 1000, then the rest.
    await till.refund('priced', {
      occurred_at: at('11:00'),
      line_items: [{ sku: 'UNKNOWN-1', quantity: 1 }],
    });
    await till.refund('unseen', { occurred_at: at('12:00'), currency: 'GBP', total: 77 });
    const one = await till.send(
      'closing',
      closing({ GBP: { sales: [1, 1000], refunds: [2, 327] } })
    );
    expect(one.body).toMatchObject({ state: 'matched', differences: [] });
    await till.refund('priced', { occurred_at: at('13:00') });
    const two = await till.send(
      'closing',
      closing({ GBP: { sales: [1, 1000], refunds: [3, 1077] } })
    );
    expect(two.body).toMatchObject({ state: 'matched', differences: [] });
  });

  it('of test mode count test records, and live ones live records', async () => {
    const till = await newTill({ mode: 'test' });
    await sale(till, '10:00', 5);
    const test = await till.send('closing', closing({ GBP: { sales: [1, 5] } }));
    expect(test.body).toMatchObject({ state: 'matched' });
    await admin(site, 'PUT', `/connections/${till.id}`, { mode: 'live' });
    const live = await till.send('closing', closing({}));
    expect(live.body).toMatchObject({ state: 'matched', differences: [] });
  });

  it('share ids with all kinds of record', async () => {
    const till = await newTill();
    const sold = await sale(till, '10:00', 5, { external_id: 'taken' });
    await allProcessed(site);
    const refused = await till.send('closing', closing({}, { external_id: 'taken' }));
    expect([refused.status, refused.body]).toEqual([
      200,
      {
        ok: true,
        event_id: sold.body.event_id,
        state: 'applied',
        duplicate: true,
        payload_mismatch: true,
      },
    ]);
    const made = await till.send('closing', closing({}, { external_id: 'of-closing' }));
    const late = await sale(till, '10:00', 5, { external_id: 'of-closing' });
    expect([late.status, late.body]).toEqual([
      200,
      {
        ok: true,
        event_id: made.body.event_id,
        state: 'differs',
        duplicate: true,
        payload_mismatch: true,
      },
    ]);
  });

  it('sent many times at once are one', async () => {
    const till = await newTill();
    const body = closing({});
    const answers = await Promise.all(Array.from({ length: 8 }, () => till.send('closing', body)));
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array(7).fill(200), 202]);
    expect(new Set(answers.map((one) => one.body.event_id)).size).toBe(1);
  });

  it('need their scope, and publish their schema', async () => {
    const till = await createTill(site);
    const answer = await till.send('closing', closing({}));
    expect([answer.status, answer.body.required_scope]).toEqual([403, 'closing:write']);
    const schema = await till.send('', '', {
      method: 'GET',
      path: '/api/service-pos/v1/schema/closing',
    });
    expect([schema.status, schema.body.$id]).toEqual([200, 'closing.v1']);
  });

  it('list up to 5,000 ids', async () => {
    const till = await newTill();
    const ids = Array.from({ length: 5000 }, (_none, index) => `${index}-${'é'.repeat(60)}`);
    const many = await till.send('closing', closing({}, { external_ids: ids }));
    expect([many.status, many.body.missing]).toEqual([202, ids]);
    const more = await till.send('closing', closing({}, { external_ids: [...ids, 'one'] }));
    expect([more.status, more.body.field]).toEqual([400, 'external_ids']);
  });

  it('count a month, in which the clocks may be put back', async () => {
    const till = await newTill();
    const month = { from: '2025-10-01T00:00:00+02:00', to: '2025-11-01T00:00:00+01:00' };
    const answer = await till.send('closing', closing({}, month));
    expect([answer.status, answer.body.state]).toEqual([202, 'matched']);
  });

  it('list at most 5,000 ids that the till does not name, and say how many there are', async () => {
    const till = await newTill();
    await site.evaluate(
      async ({ strapi }, connection, occurred) => {
        const counted = { c: 'GBP', a: '1', i: [] };
        const rows = Array.from({ length: 5002 }, (_none, index) => ({
          connection_id: connection,
          kind: 'sale',
          external_id: `unnamed-${index}`,
          external_digest: `unnamed-${connection}-${index}`,
          state: 'applied',
          mode: 'live',
          flags: '[]',
          settled_flags: '[]',
          occurred_ms: occurred,
          effective_at: occurred,
          received_at: occurred,
          counted: JSON.stringify(counted),
          stale: '[]',
          body: '{}',
          tries: 0,
        }));
        await strapi.db.connection.batchInsert('switchboard_pos_events', rows, 50);
      },
      till.id,
      Date.parse(at('10:00'))
    );
    const { status, body } = await till.send('closing', closing({}, { external_ids: [] }));
    expect([status, body.missing, body.unexpected.length]).toEqual([202, [], 5000]);
    expect(body.unexpected_count).toBe(5002);
    const stored = await eventOf(site, body.event_id);
    expect(stored.closing).toMatchObject({ unexpected_count: 5002 });
    expect(stored.closing_summary).toMatchObject({ unexpected: 5002, unexpected_listed: 5000 });
    const again = await admin(site, 'POST', `/pos-events/${body.event_id}/reprocess`, {}, 200);
    expect(again.by_hand).toEqual([
      { action: 'reprocessed', made_by: expect.any(String), at: expect.any(String) },
    ]);
    const [shown] = await admin(site, 'GET', `/pos-events?kind=closing&connection=${till.id}`);
    expect(shown.closing_summary).toEqual(stored.closing_summary);
  });

  it('that a process died before it compared are compared by whoever comes next', async () => {
    const till = await newTill();
    await sale(till, '10:00', 30);
    await allProcessed(site);
    const { body } = await till.send('closing', closing({ GBP: { sales: [1, 30] } }));
    expect(body.state).toBe('matched');
    await site.evaluate(async ({ strapi }, id) => {
      const { connection } = strapi.db;
      await connection('switchboard_pos_events').where({ id }).update({ state: 'differs' });
      await connection('switchboard_pos_closings').where({ event_id: id }).update({ due_at: 1 });
    }, body.event_id);
    await settled(site, body.event_id, 'matched');
  });

  it.each([
    [{ from: undefined }, 'from is required'],
    [{ to: at('09:00') }, 'to must be later than from'],
    [{ to: '2026-04-01T10:00:01+01:00' }, 'to must be at most 31 days and an hour later than from'],
    [{ from: '2026-02-30T09:00:00Z' }, 'from must name a day that exists'],
    [{ from: '2026-02-28' }, 'from must be an ISO 8601 date and time'],
    [{ totals: undefined }, 'totals is required'],
    [{ totals: totalsOf({ XYZ: {} }) }, 'totals[0].currency must be an ISO 4217'],
    [
      { totals: [...totalsOf({ GBP: {} }), ...totalsOf({ GBP: {} })] },
      'totals[1].currency must not',
    ],
    [{ totals: totalsOf({ GBP: { sales: [1, 0.5] } }) }, 'totals[0].sales.total must be a whole'],
    [
      { totals: totalsOf({ GBP: { refunds: [1, -5] } }) },
      'totals[0].refunds.total must be at least 0',
    ],
    [{ totals: [{ currency: 'GBP' }] }, 'totals[0].sales is required'],
    [{ external_ids: ['a', ''] }, 'external_ids[1] must not be empty'],
    [{ sale_external_id: 'x' }, 'sale_external_id must not be in a closing'],
  ])('%j is a 400 that names the field', async (more, message) => {
    const till = await newTill();
    const answer = await till.send('closing', closing({}, { external_id: 'stays-free', ...more }));
    expect([answer.status, answer.body.code, answer.body.schema]).toEqual([
      400,
      'schema_invalid',
      'closing.v1',
    ]);
    expect(answer.body.message).toContain(message);
    expect((await till.send('closing', closing({}, { external_id: 'stays-free' }))).status).toBe(
      202
    );
  });
});
