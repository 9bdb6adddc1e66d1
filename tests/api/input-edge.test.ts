import { describeEach, serverDatabases } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { createTill } from './pos-till';

/** A route as the plugin registered it, with the names of what it documents. */
interface RouteFacts {
  family: 'crm' | 'pos' | 'admin';
  method: string;
  path: string;
  handler: string;
  query: string[];
  body: string[];
}

const PREFIX = {
  crm: '/api/fw-crm/v1',
  pos: '/api/service-pos/v1',
  admin: '/switchboard',
} as const;

const readRoutes = (site: Site): Promise<RouteFacts[]> =>
  site.evaluate(({ strapi }) => {
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- the host's routes are untyped
    const families = strapi.plugin('switchboard').routes as Record<string, { routes: any[] }>;
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- zod objects of any kind
    const keys = (schema: any): string[] =>
      Object.keys(schema?.shape ?? schema?.def?.in?.shape ?? {});
    return Object.entries(families).flatMap(([family, { routes }]) =>
      routes.map(({ method, path, handler, request }) => ({
        family: family as 'crm' | 'pos' | 'admin',
        method,
        path,
        handler: String(handler),
        query: Object.keys(request?.query ?? {}),
        body: keys(request?.body?.['application/json']),
      }))
    );
  });

/** What the admin's lists take beside a page, where their routes do not document it. */
const FILTERS: Record<string, string[]> = {
  'stock-levels.find': ['page', 'per_page', 'sku', 'item', 'location', 'search'],
  'stock-items.find': ['page', 'search', 'archived'],
  'pos-events.find': ['page', 'state', 'kind', 'connection', 'external_id', 'q'],
  'pos-refusals.list': ['page', 'connection'],
  'deliveries-admin.find': ['page', 'status', 'event'],
};
/** For lists that are not named above. */
const ANY_FILTER = ['page', 'search', 'from', 'q', 'state'];

/** Bodies that pass: each field of one is then replaced with each of the values below. */
const BODIES: Record<string, Record<string, unknown>> = {
  'webhooks.create': {
    name: 'w',
    url: 'http://127.0.0.1:9/',
    events: ['*'],
    active: false,
    filter: {},
    headers: { 'X-A': 'TEXT' },
  },
  'webhooks.rotateSecret': { overlap_hours: 1 },
  'webhooks.previewFilter': { filter: { type: 'object' }, event: 'TEXT' },
  'webhooks.replay': {
    from: '2030-01-01T00:00:00Z',
    to: '2030-01-02T00:00:00Z',
    events: ['*'],
    dry_run: false,
  },
  'recoveries.preview': { filter: { q: 'TEXT' } },
  'recoveries.create': { filter: { webhook: 2_000_000_000 } },
  'contacts.create': { email: 'EMAIL', first_name: 'a', fields: { a: 1 } },
  'tags.create': { name: 'TEXT' },
  'companies.create': { name: 'a' },
  'deals.create': { title: 'a' },
  'deal-stages.create': { name: 'TEXT' },
  'tasks.create': { title: 'a' },
  'campaigns.create': { title: 'a' },
  'stock-locations.create': { name: 'a', code: 'TEXT' },
  'stock-locations.update': { name: 'a', code: 'TEXT' },
  'stock-items.create': {
    ...{ sku: 'TEXT', gtin: 'TEXT', name: 'a', low_at: 1 },
    opening: [{ location: 1, quantity: 1 }],
  },
  'stock-items.update': { sku: 'TEXT', gtin: 'TEXT', name: 'a', low_at: 1, archived: false },
  'stock-items.adjust': {
    ...{ location: 1, quantity: 1, reason: 'a' },
    occurred_at: '2026-01-01T00:00:00Z',
  },
  'stock-levels.check': { mend: false },
  'stock-levels.rebuild': { mend: false },
  'stock-levels.update': { low_at: 1 },
  'stock-transfers.create': {
    ...{ external_id: 'TEXT', from: 1, to: 1, occurred_at: '2026-01-01T00:00:00Z' },
    lines: [{ item: 1, quantity: 1, reason: 'a' }],
  },
  'stocktakes.create': {
    ...{ location: 1, occurred_at: '2026-01-01T00:00:00Z', preview: true },
    counts: [{ item: 1, quantity: 1, reason: 'a' }],
  },
  'mapping-inbox.resolve': {
    ...{ kind: 'sku', value: 'TEXT', connection: 1, preview: true },
    to: { ignore: true },
  },
  'mapping-inbox.undo': { id: 1 },
  'pos-connections.create': {
    ...{ name: 'a', type: 'Generic webhook', scopes: [], mode: 'test', group: 'a' },
    locations: [{ ref: 'a', location: 1 }],
    expected_every_minutes: 30,
    open_hours: [{ days: ['mon'], from: '09:00', to: '18:00' }],
  },
  'pos-connections.update': {
    ...{ name: 'a', scopes: ['sale:write'], mode: 'test', group: 'a', active: true },
    locations: [{ ref: 'a', location: 1 }],
    expected_every_minutes: 30,
    open_hours: [{ days: ['mon'], from: '09:00', to: '18:00' }],
  },
  'application-passwords.create': { name: 'a' },
  'modules.update': { companies: true },
};

/** Deeper than `JSON.stringify` goes; put into the text of a body. */
const DEEP = '@@deep';
const DEEP_JSON = `${'['.repeat(20_000)}1${']'.repeat(20_000)}`;

const encode = (body: unknown): string =>
  JSON.stringify(body).replaceAll(`"${DEEP}"`, () => DEEP_JSON);

const VALUES: unknown[] = [
  'a\0b',
  'a\ud800b',
  '',
  'x'.repeat(300),
  'x'.repeat(70_000),
  '2147483648',
  null,
  2_147_483_648,
  1e308,
  [],
  ['a\0'],
  { 'a\0': 1 },
  { a: 'b\ud800' },
  DEEP,
  { a: DEEP },
];

/** Query strings of one parameter. */
const queriesOf = (name: string): string[] => [
  ...['%00', 'a%00b', '%ED%A0%80', '%FF', '-1', '99999999999999999999', 'x'.repeat(300)].map(
    (value) => `${name}=${value}`
  ),
  `${name}=a&${name}=b`,
  `${name}[$ne]=a`,
  `${name}[a%00]=1`,
];

const IDS = [
  ...['0', '2147483648', '9223372036854775808', '9'.repeat(400), '%00', '1%00', '%ED%A0%80'],
  ...['%FF', "'", 'x'.repeat(300), 'constructor'],
];

const RAW_BODIES = ['', '{', 'null', '[]', '"x"', '1', '[{"a":1}]', '{"__proto__":{"a":1}}', '\0'];

interface Probe {
  method: string;
  path: string;
  body?: string;
  headers?: Record<string, string>;
}

/**
 * Of all pairs of a place and a value a fifth, in which every place and every value is: with
 * `TEST_EVERY_PROBE=1` all of them, which takes some minutes.
 */
const PARTS = process.env.TEST_EVERY_PROBE === '1' ? 1 : 5;
const some = <T>(values: readonly T[], place: number): T[] =>
  values.filter((_value, index) => (index + place) % PARTS === 0);

let counter = 0;
const withUniqueTexts = (body: Record<string, unknown>): Record<string, unknown> => {
  counter += 1;
  const unique: Record<string, string> = { TEXT: `t${counter}`, EMAIL: `e${counter}@example.test` };
  return Object.fromEntries(
    Object.entries(body).map(([key, value]) => [key, unique[String(value)] ?? value])
  );
};

/** Every probe of one route. `ids` fills the places of a path. */
const probesOf = (route: RouteFacts, nth: number, known: Record<string, string>): Probe[] => {
  const { family, method, path, handler } = route;
  const full = `${PREFIX[family]}${path}`;
  const fill = (id?: string): string =>
    full.replace(/:(\w+)/g, (_all, name: string) => id ?? known[`${path} ${name}`] ?? '1');
  const controller = handler.replace('-admin.', '.');
  const base = BODIES[controller] ?? {};
  const fields = [...new Set([...route.body, ...Object.keys(base)])];
  const probes: Probe[] = [];
  if (full.includes(':')) for (const id of some(IDS, nth)) probes.push({ method, path: fill(id) });
  if (method === 'GET') {
    const undocumented = family === 'admin' && route.query.length === 0;
    const filters = FILTERS[handler] ?? (undocumented ? ANY_FILTER : ['page']);
    for (const [place, name] of [...new Set([...route.query, ...filters])].entries()) {
      for (const query of some(queriesOf(name), nth + place))
        probes.push({ method, path: `${fill()}?${query}` });
    }
    return probes;
  }
  if (method === 'DELETE') return probes;
  const headers = { 'content-type': 'application/json' };
  for (const body of some(RAW_BODIES, nth)) probes.push({ method, path: fill(), body, headers });
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
    const body = 'name=a%00b&url=%00';
    probes.push({ method, path: fill(), body, headers: { 'content-type': type } });
  }
  const values: [string, unknown][] = fields.flatMap((field, place) =>
    some(VALUES, nth + place).map((value): [string, unknown] => [field, value])
  );
  for (const [field, value] of values) {
    const body = encode({ ...withUniqueTexts(base), [field]: value });
    probes.push({ method, path: fill(), body, headers });
  }
  return probes;
};

/** Sends a few at a time, and gives back what was answered with a 5xx or not at all. */
const send = async (site: Site, probes: readonly Probe[]): Promise<string[]> => {
  const bad: string[] = [];
  const queue = [...probes];
  const sender = async (): Promise<void> => {
    for (let probe = queue.pop(); probe; probe = queue.pop()) {
      const { method, path, body, headers } = probe;
      const shown = `${method} ${path.slice(0, 120)} ${String(body).slice(0, 160)}`;
      try {
        const { status } = await site.request(method, path, { body, headers });
        if (status >= 500) bad.push(`${status} ${shown}`);
      } catch (error) {
        bad.push(`${String(error)} ${shown}`);
      }
    }
  };
  await Promise.all(Array.from({ length: 6 }, sender));
  return bad;
};

const errorLines = (site: Site): string[] =>
  site
    .log()
    .split('\n')
    .filter((line) => /\berror\b:|\berror\u001b/.test(line));

// The strictest of them: it takes no NUL, no half surrogate, no number beyond its type.
const postgres = serverDatabases().filter((kind) => kind === 'postgres');

describeEach(postgres, 'whatever a client sends', (database) => {
  let site: Site;
  let routes: RouteFacts[];
  const known: Record<string, string> = {};

  beforeAll(async () => {
    site = await startSite({
      database,
      options: {
        webhooks: { timeoutMs: 500, journalDays: 1 },
        pos: { ratePerMinute: 1_000_000, failedAuthPerMinute: 1_000_000 },
      },
    });
    routes = await readRoutes(site);
    const make = async (path: string, body: unknown): Promise<{ id: string | number }> => {
      const { body: made } = await site.request('POST', path, { body });
      return made.data ?? made;
    };
    for (const [name, body] of [
      ['contacts', { first_name: 'a' }],
      ['tags', { name: 'known' }],
      ['companies', { name: 'a' }],
      ['deals', { title: 'a' }],
      ['deal-stages', { name: 'a' }],
      ['tasks', { title: 'a' }],
      ['campaigns', { title: 'a' }],
    ] as const) {
      known[`/${name}/:id id`] = String((await make(`${PREFIX.crm}/${name}`, body)).id);
    }
    known['/contacts/:id/tags/:tag_id id'] = known['/contacts/:id id'] ?? '';
    known['/contacts/:id/tags/:tag_id tag_id'] = known['/tags/:id id'] ?? '';
    // Ids of one, which the probes of the other routes then find.
    await make(`${PREFIX.crm}/webhooks`, BODIES['webhooks.create']);
    await make('/switchboard/items', { sku: 'known', opening: [{ quantity: 1 }] });
    await make('/switchboard/connections', { name: 'a', scopes: [], mode: 'test' });
  }, 120_000);
  afterAll(async () => {
    await site?.stop();
  }, 60_000);

  it.each(['crm', 'admin'] as const)(
    'is never a 5xx nor an error in the log: every parameter, filter and field of %s',
    async (family) => {
      const probes = routes
        .filter((route) => route.family === family)
        .flatMap((route, nth) => probesOf(route, nth, known));
      expect(probes.length).toBeGreaterThan(500);
      expect(await send(site, probes)).toEqual([]);
      expect(errorLines(site)).toEqual([]);
    },
    900_000
  );

  it('is never a 5xx for a till: every field of every record', async () => {
    const till = await createTill(site);
    const at = '2026-01-01T10:00:00Z';
    const records: Record<string, Record<string, unknown>> = {
      sale: {
        ...{ external_id: 'a', occurred_at: at, currency: 'EUR', total: 100, meta: {} },
        ...{ location_ref: 'a', customer: {}, receipt: 'a' },
        line_items: [{ sku: 'known', quantity: 1, unit_price: 100, name: 'a' }],
      },
      refund: {
        ...{ external_id: 'a', sale_external_id: 'b', occurred_at: at, restock: true, reason: 'a' },
        ...{ location_ref: 'a', currency: 'EUR', total: 100 },
        line_items: [{ sku: 'known', quantity: 1 }],
      },
      inventory: {
        ...{ external_id: 'a', occurred_at: at, mode: 'relative', location_ref: 'a', reason: 'a' },
        counts: [{ sku: 'known', quantity: 1, reason: 'a' }],
      },
    };
    const bad: string[] = [];
    const post = async (kind: string, body: unknown): Promise<void> => {
      const text = typeof body === 'string' ? body : encode(body);
      const answer = await till.send(kind, text);
      if (answer.status >= 500) bad.push(`${answer.status} ${kind} ${text.slice(0, 160)}`);
    };
    for (const [kind, base] of Object.entries(records)) {
      for (const raw of RAW_BODIES) await post(kind, raw);
      for (const [place, field] of [...Object.keys(base), 'extra', 'a\0'].entries()) {
        for (const value of some(VALUES, place)) {
          counter += 1;
          await post(kind, { ...base, external_id: `x${counter}`, [field]: value });
        }
      }
      const list = kind === 'inventory' ? 'counts' : 'line_items';
      const [line] = base[list] as Record<string, unknown>[];
      for (const [place, field] of [...Object.keys(line ?? {}), 'gtin', 'extra'].entries()) {
        for (const value of some(VALUES, place)) {
          counter += 1;
          await post(kind, {
            ...base,
            external_id: `x${counter}`,
            [list]: [{ ...line, [field]: value }],
          });
        }
      }
    }
    for (const path of [
      '/ping',
      ...['sale', 'refund', 'inventory'].map((kind) => `/schema/${kind}`),
    ]) {
      bad.push(
        ...(await send(
          site,
          [...queriesOf('page'), ...queriesOf('a')].map((query) => ({
            method: 'GET',
            path: `${PREFIX.pos}${path}?${query}`,
          }))
        ))
      );
    }
    expect(bad).toEqual([]);
    expect(errorLines(site)).toEqual([]);
  }, 900_000);

  it('names the field', async () => {
    const refused = async (method: string, path: string, body?: unknown) => {
      const answer = await site.request(method, path, { body });
      return [
        answer.status,
        answer.body.error?.details?.errors?.map((one: { path: string[] }) => one.path),
      ];
    };
    expect(await refused('GET', `${PREFIX.crm}/contacts?email=a%00`)).toEqual([400, [['email']]]);
    expect(await refused('GET', '/switchboard/items?search=a%00')).toEqual([400, [['search']]]);
    expect(
      await refused('POST', `${PREFIX.crm}/webhooks`, {
        ...{ name: 'a\0', url: 'https://93.184.216.34/\0', events: ['*'] },
      })
    ).toEqual([400, [['name'], ['url']]]);
    expect(await refused('GET', `${PREFIX.crm}/webhooks/2147483648`)).toEqual([404, undefined]);
    expect(await refused('GET', `${PREFIX.crm}/contacts/a%00`)).toEqual([404, undefined]);
  });
});
