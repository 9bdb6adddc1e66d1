import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {
  createOfflineTill,
  createTill as createClient,
  type OfflineTill,
  type Settlement,
  TillError,
} from '../../till-client';
import { endLeases } from '../support/leases';
import { type Site, startSite } from '../support/site';
import {
  admin,
  allProcessed,
  BASE,
  createItem,
  createTill,
  isoAgo,
  levelOf,
  saleBody,
  settled,
} from './pos-till';

/** The client that docs/tills.md describes, against a site. */

jest.setTimeout(120_000);

let site: Site;
let folder: string;
const offline: OfflineTill[] = [];

beforeAll(async () => {
  site = await startSite();
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'till-client-'));
});
afterAll(async () => {
  for (const till of offline) await till.stop();
  await site?.stop();
  fs.rmSync(folder, { recursive: true, force: true });
});

const connect = async (more: Record<string, unknown> = {}) => {
  const { key, secret, id } = await createTill(site, more);
  return { id, credentials: { url: `${site.url}${BASE}`, key, secret } };
};
type Client = ReturnType<typeof createClient>;
const sell = (till: Client, lines: [string, number][], more = {}) =>
  till.sale(saleBody(lines, more) as unknown as Parameters<Client['sale']>[0]);
const refused = async (work: Promise<unknown>): Promise<TillError> => {
  const error = await work.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(TillError);
  return error as TillError;
};

it('pings, sells once however often it sends, refunds before the sale, and counts', async () => {
  await createItem(site, 'CLIENT', 20);
  const { credentials } = await connect({ name: 'Till of the client' });
  const till = createClient(credentials);
  expect(await till.ping()).toMatchObject({ connection: 'Till of the client', mode: 'live' });

  const refund = await till.refund({
    external_id: 'r-1',
    sale_external_id: 's-1',
    occurred_at: isoAgo(10),
    line_items: [{ sku: 'CLIENT', quantity: 1 }],
  });
  await settled(site, refund.event_id, 'held');
  const more = { external_id: 's-1', occurred_at: isoAgo(20) };
  const sale = await sell(till, [['CLIENT', 3]], more);
  expect(sale).toMatchObject({ status: 202, state: 'pending', duplicate: false });
  await settled(site, sale.event_id, 'applied');
  await settled(site, refund.event_id, 'applied');
  expect(await levelOf(site, 'CLIENT')).toBe(18);
  const again = await sell(till, [['CLIENT', 3]], more);
  expect(again).toMatchObject({ status: 200, duplicate: true, event_id: sale.event_id });

  const counts = [{ sku: 'CLIENT', quantity: 15 }];
  const count = { mode: 'absolute' as const, counts, occurred_at: isoAgo(5) };
  const counted = await till.inventory({ ...count, external_id: 'c-1' });
  await settled(site, counted.event_id, 'applied');
  expect(await levelOf(site, 'CLIENT')).toBe(15);
  const stale = await refused(
    till.inventory({ ...count, external_id: 'c-0', occurred_at: isoAgo(60) })
  );
  expect(stale).toMatchObject({ status: 409, code: 'stale_count', retryable: false });
});

it('says what is wrong: the field, the scope, the key', async () => {
  const { id, credentials } = await connect({ scopes: ['sale:write'] });
  const till = createClient(credentials);
  expect(await refused(sell(till, [['CLIENT', -1]]))).toMatchObject({
    status: 400,
    code: 'schema_invalid',
    body: { field: 'line_items[0].quantity', schema: 'sale.v1' },
  });
  const refund = { external_id: 'r', sale_external_id: 's', occurred_at: isoAgo(0) };
  expect(await refused(till.refund(refund))).toMatchObject({
    status: 403,
    body: { required_scope: 'refund:write' },
  });
  const forged = createClient({ ...credentials, secret: 'pos_secret_other' });
  expect(await refused(sell(forged, [['CLIENT', 1]]))).toMatchObject({
    code: 'signature_mismatch',
  });
  await admin(site, 'POST', `/connections/${id}/revoke`, {}, 200);
  expect(await refused(till.ping())).toMatchObject({ status: 401, code: 'revoked_key' });
});

it('sends many at once, tries one, asks what became of them, and downloads the catalogue', async () => {
  await createItem(site, 'MANY', 10, { name: 'Many' });
  const { credentials } = await connect({ scopes: ['sale:write', 'stock:read'] });
  const till = createClient(credentials);
  const record = (id: string, quantity: number) =>
    saleBody([['MANY', quantity]], { external_id: id });
  const text = JSON.stringify(record('m-2', 2)).replace(':', ' : ');
  const batch = await till.batch([
    { kind: 'sale', body: record('m-1', 1) },
    { kind: 'sale', body: Buffer.from(text) },
    { kind: 'sale', body: record('m-3', 0) },
  ]);
  expect(batch.status).toBe(200);
  expect(batch.results.map(({ status }) => status)).toEqual([202, 202, 400]);
  await allProcessed(site);
  const { records } = await till.status(['m-2', 'm-3']);
  expect(records).toMatchObject([{ state: 'applied' }, { state: 'unknown' }]);
  const kept = await admin(site, 'GET', '/pos-events?external_id=m-2');
  expect((await admin(site, 'GET', `/pos-events/${kept[0].id}`)).body).toBe(text);

  expect(await till.validate('sale', record('m-4', 3))).toMatchObject({
    state: 'applied',
    movements: [{ sku: 'MANY', quantity: -3, quantity_after: 4 }],
  });
  const page = await till.catalogue({ limit: 1000 });
  expect(page.items.find(({ sku }) => sku === 'MANY')).toMatchObject({
    name: 'Many',
    stock: [{ quantity: 7 }],
  });
  expect(await till.catalogue({ cursor: page.cursor })).toMatchObject({
    items: [],
    has_more: false,
  });
  expect(await refused(till.validate('refund', {}))).toMatchObject({ status: 403 });
  expect(() => till.batch([{ kind: 'gift' as 'sale', body: {} }])).toThrow(TypeError);
});

it('sells with a clock that is an hour wrong', async () => {
  const { credentials } = await connect();
  const till = createClient({ ...credentials, now: () => Date.now() - 3_600_000 });
  expect(await sell(till, [['CLIENT', 1]])).toMatchObject({ status: 202 });
});

it('sells in test mode without touching the shelf', async () => {
  await createItem(site, 'TESTED', 7);
  const { credentials } = await connect({ mode: 'test' });
  const sale = await sell(createClient(credentials), [['TESTED', 2]]);
  await settled(site, sale.event_id, 'simulated');
  expect(await levelOf(site, 'TESTED')).toBe(7);
});

it('takes no answer for acceptance that speaks of another record, or of a trial', async () => {
  await createItem(site, 'DOUBT', 7);
  const { id, credentials } = await connect({ mode: 'test' });
  const record = (external_id: string, quantity = 1) =>
    JSON.stringify(saleBody([['DOUBT', quantity]], { external_id }));
  const trial = record('trial');
  const sale = await createClient(credentials).send('sale', trial);
  await settled(site, sale.event_id, 'simulated');
  const early = { external_id: 'early', sale_external_id: 'never', occurred_at: isoAgo(0) };
  const held = await createClient(credentials).refund(early);
  await settled(site, held.event_id, 'held');
  await admin(site, 'PUT', `/connections/${id}`, { mode: 'live' }, 200);
  const codes: string[] = [];
  const till = createOfflineTill({
    ...credentials,
    folder: path.join(folder, 'doubt'),
    onSettled: (one) => codes.push('error' in one ? (one.error as TillError).code : one.outcome),
  });
  offline.push(till);
  await till.sale(trial);
  await till.refund(early);
  await till.sale(record('mine'));
  await till.sale(record('mine', 2));
  expect(await till.flush()).toMatchObject({ remaining: 0, error: null });
  expect(codes).toEqual(['simulated', 'simulated', 'accepted', 'payload_mismatch']);
  expect(await till.refused()).toHaveLength(3);
});

it('keeps selling while the site is away, and puts aside what the site refuses', async () => {
  await createItem(site, 'AWAY', 100);
  const { credentials } = await connect();
  const outcomes: Settlement['outcome'][] = [];
  const till = createOfflineTill({
    ...credentials,
    folder,
    random: () => -0.9,
    onSettled: ({ outcome }) => outcomes.push(outcome),
  });
  offline.push(till);
  const keep = (id: string, quantity: number) =>
    till.sale(JSON.stringify(saleBody([['AWAY', quantity]], { external_id: id })));
  await keep('a', 1);
  expect(await till.flush()).toMatchObject({ sent: 1, remaining: 0 });
  await site.kill('SIGKILL');
  await endLeases(site);
  await keep('b', 2);
  await keep('poison', 0);
  await keep('c', 3);
  expect(await till.flush()).toMatchObject({ sent: 0, remaining: 3 });
  await site.restart();
  expect(await till.flush()).toMatchObject({ sent: 3, remaining: 0, error: null });
  expect(outcomes).toEqual(['accepted', 'waiting', 'accepted', 'refused', 'accepted']);
  expect(await till.refused()).toHaveLength(1);
  await allProcessed(site, 60_000);
  expect(await levelOf(site, 'AWAY')).toBe(94);
});
