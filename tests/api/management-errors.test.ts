import { startSite, type Site } from '../support/site';

/** What a wrong request is told: every wrong field at once, and nothing found by a name of JavaScript's. */

jest.setTimeout(120_000);

const WEBHOOKS = '/api/fw-crm/v1/webhooks';

let site: Site;
let id: number;

beforeAll(async () => {
  // A live site: private addresses are refused.
  site = await startSite({ nodeEnv: 'production' });
  const body = { name: 'r', url: 'https://receiver.invalid/', events: ['contact.created'] };
  const created = await site.request('POST', WEBHOOKS, { body });
  expect(created.status).toBe(201);
  id = created.body.id;
});

afterAll(() => site?.stop());

interface Refusal {
  error: {
    name: string;
    message: string;
    details: { errors: { path: string[]; code?: string; values?: unknown }[] };
  };
}

const refusal = async (method: string, path: string, body: unknown): Promise<Refusal['error']> => {
  const answer = await site.request<Refusal>(method, path, { body });
  expect(answer.status).toBe(400);
  expect(answer.body.error.name).toBe('ValidationError');
  return answer.body.error;
};

const named = (error: Refusal['error']): string[] =>
  error.details.errors.map(({ path }) => path.join('.')).sort();

describe('several wrong fields are named together', () => {
  const routes = () => [
    ['POST', WEBHOOKS],
    ['PUT', `${WEBHOOKS}/${id}`],
    ['PATCH', `${WEBHOOKS}/${id}`],
    ['POST', '/switchboard/webhooks'],
    ['PUT', `/switchboard/webhooks/${id}`],
  ];

  test('of the wrong types, and an address that is none', async () => {
    for (const [method, path] of routes()) {
      const body = { name: 17, url: 'nope', events: 'x', active: 'y' };
      const error = await refusal(method!, path!, body);
      expect(named(error)).toEqual(['active', 'events', 'name', 'url']);
      for (const field of ['name', 'url', 'events', 'active']) {
        expect(error.message).toContain(`${field}: `);
      }
    }
  });

  test('a refused address, unknown events, and a missing name', async () => {
    for (const [method, path] of routes()) {
      const body = {
        name: '',
        url: 'http://10.0.0.1/',
        events: ['contact.created', 'contact.exploded', 'deal.vanished'],
      };
      const error = await refusal(method!, path!, body);
      expect(named(error)).toEqual(['events', 'name', 'url']);
      expect(error.message).toContain('unknown event contact.exploded, deal.vanished');
    }
  });

  test('each with a code and what it names, for whoever says it in another language', async () => {
    const codes = async (body: unknown): Promise<Record<string, unknown>> => {
      const { details } = await refusal('PATCH', `${WEBHOOKS}/${id}`, body);
      return Object.fromEntries(
        details.errors.map(({ path, code, values }) => [path.join('.'), { code, values }])
      );
    };
    expect(
      await codes({
        name: '',
        url: 'http://10.0.0.1/',
        events: ['contact.exploded'],
        rate_per_second: 'fast',
        concurrency: 1_000,
        filter: { pattern: '(a+)+$' },
      })
    ).toEqual({
      name: { code: 'empty', values: { minimum: 1 } },
      url: { code: 'url_private' },
      events: { code: 'events_unknown', values: { events: 'contact.exploded' } },
      rate_per_second: { code: 'invalid' },
      concurrency: { code: 'too_large', values: { maximum: 256 } },
      filter: { code: 'filter_pattern', values: { pattern: '"(a+)+$"' } },
    });
    expect(
      await codes({ name: 'a\nb', url: 'https://me:pw@receiver.invalid/', events: [] })
    ).toEqual({
      name: { code: 'control_characters' },
      url: { code: 'url_credentials' },
      events: { code: 'choose_one', values: { minimum: 1 } },
    });
    expect(await codes({ filter: { typo: 1 } })).toMatchObject({
      filter: { code: 'filter_schema', values: { reason: expect.stringContaining('typo') } },
    });
    const { details } = await refusal('POST', WEBHOOKS, {});
    expect(details.errors).toContainEqual(
      expect.objectContaining({ path: ['name'], code: 'required' })
    );
  });

  test('what cannot be done now has a code too', async () => {
    const replayed = await site.request('POST', `${WEBHOOKS}/${id}/replay`, {
      body: { from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z' },
    });
    expect([replayed.status, replayed.body.error.details]).toEqual([409, { code: 'no_journal' }]);
  });

  test('what is right changed nothing', async () => {
    const one = await site.request('GET', `${WEBHOOKS}/${id}`);
    expect(one.body).toMatchObject({ name: 'r', url: 'https://receiver.invalid/', active: true });
  });

  test('of a contact: keys that there are none of, and records that do not exist', async () => {
    const error = await refusal('POST', '/api/fw-crm/v1/contacts', {
      email: 'nobody',
      score: 'many',
      one: 1,
      two: 2,
    });
    expect(named(error)).toEqual(['email', 'one', 'score', 'two']);
    const missing = await refusal('POST', '/api/fw-crm/v1/deals', {
      title: 'd',
      contact_id: 'nobody',
      company_id: 'nobody',
      stage_id: 'nowhere',
    });
    expect(named(missing)).toEqual(['company_id', 'contact_id', 'stage_id']);
  });

  test('of a connection: locations that do not exist', async () => {
    const error = await refusal('POST', '/switchboard/connections', {
      name: 'a\nb',
      scopes: ['sale:write', 'everything'],
      mode: 'dead',
    });
    expect(named(error)).toEqual(['mode', 'name', 'scopes.1']);
    const missing = await refusal('POST', '/switchboard/connections', {
      name: 'till',
      scopes: ['sale:write'],
      mode: 'live',
      locations: [
        { ref: '1', location: 'nowhere' },
        { ref: '2', location: 'main' },
        { ref: '3', location: 999_999 },
      ],
    });
    expect(named(missing)).toEqual(['locations.0.location', 'locations.2.location']);
  });
});

describe('names of JavaScript’s own are names like others', () => {
  const names = ['constructor', '__proto__', 'toString', 'hasOwnProperty'];

  test.each(names)('a test with the event %s is a 400', async (event) => {
    const path = `${WEBHOOKS}/${id}/test`;
    const body = `{"event":${JSON.stringify(event)}}`;
    const headers = { 'content-type': 'application/json' };
    const answer = await site.request<Refusal>('POST', path, { body, headers });
    expect(answer.status).toBe(400);
    expect(named(answer.body.error)).toEqual(['event']);
  });

  test.each(names)('a webhook for the event %s is a 400', async (event) => {
    const body = { name: 'x', url: 'https://receiver.invalid/', events: [event] };
    expect(named(await refusal('POST', WEBHOOKS, body))).toEqual(['events']);
  });

  test('a module of such a name is a 400', async () => {
    for (const name of names) {
      const answer = await site.request('PUT', '/switchboard/modules', {
        body: `{${JSON.stringify(name)}:true}`,
        headers: { 'content-type': 'application/json' },
      });
      expect(answer.status).toBe(400);
    }
  });
});

describe('what an owner gives a name is one line of text', () => {
  const breaks = ['a\nb', 'a\rb', 'a\r\nb', 'a\u0085b', 'a\u2028b', 'a\u2029b', 'a\u0000b', 'a\n'];

  test.each([
    ['a webhook', 'POST', () => WEBHOOKS, { url: 'https://r.invalid/', events: ['*'] }],
    ['a webhook that is changed', 'PATCH', () => `${WEBHOOKS}/${id}`, {}],
    ['a connection', 'POST', () => '/switchboard/connections', { scopes: [], mode: 'test' }],
    ['a location', 'POST', () => '/switchboard/locations', { code: 'x1' }],
    ['an item', 'POST', () => '/switchboard/items', { sku: 'x1' }],
    ['an application password', 'POST', () => '/switchboard/application-passwords', {}],
  ])('%s', async (_what, method, path, rest) => {
    for (const name of breaks) {
      const error = await refusal(method, path(), { ...rest, name });
      expect(named(error)).toEqual(['name']);
    }
    const fine = await site.request(method, path(), { body: { ...rest, name: ' Größe – 店 😀 ' } });
    expect(fine.status).toBeLessThan(300);
    expect((fine.body.data ?? fine.body).name).toBe('Größe – 店 😀');
  });
});
