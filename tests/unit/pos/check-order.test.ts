import { Readable } from 'node:stream';
import fc from 'fast-check';
import type { Core } from '@strapi/strapi';
import type { Context } from 'koa';
import type { App } from '../../../server/src/app';
import { ensureTables } from '../../../server/src/database/tables/plain-tables';
import { Checks } from '../../../server/src/pos/intake/requests';
import { keyDigest } from '../../../server/src/pos/intake/authentication';
import { signBody } from '../../support/till-signature';
import { createRawBodyMiddleware } from '../../../server/src/pos/intake/wire';
import { ERROR_CODES, ERROR_STATUS, type ErrorCode } from '../../../server/src/pos/rules/records';
import { posRefusalTable } from '../../../server/src/pos/intake/refusals';
import { skuDigest } from '../../../server/src/stock/items';
import { ensureDefaultLocation } from '../../../server/src/stock/locations';
import { type SmallSite, startSmallSite } from '../../support/small-site';

/**
 * Of all that is wrong with a request, the first check that fails answers (docs/tills.md#answers).
 * That the order of `ERROR_CODES` is the documented one says contract.test.ts.
 */

const KEY = 'pos_live_order';
const SECRET = 'pos_secret_order';
const SKU = 'SHELF';
const [OLD, NEWER, NEWEST] = ['2026-03-01', '2026-03-02', '2026-03-03'].map(
  (day) => `${day}T10:00:00Z`
);
const MAX_BYTES = 2048;

let sites: SmallSite[] = [];
let site: SmallSite;
let checks: Checks;
/** Checks whose connection has used up its limit, and those of a host that lacks a table. */
let spent: Checks;
let unready: Checks;
let ids = 0;

const startSite = async (ratePerMinute: number): Promise<SmallSite> => {
  const pos = { ratePerMinute, failedAuthPerMinute: 1_000_000, maxBodyBytes: MAX_BYTES };
  const started = await startSmallSite({ pos });
  sites.push(started);
  await ensureTables(started.strapi, [posRefusalTable]);
  await ensureDefaultLocation(started.app);
  await started
    .connection('switchboard_items')
    .insert({ sku: SKU, sku_digest: skuDigest(SKU), low_at: 0 });
  await started.connection('switchboard_connections').insert({
    id: 2,
    document_id: 'c2',
    name: 'Till',
    mode: 'live',
    key: KEY,
    key_digest: keyDigest(KEY),
    locations: '[]',
    active: true,
  });
  return started;
};

interface Answer {
  status: number;
  body: { code?: string; duplicate?: boolean };
}

const post = async (
  through: Checks,
  bytes: Buffer,
  headers: Record<string, string>,
  route: 'inventory' | 'closing' | 'batch' | 'validate' | 'status' | 'catalogue' = 'inventory'
): Promise<Answer> => {
  const req = Object.assign(Readable.from([bytes]), {
    headers: { ...headers },
    headersDistinct: Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, [value]])
    ),
  });
  const ctx = {
    req,
    request: { ip: '203.0.113.7' },
    method: 'POST',
    path: `/api/service-pos/v1/${route}`,
    set: () => undefined,
  } as unknown as Context;
  // The small site's configuration knows no defaults; the middleware asks for one.
  const get = (key: string, byDefault: unknown): unknown =>
    site.strapi.config.get(key) ?? byDefault;
  const strapi = { ...site.strapi, config: { get } } as unknown as Core.Strapi;
  const app = Object.create(site.app, { strapi: { value: strapi } }) as App;
  await createRawBodyMiddleware(app)(ctx, () =>
    route === 'inventory' || route === 'closing' ? through.receive(ctx, route) : through[route](ctx)
  );
  return { status: ctx.status, body: ctx.body as Answer['body'] };
};

const count = (id: string, at: string | undefined): object => ({
  external_id: id,
  occurred_at: at,
  mode: 'absolute',
  counts: [{ sku: SKU, quantity: 5 }],
});

type Fault = ErrorCode | 'duplicate';

/** A count with these faults, and what it is answered. */
const send = async (faults: ReadonlySet<Fault>): Promise<Answer> => {
  const has = (fault: Fault): boolean => faults.has(fault);
  const through = has('not_ready') ? unready : has('rate_limited') ? spent : checks;
  await Promise.all(
    sites.map(({ connection }) =>
      connection('switchboard_connections').update({
        revoked_at: has('revoked_key') ? 1 : null,
        secret: has('secret_unavailable') ? null : SECRET,
        scopes: JSON.stringify([has('insufficient_scope') ? 'sale:write' : 'inventory:write']),
      })
    )
  );
  const body = {
    ...count(has('duplicate') ? 'old' : `id ${++ids}`, has('stale_count') ? OLD : NEWEST),
    ...(has('schema_invalid') && { mode: 'none' }),
    ...(has('payload_too_large') && { meta: 'x'.repeat(MAX_BYTES) }),
  };
  const bytes = Buffer.from(JSON.stringify(body));
  const seconds = Math.floor(Date.now() / 1000) - (has('timestamp_outside_window') ? 1000 : 0);
  const timestamp = String(seconds);
  const secret = has('signature_mismatch') ? 'another' : SECRET;
  return post(through, bytes, {
    'x-pos-key': has('unknown_key') ? 'nobody' : KEY,
    'x-pos-timestamp': timestamp,
    'x-pos-signature': signBody(secret, timestamp, bytes),
    ...(has('unsupported_encoding') && { 'content-encoding': 'gzip' }),
  });
};

beforeAll(async () => {
  site = await startSite(1_000_000);
  checks = new Checks(site.app);
  spent = new Checks((await startSite(1)).app);
  const broken = await startSite(1);
  await broken.connection.schema.dropTable('switchboard_pos_waits');
  unready = new Checks(broken.app);

  await send(new Set(['rate_limited', 'schema_invalid']));
  for (const [id, at] of [
    ['old', OLD],
    ['newer', NEWER],
  ] as const) {
    const bytes = Buffer.from(JSON.stringify(count(id, at)));
    const timestamp = String(Math.floor(Date.now() / 1000));
    const { status } = await post(checks, bytes, {
      'x-pos-key': KEY,
      'x-pos-timestamp': timestamp,
      'x-pos-signature': signBody(SECRET, timestamp, bytes),
    });
    expect([id, status]).toEqual([id, 202]);
  }
});
afterAll(async () => {
  await Promise.all(sites.map((one) => one.close()));
  sites = [];
});

const expected = (faults: ReadonlySet<Fault>): [number, string | boolean | undefined] => {
  const code = ERROR_CODES.find((one) => one !== 'stale_count' && faults.has(one));
  if (code) return [ERROR_STATUS[code], code];
  if (faults.has('duplicate')) return [200, true];
  return faults.has('stale_count') ? [409, 'stale_count'] : [202, false];
};

const expectFirst = async (faults: readonly Fault[]): Promise<void> => {
  const { status, body } = await send(new Set(faults));
  expect([status, body.code ?? body.duplicate]).toEqual(expected(new Set(faults)));
};

const FAULTS: readonly Fault[] = [...ERROR_CODES, 'duplicate'];

it.each(FAULTS)('%s alone is told', (fault) => expectFirst([fault]));

it('a till that mends one fault after the other is told of them in their order', async () => {
  for (let mended = 0; mended <= FAULTS.length; mended++) await expectFirst(FAULTS.slice(mended));
});

it('of any faults the first is told', async () => {
  await fc.assert(
    fc.asyncProperty(fc.subarray([...FAULTS]), (faults) => expectFirst(faults)),
    { numRuns: 50 }
  );
});

it.each(['inventory', 'closing', 'batch', 'validate', 'status', 'catalogue'] as const)(
  'nothing of a body is read of a till that is over its rate: %s',
  async (route) => {
    expect((await send(new Set(['rate_limited']))).status).toBe(429);
    const bytes = Buffer.from(JSON.stringify({ records: ['x'.repeat(MAX_BYTES / 2)] }));
    const timestamp = String(Math.floor(Date.now() / 1000));
    const headers = {
      'x-pos-key': KEY,
      'x-pos-timestamp': timestamp,
      'x-pos-signature': signBody(SECRET, timestamp, bytes),
    };
    const read = jest.spyOn(Buffer.prototype, 'toString');
    const { body } = await post(spent, bytes, headers, route);
    // The refusal is noted beside the answer.
    await new Promise(setImmediate);
    const texts = read.mock.results.filter(({ value }) => String(value).includes('xxxx'));
    read.mockRestore();
    expect([body.code, texts.length]).toEqual(['rate_limited', 0]);
  }
);
