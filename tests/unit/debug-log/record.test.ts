import { setTimeout as sleep } from 'node:timers/promises';
import {
  createIngestion,
  type Ingestion,
  type Submission,
  submissionOf,
} from '../../../server/src/pos/intake/accept';
import { createProcessor } from '../../../server/src/pos/processing/process';
import { readRecord } from '../../../server/src/pos/rules/validate';
import type { RecordKind } from '../../../server/src/pos/rules/records';
import type { ConnectionRow } from '../../../server/src/pos/tables';
import { wakeForItems } from '../../../server/src/pos/processing/waits';
import { getRecordStore, RECORDS } from '../../../server/src/pos/processing/record-store';
import { skuDigest } from '../../../server/src/stock/items';
import { ensureDefaultLocation } from '../../../server/src/stock/locations';
import { type SmallSite, startSmallSite } from '../../support/small-site';

const CANARY = 'canary-4711';
const SKU = `${CANARY}-sku`;

let site: SmallSite;
let ingest: Ingestion;
let connection: ConnectionRow;
/** Until then what is accepted stays queued. */
let serving: boolean;

beforeEach(async () => {
  site = await startSmallSite();
  const { app } = site;
  await ensureDefaultLocation(app);
  await site.connection('switchboard_connections').insert({
    id: 2,
    document_id: 'c2',
    name: `${CANARY} till`,
    mode: 'live',
    locations: '[]',
  });
  connection = await site.connection('switchboard_connections').first();
  ingest = createIngestion(app);
  serving = false;
});
afterEach(async () => {
  await site.app.scheduler.stop();
  await site.close();
});

const submission = (kind: RecordKind, fields: object): Submission => {
  const receivedAtMs = Date.now();
  const body = Buffer.from(JSON.stringify({ occurred_at: '2026-03-01T10:00:00Z', ...fields }));
  const reading = readRecord(kind, body, receivedAtMs);
  if (!reading.ok) throw new Error(reading.issue.message);
  return submissionOf(connection, reading.value, body, receivedAtMs);
};

const sale = () =>
  submission('sale', {
    external_id: `${CANARY}-sale`,
    currency: 'EUR',
    total: 100,
    line_items: [{ sku: SKU, quantity: 1, unit_price: 100 }],
    customer: { email: `${CANARY}@example.test` },
  });

const linesUntil = async (expected: RegExp): Promise<string[]> => {
  if (!serving) site.app.scheduler.serve(RECORDS, createProcessor(site.app));
  serving = true;
  getRecordStore(site.app).announce();
  for (let waited = 0; !site.lines.some((line) => expected.test(line)); waited += 5) {
    if (waited > 5000) throw new Error(site.lines.join('\n'));
    await sleep(5);
  }
  return site.lines.splice(0).map((line) => line.replace(/\d{4}-\d\d-\d\dT[\d:.]+\+00:00/, 'TIME'));
};

const learnItem = async () => {
  await site.connection('switchboard_items').insert({ sku: SKU, sku_digest: skuDigest(SKU) });
  await wakeForItems(site.app, [{ sku: SKU, gtin: null }]);
};

it('a record that waits for its item and is applied has a line for each step', async () => {
  await ingest(sale());
  expect(await linesUntil(/waits/)).toEqual([
    'switchboard: POS event 1 accepted: sale of connection 2',
    'switchboard: POS event 1 claimed, lease until TIME',
    'switchboard: POS event 1 waits: needs_mapping',
  ]);
  await learnItem();
  const said = await linesUntil(/is applied/);
  expect(said[0]).toBe('switchboard: POS event 1 woken');
  expect(said).toContain('switchboard: POS event 1 claimed, lease until TIME');
  expect(said).toContain('switchboard: POS event 1 is applied');
});

it('what is sent again, and what is stale, says so', async () => {
  await ingest(sale());
  await linesUntil(/waits/);
  await ingest(sale());
  expect(await linesUntil(/again/)).toEqual([
    'switchboard: POS event 1 was sent again by connection 2',
  ]);
  await learnItem();
  const count = (id: string, occurred_at: string) =>
    submission('inventory', {
      external_id: id,
      occurred_at,
      mode: 'absolute',
      counts: [{ sku: SKU, quantity: 5 }],
    });
  await ingest(count('a', '2026-03-02T10:00:00Z'));
  await linesUntil(/POS event 2 is applied/);
  await ingest(count('b', '2026-03-01T10:00:00Z'));
  expect(await linesUntil(/refused/)).toContain(
    'switchboard: inventory of connection 2 refused: stale_count'
  );
});

it('a refund without its sale says until when it is held', async () => {
  await ingest(
    submission('refund', {
      external_id: `${CANARY}-refund`,
      sale_external_id: `${CANARY}-sale`,
      line_items: [{ sku: SKU, quantity: 1 }],
    })
  );
  expect((await linesUntil(/waits/)).at(-1)).toBe(
    'switchboard: POS event 1 waits: held, due again at TIME'
  );
});

it('one that cannot be applied says which attempt it was', async () => {
  await ingest(sale());
  await site.connection('switchboard_pos_events').update({ body: '{}' });
  expect((await linesUntil(/on attempt/)).at(-1)).toBe(
    'switchboard: POS event 1 failed on attempt 1, due again at TIME'
  );
  await site.connection('switchboard_pos_events').update({ tries: 4 });
  await site.connection('switchboard_record_queue').update({ due_at: 1 });
  expect((await linesUntil(/on attempt/)).at(-1)).toBe(
    'switchboard: POS event 1 failed on attempt 5, the last'
  );
});

it('no line has anything that the till sent', async () => {
  await ingest(sale());
  const said = await linesUntil(/waits/);
  await ingest(sale());
  await learnItem();
  said.push(...(await linesUntil(/is applied/)));
  expect(said.length).toBeGreaterThan(5);
  expect(said.join('\n')).not.toContain(CANARY);
});
