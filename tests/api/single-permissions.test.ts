import { createAdminRole, createAdminUser, createApiToken } from '../support/accounts';
import type { Answer } from '../support/http';
import type { Receiver } from '../support/receiver';
import type { Site } from '../support/site';
import { CONTACTS } from './access-helpers';
import { createWebhook, send, useSiteAndReceiver, waitForDelivery } from './delivery-support';
import { createTill } from './pos-till';

/** With one permission, whatever it is, an answer shows what that permission says and nothing else. */

jest.setTimeout(240_000);

/** Of a person, in contacts, deliveries, the journal and tills' records. */
const PERSON = 'zilpah.marker';
/** Of a webhook's own header. */
const SECRET = 'header-marker';

interface Route {
  method: string;
  path: string;
  handler: string;
  config: {
    auth?: false | { scope: string[] };
    policies?: (string | { config?: { actions?: string[] } })[];
  };
}

/** What would end for the routes that come later what they are asked about. */
const ENDS = /^(DELETE|PUT \/modules|POST .*\/(secret|revoke)$)/;

let site: Site;
let receiver: Receiver;
let webhook: number;
const ids: Record<string, number | string> = {};

useSiteAndReceiver(
  {
    database: 'sqlite',
    webhooks: { journalDays: 5, retryScheduleSeconds: [3_000] },
    answers: { status: 500 },
  },
  (...started) => {
    [site, receiver] = started;
  }
);

beforeAll(async () => {
  receiver.respond({ status: 500 });
  const made = await createWebhook(site, receiver.url, {
    events: ['*'],
    headers: { 'x-own': SECRET },
  });
  webhook = made.id;
  const contact = await site.request('POST', CONTACTS, {
    body: { email: `${PERSON}@example.test` },
  });
  expect(contact.status).toBe(201);
  const till = await createTill(site);
  const customer = { email: `${PERSON}@example.test` };
  expect((await till.sale([['MUG', 3]], { customer } as never)).status).toBe(202);
  const [record] = (await site.request('GET', '/switchboard/pos-events', { as: 'admin' })).body
    .data;
  Object.assign(ids, {
    contacts: contact.body.id,
    webhooks: webhook,
    'pos-events': record.id,
  });
  await waitForDelivery(site, webhook, ({ state }) => state === 'failing');
});

/** A delivery that fails, so that each route that moves one finds it so. */
const freshDelivery = async (): Promise<number> => {
  const note = `${PERSON} ${Math.random()}`;
  await send(site, 'loyalty.earned', { note });
  const isIt = ({ state, request }: { state: string; request: { body: string } }): boolean =>
    state === 'failing' && request.body.includes(note);
  return (await waitForDelivery(site, webhook, isIt as never)).id;
};

const bodyOf = (path: string): object => {
  if (/preview$/.test(path) || path === '/webhook-recoveries') return { filter: {} };
  if (!path.endsWith('/replay')) return {};
  return { from: '2020-01-01T00:00:00Z', to: '2040-01-01T00:00:00Z', dry_run: true };
};

const routesOf = (router: 'crm' | 'admin'): Promise<Route[]> =>
  site.evaluate(({ strapi }, name) => {
    const { routes } = (strapi.plugin('switchboard').routes as never)[name] as { routes: Route[] };
    return routes.map(({ method, path, handler, config }) => ({
      ...{ method, path, handler: String(handler) },
      config: {
        auth: config.auth,
        policies: config.policies?.filter((one) => typeof one !== 'function'),
      },
    }));
  }, router) as Promise<Route[]>;

const ask = async (prefix: string, { method, path }: Route, token: string): Promise<Answer> => {
  const [, first = ''] = path.split('/');
  const id = /^\/webhook-deliveries\/:id/.test(path) ? await freshDelivery() : (ids[first] ?? 1);
  const address = `${prefix}${path.replace(/:\w+/, String(id)).replace(/:\w+/g, '1')}`;
  const body = method === 'GET' ? undefined : bodyOf(path);
  return site.request(method, address, { as: { token }, ...(body && { body }) });
};

/** Who was shown what, as `permission: what`; and whatever a single permission did not open. */
const shownBy = (permission: string, answer: Answer, shown: Set<string>): void => {
  for (const marker of [PERSON, SECRET]) {
    if (answer.text.includes(marker)) shown.add(`${permission}: ${marker}`);
  }
};

const walkContentApi = async (): Promise<void> => {
  const routes = (await routesOf('crm')).filter(
    ({ method, path, config }) => config.auth && !ENDS.test(`${method} ${path}`)
  );
  const shown = new Set<string>();
  for (const scope of new Set(
    routes.flatMap(({ config }) => (config.auth ? config.auth.scope : []))
  )) {
    const token = await createApiToken(site, { type: 'custom', permissions: [scope] });
    const permission = scope.replace('plugin::switchboard.', '');
    for (const route of routes.filter(
      ({ config }) => config.auth && config.auth.scope.includes(scope)
    )) {
      const answer = await ask('/api/fw-crm/v1', route, token);
      expect([scope, route.path, answer.status >= 500]).toEqual([scope, route.path, false]);
      if (permission === 'webhooks.replay') expect(answer.status).toBe(403);
      else expect([scope, route.path, answer.status]).not.toEqual([scope, route.path, 403]);
      shownBy(permission, answer, shown);
    }
  }
  expect([...shown].sort()).toEqual(
    [
      ...['contacts.find', 'contacts.findOne', 'contacts.update'],
      ...['deliveries.find', 'deliveries.findOne', 'journal.find'],
    ].map((permission) => `${permission}: ${PERSON}`)
  );
  const both = await createApiToken(site, {
    type: 'custom',
    permissions: [
      'recoveries.preview',
      'webhooks.previewFilter',
      'webhooks.replay',
      'deliveries.find',
      'journal.find',
    ].map((one) => `plugin::switchboard.${one}`),
  });
  const post = (path: string) =>
    site.request('POST', `/api/fw-crm/v1${path}`, { as: { token: both }, body: bodyOf(path) });
  expect((await post('/webhook-recoveries/preview')).text).toContain(PERSON);
  expect((await post(`/webhooks/${webhook}/filter/preview`)).text).toContain(PERSON);
  expect((await post(`/webhooks/${webhook}/replay`)).status).toBe(200);
};

const walkAdminRoutes = async (): Promise<void> => {
  const routes = (await routesOf('admin')).filter(
    ({ method, path }) => !ENDS.test(`${method} ${path}`)
  );
  const actionsOf = ({ config }: Route): string[] =>
    (config.policies ?? []).flatMap((one) =>
      typeof one === 'string' ? [] : (one.config?.actions ?? [])
    );
  const shown = new Set<string>();
  for (const action of new Set(routes.flatMap(actionsOf))) {
    const user = await createAdminUser(site, { role: await createAdminRole(site, [action]) });
    const permission = action.replace('plugin::switchboard.', '');
    for (const route of routes.filter((one) => actionsOf(one).includes(action))) {
      const answer = await ask('/switchboard', route, user.token);
      expect([action, route.path, answer.status >= 500]).toEqual([action, route.path, false]);
      if (actionsOf(route).length > 1)
        expect([route.path, answer.status]).toEqual([route.path, 403]);
      shownBy(permission, answer, shown);
    }
  }
  const people = ['crm.read', 'journal.read', 'pos-events.read', 'webhooks.read'];
  const known = new Set([...people, 'crm.write'].map((one) => `${one}: ${PERSON}`));
  expect([...shown].filter((one) => !known.has(one))).toEqual([]);
  expect([...shown]).toEqual(
    expect.arrayContaining(people.slice(1).map((one) => `${one}: ${PERSON}`))
  );
};

it('of the content API, and of an admin role', async () => {
  // One test: webhooks go with the test that made them.
  await walkContentApi();
  await walkAdminRoutes();
});
