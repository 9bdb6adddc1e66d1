import fc from 'fast-check';
import { acceptBatch, submissionOf } from '../../../server/src/pos/intake/accept';
import { answerClosing, comparing } from '../../../server/src/pos/closings';
import { joined } from '../../../server/src/pos/sales-figures';
import { applyBatch } from '../../../server/src/pos/processing/process';
import { getRecordStore } from '../../../server/src/pos/processing/record-store';
import type { RecordKind, RecordLine } from '../../../server/src/pos/rules/records';
import { priceOnTop, priceRefunds } from '../../../server/src/pos/rules/refunds';
import { readRecord } from '../../../server/src/pos/rules/validate';
import type { ConnectionRow } from '../../../server/src/pos/tables';
import { skuDigest } from '../../../server/src/stock/items';
import { ensureDefaultLocation } from '../../../server/src/stock/locations';
import { type SmallSite, startSmallSite } from '../../support/small-site';

const line = (sku: string, quantity: number, unitPrice: number | null = null): RecordLine => ({
  sku,
  gtin: null,
  quantity,
  unitPrice,
});

const sold = (total: number, lines: RecordLine[]) => ({
  id: 1,
  connection: 1,
  currency: 'GBP',
  total,
  lines,
});

const refund = (id: number, lines: RecordLine[] | null, total: number | null = null) => ({
  id,
  connection: 1,
  effectiveMs: id,
  externalId: `r-${id}`,
  currency: null,
  total,
  lines,
});

const amounts = (...given: Parameters<typeof priceRefunds>): number[] =>
  [...priceRefunds(...given).refunds.values()].map(({ amount }) => Number(amount));

describe('what a refund costs', () => {
  const priced = sold(1000, [line('a', 3, 300), line('b', 1, 300)]);

  it('is its total, where it has one', () => {
    expect(amounts([priced], [refund(2, [line('a', 1)], 999)])).toEqual([999]);
    expect(amounts([], [refund(2, null, 999)])).toEqual([999]);
  });

  it('is what its lines cost in the sale, scaled to the sale’s total; the last takes the rest', () => {
    expect(amounts([priced], [refund(2, [line('a', 1)])])).toEqual([250]);
    const odd = sold(100, [line('a', 3, 7)]);
    const thirds = [2, 3, 4].map((id) => refund(id, [line('a', 1)]));
    expect(amounts([odd], thirds)).toEqual([33, 33, 34]);
    expect(amounts([odd], [refund(2, [line('a', 1)]), refund(3, null)])).toEqual([33, 67]);
  });

  it('goes by pieces where a line has no price', () => {
    const unpriced = sold(100, [line('a', 3, 999), line('b', 1)]);
    expect(amounts([unpriced], [refund(2, [line('b', 1)])])).toEqual([25]);
  });

  it('is of no more pieces and no more money than the sale has left', () => {
    expect(amounts([priced], [refund(2, [line('a', 5)]), refund(3, [line('a', 1)])])).toEqual([
      750, 0,
    ]);
    expect(amounts([priced], [refund(2, [line('a', 1)], 900), refund(3, null)])).toEqual([
      900, 100,
    ]);
    expect(amounts([priced], [refund(2, [line('a', 1)], 900), refund(3, [line('a', 1)])])).toEqual([
      900, 100,
    ]);
    expect(amounts([priced], [refund(2, [line('c', 1)])])).toEqual([0]);
  });

  it('is what its own lines say where its sale is not known', () => {
    expect(amounts([], [refund(2, [line('a', 2, 30)])])).toEqual([60]);
    expect(amounts([], [refund(2, [line('a', 2, 30), line('b', 1)])])).toEqual([0]);
  });

  it('is exact where no double is', () => {
    const large = sold(Number.MAX_SAFE_INTEGER, [line('a', 1_000_000_000, 9_007_199_254_740_991)]);
    const [part = 0, rest = 0] = [
      ...priceRefunds([large], [refund(2, [line('a', 1)]), refund(3, null)]).refunds.values(),
    ].map(({ amount }) => amount);
    expect(part).toBe(9_007_199n);
    expect(BigInt(part) + BigInt(rest)).toBe(BigInt(Number.MAX_SAFE_INTEGER));
  });

  it('on top of others is what it is among them', () => {
    const some = fc.record({
      sku: fc.constantFrom('a', 'b', 'c'),
      quantity: fc.integer({ min: 1, max: 3 }),
      total: fc.option(fc.integer({ min: 0, max: 60 })),
      at: fc.integer({ min: 0, max: 5 }),
    });
    fc.assert(
      fc.property(fc.array(some, { maxLength: 8 }), fc.nat(8), (given, split) => {
        const refunds = given.map(({ sku, quantity, total, at }, index) => ({
          ...refund(index + 2, [line(sku, quantity)], total),
          effectiveMs: at,
        }));
        const before = priceRefunds([priced], refunds.slice(0, split));
        const left = before.left.get(1);
        const top = left && priceOnTop(priced, left, refunds.slice(split));
        const all = priceRefunds([priced], refunds);
        if (!top) return;
        const together = new Map([
          ...before.refunds,
          ...top.priced.map((one) => [one.id, one] as const),
        ]);
        expect([...together].sort()).toEqual([...all.refunds].sort());
        expect(top.left).toEqual(all.left.get(1));
      })
    );
  });
});

describe('the figures of a site', () => {
  let site: SmallSite;
  let last = 10;
  beforeAll(async () => {
    site = await startSmallSite({}, 'http');
    await ensureDefaultLocation(site.app);
    await site.connection('switchboard_items').insert({ sku: 'a', sku_digest: skuDigest('a') });
  });
  afterAll(() => site.close());

  const newConnection = async (): Promise<ConnectionRow> => {
    last += 1;
    await site.connection('switchboard_connections').insert({
      id: last,
      document_id: `c${last}`,
      name: 'till',
      mode: 'live',
      locations: '[]',
    });
    return site.connection('switchboard_connections').where({ id: last }).first();
  };

  type Sent = [kind: RecordKind, body: Record<string, unknown>];

  const accept = async (connection: ConnectionRow, records: readonly Sent[]): Promise<void> => {
    const receivedAtMs = Date.now();
    const submissions = records.map(([kind, fields]) => {
      const body = Buffer.from(JSON.stringify(fields));
      const reading = readRecord(kind, body, receivedAtMs);
      if (!reading.ok) throw new Error(reading.issue.message);
      return submissionOf(connection, reading.value, body, receivedAtMs);
    });
    await acceptBatch(site.app, submissions);
  };

  const process = async ({ id }: ConnectionRow): Promise<void> => {
    const leases = await getRecordStore(site.app).claim([{ group: Number(id), limit: 1000 }]);
    if (leases.length > 0) {
      await applyBatch(site.app, leases);
    }
  };

  const close = async (connection: ConnectionRow, ids: readonly string[]) => {
    const body = Buffer.from(
      JSON.stringify({
        external_id: 'closing',
        occurred_at: '2026-03-01T20:00:00Z',
        from: '2026-03-01T10:00:00Z',
        to: '2026-03-01T10:20:00Z',
        totals: [],
        external_ids: ids,
      })
    );
    const reading = readRecord('closing', body, Date.now());
    if (!reading.ok) throw new Error(reading.issue.message);
    return answerClosing(site.app, submissionOf(connection, reading.value, body, Date.now()));
  };

  it('of closings are not worked out with a batch, and once for however many', async () => {
    const connection = await newConnection();
    const other = await newConnection();
    const { body } = await close(connection, ['s0', 's1', 's2']);
    const ofOther = await close(other, []);
    const read: string[] = [];
    const note = ({ sql }: { sql: string }) => {
      if (/`occurred_ms` >= /.test(sql)) read.push(sql);
    };
    site.connection.on('query', note);
    for (const minute of [0, 1, 2, 30]) {
      const fields = { currency: 'GBP', total: 1, line_items: [{ sku: 'a', quantity: 1 }] };
      const own = { external_id: `s${minute}`, occurred_at: at(minute) };
      await accept(connection, [['sale', { ...fields, ...own }]]);
      await process(connection);
    }
    const dueAt = async (id: unknown) =>
      (await site.connection('switchboard_pos_closings').where({ event_id: id }).first()).due_at;
    expect([await dueAt(body.event_id), await dueAt(ofOther.body.event_id)]).toEqual([
      expect.any(Number),
      null,
    ]);
    expect(read).toEqual([]);
    // As two nodes do: both find it due, and one compares it.
    await Promise.all([comparing(site.app).workOnDue(), comparing(site.app).workOnDue()]);
    site.connection.removeListener('query', note);
    expect(read).toHaveLength(1);
    expect(await dueAt(body.event_id)).toBeNull();
    expect((await close(connection, ['s0', 's1', 's2'])).body).toMatchObject({
      missing: [],
      unexpected: [],
    });
  });

  const figuresOf = async ({ id }: ConnectionRow, name = 'switchboard_sales_rollups') => {
    const rows = await site.connection(name).where({ connection_id: id });
    return rows
      .map(({ connection_id: _connection, ...row }) => ({
        ...row,
        sales_total: String(joined(row.sales_high, row.sales_low)),
        refunds_total: String(joined(row.refunds_high, row.refunds_low)),
      }))
      .filter(({ sales, refunds }) => sales !== 0 || refunds !== 0)
      .map(({ sales_high: _a, sales_low: _b, refunds_high: _c, refunds_low: _d, ...row }) => row)
      .sort((x, y) => (JSON.stringify(x) < JSON.stringify(y) ? -1 : 1));
  };

  const at = (minute: number): string => `2026-03-01T10:${String(minute).padStart(2, '0')}:00Z`;
  const lines = fc.array(
    fc.record({
      sku: fc.constantFrom('a', 'b'),
      quantity: fc.integer({ min: 1, max: 4 }),
      unit_price: fc.option(fc.integer({ min: 0, max: 500 }), { nil: undefined }),
    }),
    { minLength: 1, maxLength: 3 }
  );
  const saleIds = ['s1', 's2'];
  const aSale = fc.record({
    currency: fc.constantFrom('GBP', 'EUR'),
    total: fc.integer({ min: -100, max: 2000 }),
    line_items: lines,
    minute: fc.nat(40),
  });
  const aRefund = fc.record({
    sale_external_id: fc.constantFrom(...saleIds, 'never-seen'),
    currency: fc.constantFrom('GBP', 'XX', undefined),
    total: fc.constantFrom(undefined, undefined, 100, 7.5, -4),
    line_items: fc.option(lines, { nil: undefined }),
    minute: fc.nat(40),
  });

  it('are the same in any order of arrival, and so is a closing', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.tuple(aSale, aSale),
        fc.array(aRefund, { maxLength: 6 }),
        fc.array(fc.nat(1000), { minLength: 9, maxLength: 9 }),
        fc.array(fc.boolean(), { minLength: 9, maxLength: 9 }),
        async (sales, refunds, places, cuts) => {
          const records: Sent[] = [
            ...sales.map(({ minute, ...fields }, index): Sent => [
              'sale',
              { ...fields, external_id: saleIds[index], occurred_at: at(minute) },
            ]),
            ...refunds.map(({ minute, ...fields }, index): Sent => [
              'refund',
              { ...fields, external_id: `r${index}`, occurred_at: at(minute) },
            ]),
          ];
          const ids = ['s1', 'r0', 'r1', 'gone'];
          const together = await newConnection();
          await accept(together, records);
          await process(together);
          const { body: told } = await close(together, ids);

          const apart = await newConnection();
          const order = records
            .map((record, index) => ({ record, place: places[index] ?? 0 }))
            .sort((a, b) => a.place - b.place);
          let closing = await close(apart, ids);
          for (const [index, { record }] of order.entries()) {
            await accept(apart, [record]);
            if (cuts[index]) await process(apart);
          }
          await process(apart);
          await comparing(site.app).workOnDue();
          const stored = await site
            .connection('switchboard_pos_closings')
            .where({ connection_id: apart.id })
            .first();
          closing = await close(apart, ids);

          expect(await figuresOf(apart)).toEqual(await figuresOf(together));
          expect(await figuresOf(apart, 'switchboard_item_rollups')).toEqual(
            await figuresOf(together, 'switchboard_item_rollups')
          );
          expect(closing.body).toEqual({
            ...told,
            event_id: closing.body.event_id,
            duplicate: true,
          });
          // What the processing of late records left is what asking once more finds.
          const {
            ok: _ok,
            event_id: _id,
            state: _state,
            duplicate: _again,
            ...kept
          } = closing.body as unknown as Record<string, unknown>;
          expect(JSON.parse(stored.result)).toEqual(kept);
          for (const currency of ['GBP', 'EUR']) {
            const sum = sales
              .filter((one) => one.currency === currency)
              .reduce((total, one) => total + one.total, 0);
            const counted = (await figuresOf(together))
              .filter((row) => row.currency === currency)
              .reduce((total, row) => total + Number(row.sales_total), 0);
            expect(counted).toBe(sum);
          }
        }
      ),
      { numRuns: 15 }
    );
  }, 120_000);
});
