import { anyDatabase, databases, describeEach } from '../support/databases';
import { type Site, startSite } from '../support/site';

/** What no route knows, and ids that no row can have, are refused by every route in the same way. */

jest.setTimeout(180_000);

interface QueryParameter {
  name: string;
  /** It is read as a number: an id, or a place in a list. */
  isNumber: boolean;
}

/** A route as the plugin registered it. */
interface Route {
  family: 'crm' | 'admin';
  method: string;
  path: string;
  handler: string;
  /** Others than the site's own clients call it: a mail provider. */
  isOpen: boolean;
  query: QueryParameter[];
  /** The JSON Schema of its body; null: it takes none. */
  body: Schema | null;
}

interface Schema {
  type?: string;
  pattern?: string;
  format?: string;
  readOnly?: boolean;
  properties?: Record<string, Schema>;
  items?: Schema;
  anyOf?: Schema[];
}

const PREFIX = { crm: '/api/fw-crm/v1', admin: '/switchboard' } as const;

const readRoutes = (site: Site): Promise<Route[]> =>
  site.evaluate(({ strapi, require }) => {
    const { z } = require('@strapi/utils');
    const families = strapi.plugin('switchboard').routes;
    return ['crm', 'admin'].flatMap((family) =>
      // eslint-disable-next-line @typescript-eslint/no-explicit-any -- the host's routes are untyped
      families[family].routes.map(({ method, path, handler, config, request }: any) => {
        const body = request?.body?.['application/json'];
        const options = { io: 'input', unrepresentable: 'any', reused: 'inline' };
        return {
          ...{ family, method, path, handler: String(handler), isOpen: config.auth === false },
          query: Object.entries(request?.query ?? {}).map(([name, schema]) => ({
            name,
            // eslint-disable-next-line @typescript-eslint/no-explicit-any -- a zod type of any kind
            isNumber: typeof (schema as any).safeParse('1').data === 'number',
          })),
          body: body ? z.toJSONSchema(body, options) : null,
        };
      })
    );
  }) as Promise<Route[]>;

/** Beyond a column of 32 bits. */
const BEYOND = '2147483648';
/** Beyond what JavaScript counts, beyond 64 bits, and no ids at all. */
const IDS = ['9007199254740993', '99999999999999999999', '-1', '1.5', 'abc'];
/** As JSON. */
const BODY_IDS = [...IDS.slice(0, -1), `"${BEYOND}"`, '"abc"', '""', '0'];

/** One of these, each in its turn: every place is tried with two, and every one in many places. */
const inTurn = <T>(values: readonly T[]): (() => T) => {
  let turn = 0;
  return () => {
    turn += 1;
    return values[turn % values.length] as T;
  };
};
const nextId = inTurn(IDS);
const nextBodyId = inTurn(BODY_IDS);

/** Numbers of a query that are no ids of rows. */
const PLACES = new Set(['page', 'per_page', 'limit', 'after']);
const ID_NAME = /(^|_)ids?$|^(webhook|recovery|connection|item|location)$/;
const DOCUMENT_ID = '^[A-Za-z0-9_-]{1,64}$';

const RANGE = { from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z' };

/** Bodies that pass but for the id that is put into them; of every route whose body names one. */
const BODIES: Record<string, Record<string, unknown>> = {
  'contact-merges.merge': { keep: 'a', remove: 'b' },
  'contacts.create': { email: 'somebody@example.test' },
  'contacts.update': {},
  'companies.create': { name: 'a' },
  'companies.update': {},
  'deals.create': { title: 'a' },
  'deals.update': {},
  'tasks.create': { title: 'a' },
  'tasks.update': {},
  'recoveries.preview': { filter: {} },
  'recoveries.create': { filter: {} },
  'stock-items.create': { sku: 'refused', opening: [{ quantity: 1 }] },
  'stock-items.adjust': { quantity: 1 },
  'stock-transfers.create': { from: 1, to: 1, lines: [{ item: 1, quantity: 1 }] },
  'stocktakes.create': { location: 1, preview: true, counts: [{ item: 1, quantity: 1 }] },
  'mapping-inbox.resolve': { kind: 'sku', value: 'refused', preview: true, to: {} },
  'mapping-inbox.undo': {},
  'pos-connections.create': { name: 'a', scopes: [], locations: [{ ref: 'a', location: 1 }] },
  'pos-connections.update': { locations: [{ ref: 'a', location: 1 }] },
  'webhooks.replay': RANGE,
};

const alternatives = (schema: Schema): Schema[] =>
  schema.anyOf ? schema.anyOf.flatMap(alternatives) : [schema];

/** Where a body names rows: the path of each such field, `[]` for an entry of a list. */
const idFieldsOf = (schema: Schema, path: readonly string[] = []): string[][] =>
  alternatives(schema).flatMap((one) => {
    if (one.readOnly) return [];
    const inner = Object.entries(one.properties ?? {}).flatMap(([name, field]) =>
      idFieldsOf(field, [...path, name])
    );
    const entries = one.items ? idFieldsOf(one.items, [...path, '[]']) : [];
    const name = path.findLast((part) => part !== '[]') ?? '';
    const isPlace = name === 'from' || name === 'to';
    const isNumber = one.type === 'integer' || one.type === 'number';
    const isId = one.pattern === DOCUMENT_ID || (isNumber && (ID_NAME.test(name) || isPlace));
    return [...(isId ? [[...path]] : []), ...inner, ...entries];
  });

const uniquePaths = (paths: string[][]): string[][] => [
  ...new Map(paths.map((path) => [path.join('.'), path])).values(),
];

const PLACEHOLDER = '@@id';

/** The base with a placeholder at a path; a list has one entry. */
const withId = (base: unknown, [name, ...rest]: readonly string[]): unknown => {
  if (name === undefined) return PLACEHOLDER;
  if (name === '[]') return [withId(Array.isArray(base) ? base[0] : undefined, rest)];
  const object = (base ?? {}) as Record<string, unknown>;
  return { ...object, [name]: withId(object[name], rest) };
};

interface Probe {
  route: Route;
  path: string;
  body?: string;
  /** What it is answered must be among these; undefined: anything but a 5xx. */
  expected?: readonly number[];
}

const fill = ({ family, path }: Route, id: string): string =>
  `${PREFIX[family]}${path.replace(/:\w+/g, encodeURIComponent(id))}`;

const bodyOf = ({ handler }: Route): Record<string, unknown> | undefined =>
  BODIES[handler.replace('-admin.', '.')];

const jsonOf = (route: Route): string | undefined =>
  route.method === 'GET' || route.method === 'DELETE'
    ? undefined
    : JSON.stringify(bodyOf(route) ?? {});

const probesOf = (route: Route): Probe[] => {
  const body = jsonOf(route);
  const inPath = route.path.includes(':')
    ? [
        ...[BEYOND, nextId()].map((id) => ({ id, expected: [400, 404] })),
        // Another route may be there.
        { id: '', expected: undefined },
      ].map(({ id, expected }) => ({ route, path: fill(route, id), body, expected }))
    : [];
  const inQuery = route.query.flatMap(({ name, isNumber }) => {
    const isId = isNumber && !PLACES.has(name) && !route.path.includes(':');
    // A text may be anything; of a place in a list what matters is that it is bounded.
    return [BEYOND, ...(isNumber ? [nextId(), ''] : [])].map((id) => ({
      ...{ route, path: `${fill(route, '1')}?${name}=${id}`, body },
      ...(isId && { expected: [400] }),
    }));
  });
  const inBody = route.body
    ? uniquePaths(idFieldsOf(route.body)).flatMap((path) => {
        const text = JSON.stringify(withId(bodyOf(route), path));
        return [BEYOND, nextBodyId(), nextBodyId()].map((id) => ({
          ...{ route, path: fill(route, '1'), expected: [400, 404] },
          body: text.replace(`"${PLACEHOLDER}"`, id),
        }));
      })
    : [];
  return [...inPath, ...inQuery, ...inBody];
};

/** Sends a few at a time. @returns those that were answered otherwise than expected */
const sendAll = async (site: Site, probes: readonly Probe[]): Promise<string[]> => {
  const wrong: string[] = [];
  const queue = [...probes];
  const headers = { 'content-type': 'application/json' };
  const sender = async (): Promise<void> => {
    for (let probe = queue.pop(); probe; probe = queue.pop()) {
      const { route, path, body, expected } = probe;
      const { status } = await site.request(route.method, path, { body, ...(body && { headers }) });
      const isRight = expected ? expected.includes(status) : status < 500;
      if (!isRight) wrong.push(`${status} ${route.method} ${path} ${body ?? ''}`);
    }
  };
  await Promise.all(Array.from({ length: 8 }, sender));
  return wrong.sort();
};

describeEach(databases(), 'every route', (database) => {
  let site: Site;
  let routes: Route[];

  beforeAll(async () => {
    site = await startSite({
      database,
      options: { webhooks: { dispatch: false, journalDays: 1 }, pos: { process: false } },
    });
    routes = await readRoutes(site);
  }, 180_000);
  afterAll(() => site?.stop(), 60_000);

  const refusedFields = async (method: string, path: string, body: object): Promise<string[]> => {
    const answer = await site.request(method, path, { body });
    expect([method, path, answer.status]).toEqual([method, path, 400]);
    return answer.body.error.details.errors.map((one: { path: string[] }) => one.path.join('.'));
  };

  const CONNECTION = {
    ...{ name: 'till', scopes: ['sale:write'], locations: [{ ref: '1', location: 'main' }] },
    ...{ expected_every_minutes: 5, group: 'shop', country: 'GB', mode: 'live' },
    open_hours: [{ days: ['mon'], from: '09:00', to: '18:00' }],
  };

  it('finds contacts by name, e-mail address and phone number, in any case', async () => {
    const people = [
      { first_name: 'Ada', last_name: 'Lovelace', email: 'ada@analytical.example' },
      { first_name: 'Ärmel', last_name: '100%_sure', phone: '+49 (0)151 2345-678' },
      { first_name: 'ADALBERT', last_name: 'Straße', phone: '0044 20 7946 0958' },
    ];
    for (const body of people) {
      expect((await site.request('POST', '/api/fw-crm/v1/contacts', { body })).status).toBe(201);
    }
    const found = async (q: string, more = ''): Promise<string[]> => {
      const path = `/api/fw-crm/v1/contacts?q=${encodeURIComponent(q)}${more}`;
      const { status, body } = await site.request('GET', path);
      expect([q, status]).toEqual([q, 200]);
      expect(body.meta.pagination.total).toBe(body.data.length);
      return body.data.map((one: { first_name: string }) => one.first_name);
    };
    expect(await found('ada')).toEqual(['Ada', 'ADALBERT']);
    expect(await found('ada', '&per_page=100&email=ADA@analytical.example')).toEqual(['Ada']);
    expect(await found('LOVELACE ada')).toEqual(['Ada']);
    expect(await found('ada straße')).toEqual(['ADALBERT']);
    expect(await found('ANALYTICAL.')).toEqual(['Ada']);
    expect(await found('ÄRMEL')).toEqual(['Ärmel']);
    expect(await found('ärm')).toEqual(['Ärmel']);
    expect(await found('0%_S')).toEqual(['Ärmel']);
    for (const nobody of ['%', '_', '*da', 'A?a', '[a]da', 'ada nobody', '!', "' or 1=1 --"]) {
      expect([nobody, await found(nobody)]).toEqual([
        nobody,
        nobody === '%' || nobody === '_' ? ['Ärmel'] : [],
      ]);
    }
    for (const phone of ['+44 20 7946 0958', '0044-20-79460958', '7946-0958', '020 7946']) {
      expect([phone, await found(phone)]).toEqual([phone, ['ADALBERT']]);
    }
    expect(await found('2345 678')).toEqual(['Ärmel']);
    expect(await found('ada', '&trashed=true')).toEqual([]);
  });

  // PostgreSQL refuses whatever MySQL does, and SQLite's driver values of types that it does not know.
  const strict = databases().filter(
    (kind) => kind !== 'mysql' || !databases().includes('postgres')
  );
  if (!strict.includes(database)) return;

  it('answers ids that no row can have with a 400 or a 404: in paths, queries and bodies', async () => {
    const unlisted = routes.filter(
      (route) => route.body && idFieldsOf(route.body).length > 0 && !bodyOf(route)
    );
    // A new one needs a body above.
    expect(unlisted.map(({ handler }) => handler)).toEqual([]);
    const probes = routes.filter(({ isOpen }) => !isOpen).flatMap(probesOf);
    expect(probes.length).toBeGreaterThan(500);
    expect(await sendAll(site, probes)).toEqual([]);
    expect(site.log()).not.toMatch(/\berror\b:/);
  });

  // What follows is judged before any database is asked.
  if (!anyDatabase().includes(database)) return;

  it('refuses parameters that it does not know, by name', async () => {
    const asked = routes.filter(({ isOpen }) => !isOpen);
    expect(asked.length).toBeGreaterThan(100);
    const answers = await Promise.all(
      asked.map(async (route) => {
        const path = `${fill(route, '1')}?no_such=1&populate=*&filters[id][$eq]=1`;
        const { status, body } = await site.request(route.method, path, {
          ...(jsonOf(route) && { body: {} }),
        });
        const named = body?.error?.details?.errors?.map((one: { path: string[] }) => one.path);
        return [route.method, route.path, status, body?.error?.name, named];
      })
    );
    const namedOf = ({ query }: Route) =>
      ['no_such', 'populate', 'filters']
        .filter((sent) => !query.some(({ name }) => name === sent))
        .map((name) => [name]);
    expect(answers).toEqual(
      asked.map((route) => [route.method, route.path, 400, 'ValidationError', namedOf(route)])
    );
    const { body } = await site.request('GET', '/api/fw-crm/v1/tags?name=a');
    expect(body.error.message).toBe(
      'name: is not a parameter of this route; it takes page, per_page, slug, contact_id'
    );
    const modules = await site.request('GET', '/switchboard/modules?name=a');
    expect(modules.body.error.message).toBe(
      'name: is not a parameter of this route, which takes none'
    );
  });

  it('takes back what it answered, and refuses keys that it does not know by name', async () => {
    const webhook = { name: 'w', url: 'http://127.0.0.1:9/', events: ['*'], filter: {} };
    const lists: [list: string, body: Record<string, unknown>][] = [
      ['/api/fw-crm/v1/webhooks', { ...webhook, headers: { 'x-own': 'a' }, active: false }],
      ['/switchboard/webhooks', { ...webhook, payload: 'thin', active: false }],
      ['/api/fw-crm/v1/contacts', { email: 'back@example.test', fields: { a: 1 } }],
      ['/api/fw-crm/v1/tags', { name: 'Back' }],
      ['/api/fw-crm/v1/companies', { name: 'Back' }],
      ['/api/fw-crm/v1/deals', { title: 'Back', value: 1.5 }],
      ['/api/fw-crm/v1/deal-stages', { name: 'Back' }],
      ['/api/fw-crm/v1/tasks', { title: 'Back' }],
      ['/api/fw-crm/v1/campaigns', { title: 'Back' }],
      ['/switchboard/connections', CONNECTION],
      ['/switchboard/locations', { name: 'Back', code: 'back' }],
      ['/switchboard/items', { sku: 'BACK', gtin: '4006381333931' }],
    ];
    for (const [list, body] of lists) {
      expect(await refusedFields('POST', list, { ...body, no_such: 1 })).toEqual(['no_such']);
      const made = await site.request('POST', list, { body });
      expect([list, made.status]).toEqual([list, 201]);
      const one = `${list}/${(made.body.data ?? made.body).id}`;
      const read = await site.request('GET', one);
      const answered = read.body.data ?? read.body;
      expect(await refusedFields('PUT', one, { ...answered, no_such: 1 })).toEqual(['no_such']);
      const back = await site.request('PUT', one, { body: answered });
      expect([list, back.status]).toEqual([list, 200]);
      if (list.endsWith('/webhooks')) {
        const copy = await site.request('POST', list, { body: answered });
        const { id, secret } = copy.body.data ?? copy.body;
        expect([copy.status, id === answered.id, secret === answered.secret]).toEqual([
          201,
          false,
          false,
        ]);
      }
      const { updated_at: _at, dates: _dates, ...same } = answered;
      const after = (await site.request('GET', one)).body;
      expect(after.data ?? after).toMatchObject(same);
    }
    const { body } = await site.request('GET', '/switchboard/levels?sku=BACK');
    const [level] = body.data;
    const path = `/switchboard/levels/${level.id}`;
    expect((await site.request('PUT', path, { body: level })).status).toBe(200);
    expect(await refusedFields('PUT', path, { ...level, no_such: 1 })).toEqual(['no_such']);
  });

  it('refuses unknown keys within lists, and in what is asked of a webhook', async () => {
    const counts = [{ item: 1, quantity: 1, no_such: 1 }];
    expect(
      await refusedFields('POST', '/switchboard/stocktakes', { location: 'main', counts })
    ).toEqual(['counts.0.no_such']);
    const lines = { from: 'main', to: 'main', lines: counts };
    expect(await refusedFields('POST', '/switchboard/transfers', lines)).toEqual([
      'lines.0.no_such',
    ]);
    const opening = [{ quantity: 1, no_such: 1 }];
    expect(await refusedFields('POST', '/switchboard/items', { sku: 'x', opening })).toEqual([
      'opening.0.no_such',
    ]);
    const locations = [{ ref: 'a', location: 1, no_such: 1 }];
    expect(
      await refusedFields('POST', '/switchboard/connections', { ...CONNECTION, locations })
    ).toEqual(['locations.0.no_such']);
    const { body } = await site.request('POST', '/api/fw-crm/v1/webhooks', {
      body: { name: 'w', url: 'http://127.0.0.1:9/', events: ['contact.created'] },
    });
    const path = `/api/fw-crm/v1/webhooks/${body.id}`;
    // A misspelt overlap would end the old secret at once.
    expect(await refusedFields('POST', `${path}/secret`, { overlap: 1 })).toEqual(['overlap']);
    expect(await refusedFields('POST', `${path}/test`, { events: 'ping' })).toEqual(['events']);
    expect(await refusedFields('POST', `${path}/replay`, { ...RANGE, dryrun: true })).toEqual([
      'dryrun',
    ]);
  });

  it('refuses to try a filter with an event that there is none of', async () => {
    const { body } = await site.request('POST', '/api/fw-crm/v1/webhooks', {
      body: { name: 'w', url: 'http://127.0.0.1:9/', events: ['*'] },
    });
    for (const family of ['/api/fw-crm/v1', '/switchboard']) {
      const path = `${family}/webhooks/${body.id}/filter/preview`;
      for (const event of ['contact.exploded', '*', 'constructor']) {
        expect(await refusedFields('POST', path, { filter: {}, event })).toEqual(['event']);
      }
      const known = { filter: {}, event: 'contact.created' };
      expect((await site.request('POST', path, { body: known })).body).toMatchObject(
        family === '/switchboard' ? { data: { of: 1 } } : { of: 1 }
      );
    }
  });

  it('says what a number may be in words', async () => {
    const said = async (method: string, path: string, body?: unknown): Promise<string> =>
      (await site.request(method, path, { body })).body.error.message;
    const page = 'must be a whole number from 1 to 100';
    expect(await said('GET', '/api/fw-crm/v1/contacts?per_page=500')).toBe(`per_page: ${page}`);
    expect(await said('GET', '/switchboard/levels?item=2147483648')).toBe(
      'item: must be the id of an item'
    );
    expect(await said('GET', '/api/fw-crm/v1/webhook-deliveries?status=sending')).toBe(
      'status: must be one of pending, sent, failed'
    );
    const webhook = { name: 5, events: [], concurrency: 1000, url: '', active: 'yes' };
    expect((await said('POST', '/api/fw-crm/v1/webhooks', webhook)).split('; ')).toEqual([
      'name: must be text',
      'url: must not be empty',
      'events: must name at least one event, or be ["*"]',
      'active: must be true or false',
      'concurrency: must be at most 256',
    ]);
    expect(await said('POST', '/switchboard/items', { low_at: 1.5 })).toBe(
      'sku: is required; low_at: must be a whole number'
    );
  });
});
