import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { RECORD_SCHEMAS } from '../../server/src/pos/rules/schemas';
import { signBody } from '../support/till-signature';
import { send } from '../support/http';
import { type Site, startSite } from '../support/site';
import {
  admin,
  allProcessed,
  BASE,
  createItem,
  createTill,
  isoAgo,
  levelOf,
  otherSecret,
  saleBody,
  type SendChanges,
  type Till,
} from './pos-till';

jest.setTimeout(120_000);

const now = (): number => Math.floor(Date.now() / 1000);

describe('the wire of tills', () => {
  let site: Site;
  let till: Till;

  beforeAll(async () => {
    site = await startSite({
      options: { pos: { ratePerMinute: 100_000, failedAuthPerMinute: 100_000 } },
    });
    till = await createTill(site, { name: 'Till "ä"' });
    await createItem(site, 'WIRE', 1000);
  });
  afterAll(() => site?.stop());

  const refused = async (
    body: unknown,
    changes: SendChanges,
    status: number,
    code: string,
    kind = 'sale'
  ) => {
    const answer = await till.send(kind, body, changes);
    expect([answer.status, answer.body.code, answer.body.ok]).toEqual([status, code, false]);
    expect(typeof answer.body.message).toBe('string');
    return answer.body;
  };

  describe('ping and schemas', () => {
    it('ping needs the key only and tells the server’s time', async () => {
      const answer = await send({
        method: 'GET',
        url: `${site.url}${BASE}/ping`,
        headers: { 'x-pos-key': till.key },
      });
      expect(answer.status).toBe(200);
      expect(answer.body).toEqual({
        ok: true,
        connection: 'Till "ä"',
        mode: 'live',
        schema: 'v1',
        server_time: expect.any(Number),
      });
      const unknown = await send({ method: 'GET', url: `${site.url}${BASE}/ping` });
      expect([unknown.status, (unknown.body as { code: string }).code]).toEqual([
        401,
        'unknown_key',
      ]);
    });

    it.each(['sale', 'refund', 'inventory'] as const)(
      'publishes the very %s schema that validates',
      async (kind) => {
        const answer = await send({ method: 'GET', url: `${site.url}${BASE}/schema/${kind}` });
        expect(answer.status).toBe(200);
        expect(answer.body).toEqual(JSON.parse(JSON.stringify(RECORD_SCHEMAS[kind])));
      }
    );
  });

  describe('the order of checks', () => {
    it('an old timestamp with a bad signature is timestamp_outside_window, with signed skew', async () => {
      const body = await refused(
        saleBody([['WIRE', 1]]),
        { timestamp: now() - 400, secret: otherSecret() },
        401,
        'timestamp_outside_window'
      );
      expect(body.skew_seconds).toBeLessThanOrEqual(-399);
      expect(body.skew_seconds).toBeGreaterThanOrEqual(-402);
      const unreadable = await refused('{}', { timestamp: '1e9' }, 401, 'timestamp_outside_window');
      expect(unreadable.skew_seconds).toBeNull();
    });

    it('300 seconds pass, 302 do not', async () => {
      expect(
        (await till.send('sale', saleBody([['WIRE', 1]]), { timestamp: now() - 299 })).status
      ).toBe(202);
      await refused(
        saleBody([['WIRE', 1]]),
        { timestamp: now() - 302 },
        401,
        'timestamp_outside_window'
      );
    });

    it('a bad signature with malformed JSON is 401', () =>
      refused('{nonsense', { secret: otherSecret() }, 401, 'signature_mismatch').then(
        () => undefined
      ));

    it('a well signed malformed body is 400 and names field and rule', async () => {
      const body = await refused('{nonsense', {}, 400, 'schema_invalid');
      expect(body).toMatchObject({ schema: 'sale.v1', message: expect.stringContaining('body') });
    });

    it('an unknown key comes before its timestamp and signature', () =>
      refused(
        '{}',
        { headers: { 'x-pos-key': 'pos_live_nobody' }, timestamp: 1 },
        401,
        'unknown_key'
      ).then(() => undefined));

    it('an encoded body and one that is too large come before the key', async () => {
      const gzipped = gzipSync(JSON.stringify(saleBody([['WIRE', 1]])));
      await refused(
        gzipped,
        { headers: { 'content-encoding': 'gzip', 'x-pos-key': 'x' } },
        415,
        'unsupported_encoding'
      );
      await refused(
        Buffer.alloc(262_145, 0x20),
        { headers: { 'x-pos-key': 'x' } },
        413,
        'payload_too_large'
      );
      await refused(Buffer.alloc(3_000_000, 0x20), {}, 413, 'payload_too_large');
      expect((await till.send('sale', Buffer.alloc(262_144, 0x20))).status).toBe(400);
    });

    it('a header of a signed name that comes twice is a 401', async () => {
      await refused('{}', { headers: { 'x-pos-key': [till.key, till.key] } }, 401, 'unknown_key');
      const stamp = String(now());
      await refused(
        '{}',
        { headers: { 'x-pos-timestamp': [stamp, stamp] } },
        401,
        'timestamp_outside_window'
      );
      const signature = signBody(till.secret, stamp, Buffer.from('{}'));
      await refused(
        '{}',
        { timestamp: stamp, headers: { 'x-pos-signature': [signature, signature] } },
        401,
        'signature_mismatch'
      );
    });

    it('scope comes before schema, and names what is missing', async () => {
      const limited = await createTill(site, { scopes: ['sale:write'] });
      const answer = await limited.send('refund', '{nonsense');
      expect(answer.status).toBe(403);
      expect(answer.body).toMatchObject({
        ok: false,
        code: 'insufficient_scope',
        required_scope: 'refund:write',
      });
    });

    it('a revoked key is told so, a deleted one is unknown, a new secret works at once', async () => {
      const other = await createTill(site);
      const { secret } = await admin(site, 'POST', `/connections/${other.id}/secret`, {}, 200);
      expect((await other.sale([['WIRE', 1]])).body.code).toBe('signature_mismatch');
      other.secret = secret;
      expect((await other.sale([['WIRE', 1]])).status).toBe(202);
      await admin(site, 'POST', `/connections/${other.id}/revoke`, {}, 200);
      expect((await other.sale([['WIRE', 1]])).body.code).toBe('revoked_key');
      expect((await site.request('DELETE', `/switchboard/connections/${other.id}`)).status).toBe(
        204
      );
      expect((await other.sale([['WIRE', 1]])).body.code).toBe('unknown_key');
    });
  });

  describe('the bytes', () => {
    const raw = (text: string): Buffer => Buffer.from(text, 'utf8');
    const sale = (fields: string): string =>
      `{"occurred_at":"${isoAgo(1)}","currency":"GBP","total":5,${fields}}`;
    const line = '"line_items":[{"sku":"WIRE","quantity":1}]';

    it.each<[string, () => Buffer, number]>([
      [
        'a byte order mark',
        () =>
          Buffer.concat([
            Buffer.from([0xef, 0xbb, 0xbf]),
            raw(sale(`"external_id":"bom",${line}`)),
          ]),
        400,
      ],
      ['invalid UTF-8', () => Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), 400],
      ['an empty body', () => Buffer.alloc(0), 400],
      ['a key twice', () => raw(sale(`"external_id":"k1","external_id":"k2",${line}`)), 400],
      [
        'a key twice, once escaped',
        () => raw(sale(`"external_id":"k1","external\\u005fid":"k2",${line}`)),
        400,
      ],
      ['200,000 levels', () => raw(`{"meta":${'['.repeat(100_000)}${']'.repeat(100_000)}}`), 400],
      [
        'a quantity in quotes',
        () => raw(sale('"external_id":"q1","line_items":[{"sku":"WIRE","quantity":"5"}]')),
        400,
      ],
      [
        'a quantity of -0',
        () => raw(sale('"external_id":"q2","line_items":[{"sku":"WIRE","quantity":-0}]')),
        400,
      ],
      [
        'a negative quantity',
        () => raw(sale('"external_id":"q3","line_items":[{"sku":"WIRE","quantity":-1}]')),
        400,
      ],
      [
        'a fraction',
        () => raw(sale('"external_id":"q4","line_items":[{"sku":"WIRE","quantity":1.5}]')),
        400,
      ],
      [
        'a number beyond 2^53',
        () =>
          raw(
            `{"external_id":"q5","occurred_at":"${isoAgo(1)}","currency":"GBP","total":9007199254740993,${line}}`
          ),
        400,
      ],
      ['a NUL in an id', () => raw(sale(`"external_id":"a\\u0000b",${line}`)), 400],
      [
        'half of a surrogate pair in an id',
        () => raw(sale(`"external_id":"a\\ud800",${line}`)),
        400,
      ],
      [
        'no item in a line',
        () => raw(sale('"external_id":"q6","line_items":[{"quantity":1}]')),
        400,
      ],
      [
        'an id of 129 characters',
        () => raw(sale(`"external_id":"${'x'.repeat(129)}",${line}`)),
        400,
      ],
      ['an array', () => raw('[]'), 400],
      ['null', () => raw('null'), 400],
      [
        '1e0 as a quantity',
        () => raw(sale('"external_id":"e0","line_items":[{"sku":"WIRE","quantity":1e0}]')),
        202,
      ],
      [
        '5.0 as a quantity',
        () => raw(sale('"external_id":"e1","line_items":[{"sku":"WIRE","quantity":5.0}]')),
        202,
      ],
      ['emoji in an id', () => raw(sale(`"external_id":"🙂-1",${line}`)), 202],
      [
        '__proto__ as a key',
        () =>
          raw(
            sale(
              `"external_id":"proto","__proto__":{"polluted":1},"meta":{"__proto__":{"polluted":1}},${line}`
            )
          ),
        202,
      ],
      [
        'a NUL in meta',
        () => raw(sale(`"external_id":"metanul","meta":{"x":"a\\u0000b"},${line}`)),
        202,
      ],
    ])('%s', async (_name, body, status) => {
      const answer = await till.send('sale', body());
      expect([answer.status, answer.text]).toEqual([status, expect.any(String)]);
      expect(answer.body.ok).toBe(status === 202);
      if (status === 400)
        expect(answer.body).toMatchObject({ code: 'schema_invalid', schema: 'sale.v1' });
    });

    it('no prototype was changed and every accepted record was applied', async () => {
      await allProcessed(site);
      expect(await site.evaluate(() => ({}) as Record<string, unknown>)).toEqual({});
      expect(await site.evaluate(() => String(({} as { polluted?: number }).polluted))).toBe(
        'undefined'
      );
      expect(await admin(site, 'GET', '/pos-events?state=failed')).toEqual([]);
    });

    it('any content type, none, and a chunked body are the same bytes', async () => {
      for (const type of [
        'text/plain',
        'application/x-www-form-urlencoded',
        'multipart/form-data; boundary=x',
        undefined,
        'nonsense',
      ]) {
        const answer = await till.send('sale', saleBody([['WIRE', 1]]), {
          headers: { 'content-type': type },
        });
        expect([type, answer.status]).toEqual([type, 202]);
      }
      const chunked = await till.send('sale', saleBody([['WIRE', 1]]), {
        headers: { 'transfer-encoding': 'chunked' },
      });
      expect(chunked.status).toBe(202);
    });

    it('a re-serialised body does not fit its signature', async () => {
      const body = JSON.stringify(saleBody([['WIRE', 1]]));
      const stamp = now();
      const signature = signBody(till.secret, String(stamp), Buffer.from(body));
      await refused(
        JSON.stringify(JSON.parse(body), null, 1),
        { timestamp: stamp, headers: { 'x-pos-signature': signature } },
        401,
        'signature_mismatch'
      );
      const upper = signature.replace(/[0-9a-f]{64}$/, (hex) => hex.toUpperCase());
      expect(
        (await till.send('sale', body, { timestamp: stamp, headers: { 'x-pos-signature': upper } }))
          .status
      ).toBe(202);
      expect((await till.send('sale', body, { timestamp: stamp })).body).toMatchObject({
        duplicate: true,
      });
    });

    it('the body is stored as it was sent', async () => {
      const body = `  ${JSON.stringify(saleBody([['WIRE', 1]], { meta: { ключ: '🙂' } }), null, 3)}\n`;
      const { event_id: id } = (await till.send('sale', body)).body;
      expect((await admin(site, 'GET', `/pos-events/${id}`)).body).toBe(body);
    });
  });

  describe('paths', () => {
    it.each([
      ['POST', `${BASE}/nothing`, 404],
      ['POST', BASE, 404],
      ['GET', `${BASE}/sale`, 405],
      ['PUT', `${BASE}/sale`, 405],
      ['DELETE', `${BASE}/ping`, 405],
      ['PATCH', `${BASE}/schema/sale`, 405],
    ])('%s %s is refused in the till’s words', async (method, route, status) => {
      const answer = await till.send('', '{bad', { method, path: route });
      expect(answer.status).toBe(status);
      expect(answer.body).toMatchObject({
        ok: false,
        code: expect.any(String),
        message: expect.any(String),
      });
    });

    it.each([
      '/API/Service-POS/v1/SALE',
      `${BASE}/sale/`,
      '/api/service%2Dpos/v1/sale',
      '/api//service-pos/v1/sale',
    ])('%s is taken with its bytes, or is no route at all', async (route) => {
      const answer = await till.send('sale', saleBody([['WIRE', 1]]), { path: route });
      expect([202, 404]).toContain(answer.status);
      expect(answer.body.ok).toBe(answer.status === 202);
    });

    it('a till that hangs up in the middle harms nobody', async () => {
      await new Promise<void>((resolve) => {
        const socket = net.connect(site.port, '127.0.0.1', () => {
          socket.write(`POST ${BASE}/sale HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"a`);
          setTimeout(() => socket.destroy(), 50);
        });
        socket.on('close', () => resolve());
      });
      expect((await till.sale([['WIRE', 1]])).status).toBe(202);
    });
  });
});

describe('limits of tills', () => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({ options: { pos: { ratePerMinute: 5, failedAuthPerMinute: 3 } } });
    await createItem(site, 'LIM', 100);
  });
  afterAll(() => site?.stop());

  it('somebody who knows a key can neither burn its limit nor lock its shop out', async () => {
    const till = await createTill(site);
    const codes: string[] = [];
    for (let attempt = 0; attempt < 6; attempt += 1) {
      codes.push((await till.send('sale', '{}', { secret: otherSecret() })).body.code);
    }
    expect(codes).toEqual([
      ...Array(3).fill('signature_mismatch'),
      ...Array(3).fill('rate_limited'),
    ]);
    const answer = await till.sale([['LIM', 1]]);
    expect(answer.status).toBe(202);
    expect(answer.headers['ratelimit-policy']).toBe('"connection";q=5;w=60');
    expect(answer.headers.ratelimit).toMatch(/^"connection";r=4;t=\d+$/);
  });

  it('a connection over its limit is answered 429 with Retry-After, another one is not', async () => {
    const [busy, calm] = [await createTill(site), await createTill(site)];
    for (let sent = 0; sent < 5; sent += 1)
      expect((await busy.sale([['LIM', 1]])).status).toBe(202);
    const over = await busy.sale([['LIM', 1]]);
    expect(over.status).toBe(429);
    expect(over.body).toMatchObject({ ok: false, code: 'rate_limited' });
    expect(Number(over.headers['retry-after'])).toBeGreaterThan(0);
    expect((await calm.sale([['LIM', 1]])).status).toBe(202);
  });
});

describe('a host that is not ready', () => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite();
    await createItem(site, 'HOST', 10);
  });
  afterAll(() => site?.stop());

  it('a rotated key of the host makes secrets unavailable: 401 secret_unavailable', async () => {
    const till = await createTill(site);
    await site.restart({ env: { ENCRYPTION_KEY: 'another-key' } });
    const answer = await till.sale([['HOST', 1]]);
    expect([answer.status, answer.body.code]).toEqual([401, 'secret_unavailable']);
    const fresh = await admin(site, 'POST', `/connections/${till.id}/secret`, {}, 200);
    till.secret = fresh.secret;
    expect((await till.sale([['HOST', 1]])).status).toBe(202);
  });

  it('missing tables are 503 not_ready with Retry-After, before anything else', async () => {
    const till = await createTill(site);
    await allProcessed(site);
    await site.control('sql', { statement: 'ALTER TABLE switchboard_pos_events RENAME TO gone' });
    await new Promise((resolve) => setTimeout(resolve, 1100));
    const answers = [
      await till.sale([['HOST', 1]]),
      await till.send('sale', '{', { headers: { 'x-pos-key': 'nobody' } }),
      await till.send('sale', '{', { headers: { 'content-encoding': 'gzip' } }),
    ];
    for (const answer of answers) {
      expect([answer.status, answer.body.code]).toEqual([503, 'not_ready']);
      expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
    }
    await site.control('sql', { statement: 'ALTER TABLE gone RENAME TO switchboard_pos_events' });
    expect((await till.sale([['HOST', 1]])).status).toBe(202);
  });
});

describe('a site whose middlewares are its own', () => {
  let site: Site;
  let folder: string;
  afterAll(async () => {
    await site?.stop();
    fs.rmSync(folder, { recursive: true, force: true });
  });

  it('a narrow strapi::body and a global middleware that reads bodies leave tills alone', async () => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'pos-middlewares-'));
    const file = path.join(folder, 'middlewares.js');
    fs.writeFileSync(
      file,
      `module.exports = [
        'strapi::logger', 'strapi::errors', 'strapi::security', 'strapi::cors', 'strapi::query',
        { resolve: ${JSON.stringify(path.join(folder, 'reader.js'))} },
        { name: 'strapi::body', config: { jsonLimit: '10b', textLimit: '10b', formLimit: '10b', includeUnparsed: true, jsonStrict: true } },
        'strapi::session', 'strapi::favicon', 'strapi::public',
      ];`
    );
    fs.writeFileSync(
      path.join(folder, 'reader.js'),
      `module.exports = () => async (ctx, next) => {
        if (/json/.test(ctx.get('content-type')) && ctx.path.startsWith('/api')) {
          for await (const chunk of ctx.req) void chunk;
        }
        await next();
      };`
    );
    site = await startSite();
    const till = await createTill(site);
    await createItem(site, 'MID', 10);
    await site.restart({ env: { SITE_MIDDLEWARES_FILE: file } });
    const sale = await till.sale([['MID', 1]]);
    expect([sale.status, sale.text]).toEqual([202, expect.any(String)]);
    await site.restart({ env: {} });
    await allProcessed(site);
    expect(await levelOf(site, 'MID')).toBe(9);
  });
});
