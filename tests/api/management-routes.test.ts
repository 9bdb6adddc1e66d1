import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { createApiToken } from '../support/accounts';
import { startSite, type Site } from '../support/site';

/** The table of docs/contract-webhooks.md#management-routes over HTTP. */

jest.setTimeout(120_000);

let site: Site;
let receiver: http.Server;
let target: string;
const BASE = '/api/fw-crm/v1';

beforeAll(async () => {
  receiver = http
    .createServer((request, response) => {
      request.resume();
      request.on('end', () => {
        response.statusCode = request.url === '/broken' ? 503 : 200;
        response.end('stored');
      });
    })
    .listen(0, '127.0.0.1');
  await new Promise((resolve) => receiver.once('listening', resolve));
  target = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`;
  site = await startSite();
});

afterAll(async () => {
  await site?.stop();
  receiver?.closeAllConnections();
  receiver?.close();
});

const valid = (changes: Record<string, unknown> = {}) => ({
  name: 'CRM mirror',
  url: `${target}/hook`,
  events: ['contact.created'],
  ...changes,
});

const create = async (changes: Record<string, unknown> = {}) => {
  const answer = await site.request('POST', `${BASE}/webhooks`, { body: valid(changes) });
  expect(answer.status).toBe(201);
  return answer.body;
};

describe('webhooks', () => {
  test('create answers 201 with the whole webhook and its secret, active by default', async () => {
    const webhook = await create();
    expect(Object.keys(webhook).sort()).toEqual(
      [
        'active',
        'answered_since_rotation',
        'concurrency',
        'consecutive_failures',
        'created_at',
        'disabled_at',
        'disabled_because',
        'disabled_reason',
        'events',
        'filter',
        'header_names',
        'headers',
        'health',
        'id',
        'name',
        'ordering',
        'payload',
        'previous_secret_until',
        'rate_per_second',
        'secret',
        'updated_at',
        'url',
      ].sort()
    );
    expect(webhook).toMatchObject({ ...valid(), active: true, consecutive_failures: 0 });
    expect(webhook.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(webhook.created_at).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+\+00:00$/);
  });

  test('a list never carries a secret, one webhook does', async () => {
    const { id, secret } = await create({ name: 'secretive' });
    const list = await site.request('GET', `${BASE}/webhooks?per_page=100`);
    expect(list.status).toBe(200);
    expect(list.body.data.length).toBeGreaterThan(0);
    expect(JSON.stringify(list.body)).not.toContain('whsec_');
    for (const row of list.body.data) expect(row).not.toHaveProperty('secret');
    expect(list.body.meta.pagination).toMatchObject({ page: 1, per_page: 100, page_count: 1 });
    const one = await site.request('GET', `${BASE}/webhooks/${id}`);
    expect(one.body.secret).toBe(secret);
  });

  test('a secret is encrypted in the database', async () => {
    const { id, secret } = await create();
    const [row] = await site.control<{ secret: string }[]>('sql', {
      statement: 'SELECT secret FROM switchboard_webhooks WHERE id = ?',
      bindings: [id],
    });
    expect(row.secret).toMatch(/^v1:/);
    expect(row.secret).not.toContain(secret.slice(6));
  });

  test.each(['PUT', 'PATCH'])('%s changes what is named and nothing else', async (method) => {
    const { id } = await create({ active: false });
    const answer = await site.request(method, `${BASE}/webhooks/${id}`, {
      body: { events: ['*'], active: true },
    });
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({ id, name: 'CRM mirror', events: ['*'], active: true });
    expect(answer.body).not.toHaveProperty('secret');
  });

  test('delete removes the webhook and its log', async () => {
    const { id } = await create();
    await site.request('POST', `${BASE}/webhooks/${id}/test`);
    const deleted = await site.request('DELETE', `${BASE}/webhooks/${id}`);
    expect(deleted.status).toBe(204);
    expect((await site.request('GET', `${BASE}/webhooks/${id}`)).status).toBe(404);
    const [{ n }] = await site.control<{ n: number }[]>('sql', {
      statement: 'SELECT COUNT(*) AS n FROM switchboard_deliveries WHERE webhook_id = ?',
      bindings: [id],
    });
    expect(Number(n)).toBe(0);
  });

  test('test sends a ping now and shows the answer, also of a receiver that refuses', async () => {
    const { id } = await create({ active: false });
    const good = await site.request('POST', `${BASE}/webhooks/${id}/test`);
    expect(good.status).toBe(200);
    expect(good.body).toEqual({
      ok: true,
      response_code: 200,
      error: null,
      duration_ms: expect.any(Number),
      delivery_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    await site.request('PATCH', `${BASE}/webhooks/${id}`, { body: { url: `${target}/broken` } });
    const bad = await site.request('POST', `${BASE}/webhooks/${id}/test`);
    expect(bad.body).toMatchObject({ ok: false, response_code: 503, error: 'http_503' });
    const log = await site.request('GET', `${BASE}/webhooks/${id}/deliveries`);
    expect(
      log.body.data.map((row: { status: string; tries: number }) => [row.status, row.tries])
    ).toEqual([
      ['failed', 1],
      ['sent', 1],
    ]);
  });

  test('rotation answers with the new secret and forgets the old one', async () => {
    const { id, secret } = await create();
    const rotated = await site.request('POST', `${BASE}/webhooks/${id}/secret`);
    expect(rotated.status).toBe(200);
    expect(Object.keys(rotated.body)).toEqual(['secret']);
    expect(rotated.body.secret).toMatch(/^whsec_/);
    expect(rotated.body.secret).not.toBe(secret);
    expect((await site.request('GET', `${BASE}/webhooks/${id}`)).body.secret).toBe(
      rotated.body.secret
    );
  });

  test('events lists everything that can be chosen', async () => {
    const { status, body } = await site.request('GET', `${BASE}/webhooks/events`);
    expect(status).toBe(200);
    const created = body.data.find((row: { event: string }) => row.event === 'contact.created');
    expect(created).toMatchObject({ label: expect.any(String), group: expect.any(String) });
    expect(Object.keys(created).sort()).toEqual(
      ['description', 'event', 'example', 'group', 'label', 'module', 'schema'].sort()
    );
  });
});

describe('wrong input is a 4xx that names the field', () => {
  const wrong: [string, unknown, RegExp][] = [
    ['no name', { name: undefined }, /name/],
    ['an empty name', { name: '  ' }, /name/],
    ['a name that is no string', { name: 5 }, /name/],
    ['a name too long', { name: 'x'.repeat(256) }, /name/],
    ['no url', { url: undefined }, /url/],
    ['a url that is none', { url: 'not a url' }, /url/],
    ['a scheme that is not http', { url: 'ftp://example.com' }, /url/],
    ['credentials in the url', { url: 'https://user:pass@example.com/' }, /url/],
    ['no events', { events: undefined }, /events/],
    ['an empty list of events', { events: [] }, /events/],
    ['events that are no list', { events: 'contact.created' }, /events/],
    ['an unknown event', { events: ['contact.exploded'] }, /events.*contact\.exploded/],
    ['* beside another event', { events: ['*', 'contact.created'] }, /events/],
    ['active that is no boolean', { active: 'yes' }, /active/],
  ];

  test.each(wrong)('create with %s', async (_what, changes, named) => {
    const answer = await site.request('POST', `${BASE}/webhooks`, {
      body: valid(changes as Record<string, unknown>),
    });
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({
      data: null,
      error: { status: 400, name: 'ValidationError', details: expect.anything() },
    });
    expect(answer.body.error.message).toMatch(named);
  });

  test.each(['page=0', 'page=x', 'per_page=0', 'per_page=101', 'per_page=1.5', 'status=lost'])(
    'a log asked for with %s',
    async (query) => {
      const { id } = await create();
      const answer = await site.request('GET', `${BASE}/webhooks/${id}/deliveries?${query}`);
      expect(answer.status).toBe(400);
      expect(answer.body.error.message).toContain(query.split('=')[0]);
    }
  );

  test.each([
    ['GET', '/webhooks/999999'],
    ['PATCH', '/webhooks/999999'],
    ['DELETE', '/webhooks/999999'],
    ['POST', '/webhooks/999999/test'],
    ['POST', '/webhooks/999999/secret'],
    ['GET', '/webhooks/999999/deliveries'],
    ['POST', '/webhook-deliveries/999999/retry'],
    ['POST', '/webhook-deliveries/999999/skip'],
    ['POST', '/webhook-deliveries/999999/release'],
    ['GET', '/webhooks/99999999999999999999'],
    ['GET', '/webhooks/abc'],
    ['GET', '/webhooks/1e3'],
  ])('%s %s is a 404', async (method, path) => {
    const answer = await site.request(method, `${BASE}${path}`, {
      ...(method === 'PATCH' && { body: { name: 'x' } }),
    });
    expect(answer.status).toBe(404);
    expect(answer.body.error).toMatchObject({ status: 404, name: 'NotFoundError' });
  });

  test('a malformed JSON body', async () => {
    const answer = await fetch(`${site.url}${BASE}/webhooks`, {
      method: 'POST',
      headers: { authorization: `Bearer ${site.apiToken}`, 'content-type': 'application/json' },
      body: '{"name": ',
    });
    expect(answer.status).toBe(400);
  });

  test.each(['[]', '"text"', '5', 'null'])('a body that is %s', async (body) => {
    const answer = await fetch(`${site.url}${BASE}/webhooks`, {
      method: 'POST',
      headers: { authorization: `Bearer ${site.apiToken}`, 'content-type': 'application/json' },
      body,
    });
    expect(answer.status).toBe(400);
  });
});

describe('the module switched off', () => {
  afterEach(() => site.request('PUT', '/switchboard/modules', { body: { webhooks: true } }));

  test('routes answer 404 and say why; nothing is queued', async () => {
    const { id } = await create({ events: ['*'] });
    const off = await site.request('PUT', '/switchboard/modules', { body: { webhooks: false } });
    expect(off.status).toBe(200);
    expect(off.body.data).toContainEqual({ id: 'webhooks', name: 'Webhooks', enabled: false });
    const answer = await site.request('GET', `${BASE}/webhooks/${id}`);
    expect(answer.status).toBe(404);
    expect(answer.body.error.message).toMatch(/Webhooks is switched off/);
    expect(await site.control('send', { event: 'x.happened', data: {} })).toBe(0);
  });

  test.each([{}, { unheard_of: true }, { webhooks: 'no' }])('refuses %j', async (body) => {
    expect((await site.request('PUT', '/switchboard/modules', { body })).status).toBe(400);
  });
});

describe('who may', () => {
  test('nobody without credentials', async () => {
    const answer = await site.request('GET', `${BASE}/webhooks`, { as: 'nobody' });
    expect([401, 403]).toContain(answer.status);
    expect((await site.request('GET', '/switchboard/webhooks', { as: 'nobody' })).status).toBe(401);
  });

  test('a read-only token reads and does not write', async () => {
    const token = await createApiToken(site, { type: 'read-only' });
    const { id } = await create();
    const as = { token };
    expect((await site.request('GET', `${BASE}/webhooks`, { as })).status).toBe(200);
    expect((await site.request('GET', `${BASE}/webhooks/${id}`, { as })).status).toBe(200);
    expect((await site.request('GET', `${BASE}/webhooks/events`, { as })).status).toBe(200);
    expect((await site.request('GET', `${BASE}/webhooks/${id}/deliveries`, { as })).status).toBe(
      200
    );
    const writes: [string, string][] = [
      ['POST', '/webhooks'],
      ['PUT', `/webhooks/${id}`],
      ['PATCH', `/webhooks/${id}`],
      ['DELETE', `/webhooks/${id}`],
      ['POST', `/webhooks/${id}/test`],
      ['POST', `/webhooks/${id}/secret`],
    ];
    for (const [method, path] of writes) {
      const body = method === 'DELETE' ? undefined : valid();
      expect((await site.request(method, `${BASE}${path}`, { as, body })).status).toBe(403);
    }
  });

  test('a custom token reaches the actions it was given and no other', async () => {
    const token = await createApiToken(site, {
      type: 'custom',
      permissions: ['plugin::switchboard.webhooks.find'],
    });
    const as = { token };
    expect((await site.request('GET', `${BASE}/webhooks`, { as })).status).toBe(200);
    expect((await site.request('POST', `${BASE}/webhooks`, { as, body: valid() })).status).toBe(
      403
    );
    expect((await site.request('GET', `${BASE}/webhooks/events`, { as })).status).toBe(403);
  });

  test('a change that is based on an older version is refused, with who changed it', async () => {
    const created = await site.request('POST', '/switchboard/webhooks', { body: valid() });
    const { id, updated_at: before } = created.body.data;
    const put = (body: Record<string, unknown>) =>
      site.request('PUT', `/switchboard/webhooks/${id}`, { body });
    const first = await put({ name: 'First', if_updated_at: before });
    expect(first.status).toBe(200);
    const second = await put({ name: 'Second', rate_per_second: 3, if_updated_at: before });
    expect(second.status).toBe(409);
    expect(second.body.error.details).toEqual({
      code: 'changed_meanwhile',
      values: { by: expect.stringMatching(/./), at: first.body.data.updated_at },
    });
    const { data } = (await site.request('GET', `/switchboard/webhooks/${id}`)).body;
    expect([data.name, data.rate_per_second]).toEqual(['First', null]);
    expect((await put({ name: 'Third' })).status).toBe(200);
  });

  test('the admin routes answer in data', async () => {
    const created = await site.request('POST', '/switchboard/webhooks', { body: valid() });
    expect(created.status).toBe(201);
    expect(created.body.data.secret).toMatch(/^whsec_/);
    const { id } = created.body.data;
    expect((await site.request('GET', `/switchboard/webhooks/${id}`)).body.data.id).toBe(id);
    expect((await site.request('GET', '/switchboard/webhooks')).body.data.length).toBeGreaterThan(
      0
    );
  });
});
