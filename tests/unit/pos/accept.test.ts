import { acceptBatch, type Submission, submissionOf } from '../../../server/src/pos/intake/accept';
import { applyBatch } from '../../../server/src/pos/processing/process';
import { getRecordStore } from '../../../server/src/pos/processing/record-store';
import type { RecordKind } from '../../../server/src/pos/rules/records';
import { readRecord } from '../../../server/src/pos/rules/validate';
import type { ConnectionRow } from '../../../server/src/pos/tables';
import { skuDigest } from '../../../server/src/stock/items';
import { ensureDefaultLocation } from '../../../server/src/stock/locations';
import { type SmallSite, startSmallSite } from '../../support/small-site';

let site: SmallSite;
let last = 0;

beforeAll(async () => {
  site = await startSmallSite({}, 'http');
  await ensureDefaultLocation(site.app);
  await site.connection('switchboard_items').insert({ sku: 'MUG', sku_digest: skuDigest('MUG') });
});
afterAll(() => site.close());

const newTill = async (mode: 'live' | 'test' = 'live'): Promise<ConnectionRow> => {
  last += 1;
  const row = { id: last, document_id: `c${last}`, name: 'till', mode, locations: '[]' };
  await site.connection('switchboard_connections').insert(row);
  return site.connection('switchboard_connections').where({ id: last }).first();
};

const submit = (
  till: ConnectionRow,
  kind: RecordKind,
  fields: Record<string, unknown>
): Submission => {
  const receivedAtMs = Date.now();
  const body = Buffer.from(
    JSON.stringify({ external_id: 'one', occurred_at: '2026-03-01T10:00:00Z', ...fields })
  );
  const reading = readRecord(kind, body, receivedAtMs);
  if (!reading.ok) throw new Error(reading.issue.message);
  return submissionOf(till, reading.value, body, receivedAtMs);
};

const LINES = { line_items: [{ sku: 'MUG', quantity: 2 }] };
const sale = (till: ConnectionRow, fields: Record<string, unknown> = {}) =>
  submit(till, 'sale', { currency: 'GBP', total: 1, ...LINES, ...fields });

const acceptOne = async (one: Submission) => {
  const [answer] = await acceptBatch(site.app, [one]);
  return answer;
};

const rowsOf = ({ id }: ConnectionRow) =>
  site.connection('switchboard_pos_events').where({ connection_id: id }).orderBy('id');

describe('the id of a record', () => {
  it('is taken once it was accepted: the same again is a duplicate, another body a mismatch', async () => {
    const till = await newTill();
    const first = await acceptOne(sale(till));
    expect(first).toMatchObject({ outcome: 'accepted' });
    const [{ id }] = await rowsOf(till);
    const duplicate = { outcome: 'duplicate', eventId: id, state: 'pending', mode: 'live' };
    expect(await acceptOne(sale(till))).toMatchObject({ ...duplicate, mismatch: false });
    expect((await rowsOf(till)).map((row) => Boolean(row.payload_mismatch))).toEqual([false]);
    expect(await acceptOne(sale(till, { total: 2 }))).toMatchObject({
      ...duplicate,
      mismatch: true,
    });
    expect((await rowsOf(till)).map((row) => Boolean(row.payload_mismatch))).toEqual([true]);
  });

  it('is of its till, whatever kind the record is of, and goes by its letters', async () => {
    const [till, other] = [await newTill(), await newTill()];
    const refund = submit(till, 'refund', { sale_external_id: 'any' });
    const answers = await acceptBatch(site.app, [
      sale(till),
      sale(till, { external_id: 'ONE' }),
      refund,
    ]);
    expect(answers.map(({ outcome }) => outcome)).toEqual(['accepted', 'accepted', 'duplicate']);
    expect(await acceptOne(sale(other))).toMatchObject({ outcome: 'accepted' });
    expect([(await rowsOf(till)).length, (await rowsOf(other)).length]).toEqual([2, 1]);
  });

  it('is of the first of two in one batch, and not taken by one that was refused', async () => {
    const till = await newTill();
    const count = (occurred_at: string, external_id: string, quantity = 5) =>
      submit(till, 'inventory', {
        ...{ external_id, occurred_at, mode: 'absolute' },
        counts: [{ sku: 'MUG', quantity }],
      });
    const answers = await acceptBatch(site.app, [
      count('2026-03-01T12:00:00Z', 'new'),
      count('2026-03-01T11:00:00Z', 'old'),
      count('2026-03-01T13:00:00Z', 'old'),
      count('2026-03-01T12:00:00Z', 'new', 6),
    ]);
    expect(answers).toMatchObject([
      { outcome: 'accepted' },
      { outcome: 'stale', stale: [{ sku: 'MUG', quantity: 5 }] },
      { outcome: 'accepted' },
      { outcome: 'duplicate', mismatch: true },
    ]);
    expect(await rowsOf(till)).toHaveLength(2);
  });
});

it('a till in test mode moves no stock, and its record says what it would have moved', async () => {
  const till = await newTill('test');
  await acceptOne(sale(till));
  const leases = await getRecordStore(site.app).claim([{ group: till.id, limit: 10 }]);
  await applyBatch(site.app, leases);
  const [row] = await rowsOf(till);
  expect(row.state).toBe('simulated');
  expect(JSON.parse(row.simulated)).toMatchObject([{ type: 'sale', item: 1, effect: -2 }]);
  const movements = site.connection('switchboard_movements').where({ event_id: row.id });
  expect(await movements).toEqual([]);
});
