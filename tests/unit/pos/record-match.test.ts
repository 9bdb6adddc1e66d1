import { recordMatcher } from '../../../server/src/pos/rules/record-match';

const sale = {
  externalId: 'till-1-000123',
  money: { currency: 'GBP', amount: 1798n },
  body: JSON.stringify({
    external_id: 'till-1-000123',
    currency: 'GBP',
    total: 1798,
    line_items: [{ sku: 'MUG-BLUE', gtin: '4006381333931', quantity: 2 }],
    customer: { email: 'ada@example.test', first_name: 'Ada', last_name: 'Lovelace' },
    meta: { cashier: 'Grace' },
  }),
};

test.each([
  'till-1',
  '000123',
  'mug-b',
  '6381',
  'ADA@example',
  'ada love',
  '17.98',
  '17,98',
  '1798',
  ' 17.98',
])('finds a sale by %p', (search) => {
  expect(recordMatcher(search)(sale)).toBe(true);
});

test.each(['total', 'Grace', '17.9', '17.980', '17', '179', '-17.98', '%', 'mug_blue', 'GBP'])(
  'does not find it by %p',
  (search) => {
    expect(recordMatcher(search)(sale)).toBe(false);
  }
);

test('finds a refund by its sale, and by what it counts for', () => {
  const refund = {
    externalId: 'r-1',
    money: { currency: 'GBP', amount: 899n },
    body: JSON.stringify({ external_id: 'r-1', sale_external_id: 'till-1-000123' }),
  };
  expect(recordMatcher('000123')(refund)).toBe(true);
  expect(recordMatcher('8.99')(refund)).toBe(true);
  expect(recordMatcher('8')(refund)).toBe(false);
});

test('takes an amount as its currency has it', () => {
  const yen = { externalId: 'y', body: null, money: { currency: 'JPY', amount: 1800n } };
  expect(recordMatcher('1800')(yen)).toBe(true);
  expect(recordMatcher('18')(yen)).toBe(false);
  const pounds = { ...yen, money: { currency: 'GBP', amount: 1800n } };
  expect(recordMatcher('18')(pounds)).toBe(true);
  expect(recordMatcher('18.0')(pounds)).toBe(true);
});

test('finds what counts nothing by its own words', () => {
  const count = {
    externalId: 'c-1',
    money: null,
    body: JSON.stringify({ counts: [{ sku: 'BOWL', quantity: 4 }, null, 'x'], customer: 'Ada' }),
  };
  expect(recordMatcher('bowl')(count)).toBe(true);
  expect(recordMatcher('4')(count)).toBe(false);
  expect(recordMatcher('ada')({ ...count, body: 'no JSON' })).toBe(false);
});
