import type { SalesRow } from '../../../shared/contracts/pos';
import { amountText, moneyFormat } from '../../../admin/src/utils/money-format';
import { readReceipt } from '../../../admin/src/pages/events/receipt';
import {
  addedUp,
  byDay,
  dayAfter,
  daysFromTo,
  rowsWithin,
  takingsOf,
} from '../../../admin/src/utils/sales';

const row = (day: string, currency: string, sold: number, refunded = 0): SalesRow => ({
  day,
  currency,
  sales: { count: 1, total: sold },
  refunds: { count: refunded > 0 ? 1 : 0, total: refunded },
  pieces: { sold: 2, returned: refunded > 0 ? 1 : 0 },
});

describe('figures of days', () => {
  test('go over the ends of months and years', () => {
    expect(dayAfter('2026-01-01', -1)).toBe('2025-12-31');
    expect(dayAfter('2028-02-28', 1)).toBe('2028-02-29');
    expect(daysFromTo('2026-02-27', '2026-03-01')).toEqual([
      '2026-02-27',
      '2026-02-28',
      '2026-03-01',
    ]);
  });

  const rows = [
    row('2026-03-01', 'GBP', 1000, 300),
    row('2026-03-01', 'EUR', 50),
    row('2026-03-03', 'GBP', 1),
  ];

  test('are added up by currency, and leave what they were of alone', () => {
    const before = JSON.stringify(rows);
    expect(addedUp(rows)).toEqual([
      {
        currency: 'EUR',
        sales: { count: 1, total: 50 },
        refunds: { count: 0, total: 0 },
        pieces: { sold: 2, returned: 0 },
      },
      {
        currency: 'GBP',
        sales: { count: 2, total: 1001 },
        refunds: { count: 1, total: 300 },
        pieces: { sold: 4, returned: 1 },
      },
    ]);
    expect(JSON.stringify(rows)).toBe(before);
    expect(addedUp([])).toEqual([]);
  });

  test('are added up exactly where sums are too large for a number', () => {
    const large = {
      ...row('2026-03-01', 'GBP', 3, 1),
      sales: { count: 2, total: '18014398509481983' },
    };
    const rowsOf = [large, row('2026-03-02', 'GBP', 3, 1)];
    const [sum] = addedUp(rowsOf);
    expect(sum?.sales).toEqual({ count: 3, total: '18014398509481986' });
    expect(sum && takingsOf(sum)).toBe('18014398509481984');
    expect(takingsOf({ ...large, refunds: large.sales })).toBe(0);
    const [digits, format] = [amountText(large.sales.total, 'GBP'), moneyFormat('GBP', false)];
    const shown = new Intl.NumberFormat('en', format).format(digits as unknown as number);
    expect(shown).toBe('£180,143,985,094,819.83');
    expect(amountText('-18014398509481983', 'KWD')).toBe('-18014398509481.983');
    expect([amountText(-5, 'GBP'), amountText('5', 'JPY'), amountText(1234, 'GBP')]).toEqual([
      '-0.05',
      '5',
      '12.34',
    ]);
  });

  test('are nothing on days without any', () => {
    const days = byDay(rows, 'GBP', daysFromTo('2026-03-01', '2026-03-03'));
    expect(days.map((day) => [day.day, takingsOf(day)])).toEqual([
      ['2026-03-01', 700],
      ['2026-03-02', 0],
      ['2026-03-03', 1],
    ]);
    expect(rowsWithin(rows, '2026-03-02', '2026-03-03')).toEqual([rows[2]]);
  });
});

describe('a receipt', () => {
  test('reads a sale, its cashier and its customer', () => {
    const receipt = readReceipt(
      'sale',
      JSON.stringify({
        currency: 'GBP',
        total: 1798,
        line_items: [{ sku: 'MUG', quantity: 2, unit_price: 899, name: 'Mug' }, 'odd'],
        customer: { first_name: 'Ada', last_name: 'Lovelace', email: 'ada@example.test' },
        meta: { cashier: { name: 'Grace' } },
      })
    );
    expect(receipt).toMatchObject({
      currency: 'GBP',
      total: 1798,
      cashier: 'Grace',
      customer: { name: 'Ada Lovelace', email: 'ada@example.test', phone: null },
      lines: [{ sku: 'MUG', gtin: null, name: 'Mug', quantity: 2, unitPrice: 899 }],
      restock: null,
    });
    expect(receipt?.lines).toHaveLength(1);
  });

  test('takes a cashier from where tills put one', () => {
    const cashier = (body: object) => readReceipt('sale', JSON.stringify(body))?.cashier;
    expect(cashier({ meta: { cashier: 'Ada' } })).toBe('Ada');
    expect(cashier({ meta: { cashier: 7 } })).toBe('7');
    expect(cashier({ cashier: 'Ada' })).toBe('Ada');
    expect(cashier({ meta: 'x' })).toBeNull();
  });

  test('of a refund says its sale and where the goods go', () => {
    const body = { sale_external_id: 'S-1', restock: false, reason: 'chipped', total: 5 };
    expect(readReceipt('refund', JSON.stringify(body))).toMatchObject({
      saleId: 'S-1',
      restock: false,
      reason: 'chipped',
      lines: [],
    });
    expect(readReceipt('refund', '{}')?.restock).toBe(true);
  });

  test('of a count has its counts, of a closing its sums', () => {
    const count = { mode: 'relative', counts: [{ sku: 'A', quantity: -3, reason: 'broken' }] };
    expect(readReceipt('inventory', JSON.stringify(count))).toMatchObject({
      mode: 'relative',
      lines: [{ sku: 'A', quantity: -3, reason: 'broken' }],
    });
    const sums = {
      currency: 'GBP',
      sales: { count: 1, total: 2 },
      refunds: { count: 0, total: 0 },
    };
    const closing = { totals: [sums, { currency: 5 }] };
    expect(readReceipt('closing', JSON.stringify(closing))?.totals).toEqual([sums]);
  });

  test.each(['', '[]', 'null', '{'])('of %p is none', (body) => {
    expect(readReceipt('sale', body)).toBeNull();
  });
});
