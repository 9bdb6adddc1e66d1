import { support } from '../../bench/lib/support.mjs';
import { leaveWaiting, makeShop } from './fixture-shop.mjs';
import {
  createReceiverState,
  failInOrder,
  failOnce,
  failSoon,
  leaveUnsent,
  makeWebhooks,
  recover,
  replay,
} from './fixture-webhooks.mjs';

/**
 * Address that a fixture's webhooks post to instead of the receiver that it was made with; a test puts its
 * own receiver's address there. A name that leads nowhere, should one forget to.
 */
export const RECEIVER_URL = 'http://receiver.fixture.test/';

const API = '/api/fw-crm/v1';
const POS_ACTIONS = ['connections.read', 'pos-events.read'];

const callerOf = (site) => async (method, route, body, as) => {
  const answer = await site.request(method, route, { body, as });
  if (answer.status >= 300)
    throw new Error(`${method} ${route}: ${answer.status} ${answer.text.slice(0, 500)}`);
  return answer.body;
};

const makeContacts = async (call) => {
  const crm = (resource, body) => call('POST', `${API}/${resource}`, body);
  const tag = await crm('tags', { name: 'Newsletter', slug: 'newsletter' });
  const company = await crm('companies', {
    name: 'Analytical Engines',
    domain: 'engines.test',
    owner_id: 1,
  });
  const stage = await crm('deal-stages', { name: 'Proposal', position: 1, probability: 40 });
  const ada = await crm('contacts', {
    email: 'Ada@Fixture.test',
    first_name: 'Ada',
    last_name: 'Lovelace',
    phone: '+44 20 7946 0018',
    company_id: company.id,
    status: 'subscribed',
    owner_id: 1,
    address: { city: 'London' },
    fields: { shoe_size: 38 },
  });
  const alan = await crm('contacts', { email: 'alan@fixture.test', first_name: 'Alan' });
  const bin = await crm('contacts', { email: 'gone@fixture.test' });
  await call('PATCH', `${API}/contacts/${bin.id}`, { trashed_at: '2026-01-02T03:04:05.000Z' });
  for (const { id } of [ada, alan]) await call('POST', `${API}/contacts/${id}/tags/${tag.id}`);
  const deal = await crm('deals', {
    title: 'Engine no. 2',
    value: 1234.5,
    currency: 'GBP',
    stage_id: stage.id,
    contact_id: ada.id,
    company_id: company.id,
    owner_id: 1,
  });
  const about = { contact_id: ada.id, company_id: company.id, deal_id: deal.id, owner_id: 1 };
  await crm('tasks', { title: 'Ring Ada', type: 'call', ...about });
  await crm('campaigns', { title: 'Spring', subject: 'Hello', total: 3, sent: 2, failed: 1 });
  return ada;
};

/** Roles and permissions, with a user's changes to the plugin's defaults. */
const makeAccess = async (site, call) => {
  const accounts = support('accounts');
  const manager = await accounts.createAdminUser(site, {
    role: 'CRM Manager',
    email: 'manager@fixture.test',
  });
  const {
    data: { password: applicationPassword },
  } = await call(
    'POST',
    '/switchboard/application-passwords',
    { name: 'a script' },
    { token: manager.token }
  );
  // Taken away from the CRM Manager, and given to a role of the site's own.
  await site.evaluate(({ strapi }) =>
    strapi.db.query('admin::permission').deleteMany({
      where: {
        role: { code: 'switchboard-crm-manager' },
        $or: [
          { action: 'plugin::switchboard.stock.manage' },
          {
            action: 'plugin::content-manager.explorer.delete',
            subject: 'plugin::switchboard.contact',
          },
        ],
      },
    })
  );
  const role = await accounts.createAdminRole(
    site,
    POS_ACTIONS.map((action) => `plugin::switchboard.${action}`)
  );
  const endUserActions = ['plugin::switchboard.contacts.find'];
  await accounts.createEndUser(site, endUserActions);
  const custom = ['plugin::switchboard.webhooks.find', 'plugin::switchboard.contacts.create'];
  return {
    manager: { email: manager.email, password: manager.password, applicationPassword },
    role: { name: role, actions: POS_ACTIONS.map((action) => `plugin::switchboard.${action}`) },
    endUserActions,
    tokens: {
      full: site.apiToken,
      readOnly: await accounts.createApiToken(site, { type: 'read-only' }),
      custom: await accounts.createApiToken(site, { type: 'custom', permissions: custom }),
    },
    customTokenActions: custom,
  };
};

/** Fills the tables that nothing above fills. */
const fillTheRest = (site) =>
  site.evaluate(async ({ strapi }) => {
    const at = Date.now();
    const now = { digest: 'f'.repeat(64), seen_at: at };
    await strapi.db.connection('switchboard_email_seen').insert(now);
    await strapi.db.connection('switchboard_unpublished').insert({
      kind: 'contact',
      document_id: 'fixturedocument0000000000',
      state: JSON.stringify({ email: 'draft@fixture.test' }),
    });
  });

const RESOURCES = ['contacts', 'tags', 'companies', 'deals', 'deal-stages', 'tasks', 'campaigns'];

const day = (shift) => new Date(Date.now() + shift * 86_400_000).toISOString().slice(0, 10);

/** Routes whose answers a later version is to give as well, whatever it adds to them. */
const toldBy = ({ contact, records }) => [
  ...records.map((id) => `/switchboard/pos-events/${id}`),
  `/switchboard/contacts/${contact}/purchases`,
  `/switchboard/sales-days?from=${day(-3)}&to=${day(3)}&group=connection`,
  '/switchboard/mapping-inbox',
  '/switchboard/mapping-inbox/resolved',
  '/switchboard/pos-refusals',
  '/switchboard/transfers',
  '/switchboard/stocktakes',
  '/switchboard/items',
  `${API}/webhook-recoveries`,
  `${API}/webhooks/journal?limit=100`,
];

const noteDelivery = ({ request, delivery_id, webhook_id, event, status, tries, ...rest }) => {
  const { state, subject, replayed, error } = rest;
  const { body } = request;
  return { delivery_id, webhook_id, event, status, tries, state, subject, replayed, error, body };
};

/** The site's answers about its rows, to compare with those of a later version. */
const whatIsThere = async (call, webhooks, told) => {
  const list = async (route) =>
    (await call('GET', `${route}${route.includes('?') ? '&' : '?'}per_page=100`)).data;
  const deliveries = [];
  for (const { id } of webhooks)
    deliveries.push(...(await list(`${API}/webhooks/${id}/deliveries`)).map(noteDelivery));
  const records = {};
  for (const resource of RESOURCES) records[resource] = await list(`${API}/${resource}`);
  records.trashed = await list(`${API}/contacts?trashed=true`);
  const events = await list('/switchboard/pos-events');
  const levels = await list('/switchboard/levels');
  const answers = {};
  for (const route of toldBy(told)) answers[route] = (await call('GET', route)).data;
  return {
    deliveries,
    records,
    events: events.map(({ event_id, external_id, kind, state }) => ({
      event_id,
      external_id,
      kind,
      state,
    })),
    levels: levels.map(({ sku, location, quantity }) => ({
      sku,
      location: location.code ?? location,
      quantity,
    })),
    answers,
  };
};

/** A webhook as it is in the end, but for what changes by itself. */
const noteWebhook = async (call, { id }) => {
  const webhook = await call('GET', `${API}/webhooks/${id}`);
  const { name, secret, headers, events, active, disabled_reason: reason } = webhook;
  const { payload, filter, ordering, rate_per_second, concurrency, health } = webhook;
  const settings = { payload, filter, ordering, rate_per_second, concurrency };
  const state = { active, disabled_reason: reason, health: { state: health.state } };
  return { id, name, secret, headers, events, ...settings, ...state };
};

/**
 * Fills a site, over its routes where they can do it, until every table of the plugin has a row but
 * those of `EMPTY`.
 * @param site a site of tests/support that was started with `options` of `firstOptions`
 * @param receiver a receiver of tests/support; how it answers is decided here
 * @returns notes: what a test cannot read from the database, such as secrets in clear
 */
export const fillSite = async (site, receiver) => {
  const call = callerOf(site);
  const { state, respond } = createReceiverState();
  receiver.respond(respond);
  const made = await makeWebhooks(call, receiver.url);
  const contact = await makeContacts(call);
  const { till, secrets, records } = await makeShop(site, call);
  const access = await makeAccess(site, call);
  await fillTheRest(site);
  await failSoon(site, call, made);

  // From here the usual schedule: what fails waits.
  await site.restart({ options: { webhooks: { pollSeconds: 1, journalDays: 3650 } } });
  state.works = true;
  await failOnce(site, call, made);
  await recover(site, call, made);
  const replayed = await replay(call, receiver.url);
  const firsts = await failInOrder(site, call, made);

  await site.restart({
    options: { webhooks: { dispatch: false, journalDays: 3650 }, pos: { process: false } },
  });
  await leaveUnsent(site, call, made, firsts);
  await leaveWaiting(site, call, till);

  const { removed: _gone, ...left } = made;
  const webhooks = [];
  for (const one of [...Object.values(left), replayed]) webhooks.push(await noteWebhook(call, one));
  return {
    receiver: RECEIVER_URL,
    admin: support('accounts').FIRST_ADMIN,
    webhooks,
    connections: secrets,
    ...(await whatIsThere(call, webhooks, { contact: contact.id, records })),
    ...access,
  };
};

/** Tables whose rows live for seconds. */
export const EMPTY = ['switchboard_delivery_slots'];

/** Short waits, so that a webhook fails for good in seconds. */
export const firstOptions = {
  webhooks: { pollSeconds: 1, retryScheduleSeconds: [1], disableAfterFailures: 2 },
};
