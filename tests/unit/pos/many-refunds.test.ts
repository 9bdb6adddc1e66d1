import { acceptBatch, submissionOf } from '../../../server/src/pos/intake/accept';
import { applyBatch } from '../../../server/src/pos/processing/process';
import { getRecordStore } from '../../../server/src/pos/processing/record-store';
import type { RecordKind } from '../../../server/src/pos/rules/records';
import { readRecord } from '../../../server/src/pos/rules/validate';
import type { ConnectionRow } from '../../../server/src/pos/tables';
import { ensureDefaultLocation } from '../../../server/src/stock/locations';
import { skuDigest } from '../../../server/src/stock/items';
import { type SmallSite, startSmallSite } from '../../support/small-site';

/** Tills name one sale, such as "NO-RECEIPT", for whatever comes back without its receipt. */
const SALE = 'NO-RECEIPT';

let site: SmallSite;
let connection: ConnectionRow;

beforeAll(async () => {
  site = await startSmallSite({}, 'http');
  await ensureDefaultLocation(site.app);
  await site.connection('switchboard_items').insert({ sku: 'tea', sku_digest: skuDigest('tea') });
  await site.connection('switchboard_connections').insert({
    id: 2,
    document_id: 'c2',
    name: 'till',
    mode: 'live',
    locations: '[]',
  });
  connection = await site.connection('switchboard_connections').first();
});
afterAll(() => site.close());

const send = async (kind: RecordKind, bodies: readonly object[]): Promise<void> => {
  const receivedAtMs = Date.now();
  const submissions = bodies.map((fields) => {
    const body = Buffer.from(JSON.stringify({ occurred_at: '2026-03-01T10:00:00Z', ...fields }));
    const reading = readRecord(kind, body, receivedAtMs);
    if (!reading.ok) throw new Error(reading.issue.message);
    return submissionOf(connection, reading.value, body, receivedAtMs);
  });
  await acceptBatch(site.app, submissions);
  const leases = await getRecordStore(site.app).claim([{ group: 2, limit: 1000 }]);
  await applyBatch(site.app, leases);
};

let refunds = 0;
const refund = (count: number): Promise<void> =>
  send(
    'refund',
    Array.from({ length: count }, () => {
      refunds += 1;
      return {
        external_id: `refund-${refunds}`,
        sale_external_id: SALE,
        line_items: [{ sku: 'tea', quantity: 1 }],
      };
    })
  );

/** What one more refund has the database do: statements, and rows that they give back. */
const costOfOneMore = async (): Promise<{ statements: number; rows: number }> => {
  const cost = { statements: 0, rows: 0 };
  const count = (answer: unknown) => {
    cost.statements += 1;
    cost.rows += Array.isArray(answer) ? answer.length : 0;
  };
  site.connection.on('query-response', count);
  await refund(1);
  site.connection.removeListener('query-response', count);
  return cost;
};

it('the thousandth refund of one sale costs what the tenth did', async () => {
  await send('sale', [
    {
      external_id: SALE,
      currency: 'EUR',
      total: 100,
      line_items: [{ sku: 'tea', quantity: 5000, unit_price: 1 }],
    },
  ]);
  await refund(9);
  const tenth = await costOfOneMore();
  for (let hundred = 0; hundred < 9; hundred += 1) await refund(100);
  await refund(89);
  expect(refunds).toBe(999);
  const thousandth = await costOfOneMore();
  expect(tenth.statements).toBeGreaterThan(5);
  expect(thousandth).toEqual(tenth);
  const [level] = await site.connection('switchboard_levels').select('quantity');
  expect(Number(level.quantity)).toBe(-4000);
}, 60_000);
