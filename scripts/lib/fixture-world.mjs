import path from 'node:path';
import { support } from '../../bench/lib/support.mjs';

/**
 * What a fixture's webhooks post to instead of the receiver that it was made with; a test puts its
 * own receiver's address there. A name that leads nowhere, should one forget to.
 */
export const RECEIVER_URL = 'http://receiver.fixture.test/';

const API = '/api/fw-crm/v1';
const POS_ACTIONS = ['connections.read', 'pos-events.read'];

const loadTill = () => support(path.join('..', 'api', 'pos-till'));

const callerOf = (site) => async (method, route, body, as) => {
  const answer = await site.request(method, route, { body, as });
  if (answer.status >= 300)
    throw new Error(`${method} ${route}: ${answer.status} ${answer.text.slice(0, 500)}`);
  return answer.body;
};

const makeContacts = async (call) => {
  const crm = (resource, body) => call('POST', `${API}/${resource}`, body);
  const tag = await crm('tags', { name: 'Newsletter', slug: 'newsletter' });
  const company = await crm('companies', { name: 'Analytical Engines', domain: 'engines.test' });
  const stage = await crm('deal-stages', { name: 'Proposal', position: 1, probability: 40 });
  const ada = await crm('contacts', {
    email: 'Ada@Fixture.test',
    first_name: 'Ada',
    last_name: 'Lovelace',
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
  });
  await crm('tasks', { title: 'Ring Ada', type: 'call', contact_id: ada.id, deal_id: deal.id });
  await crm('campaigns', { title: 'Spring', subject: 'Hello', total: 3, sent: 2, failed: 1 });
};

/** Items, levels and movements, and records of tills in every state but `pending` and `failed`. */
const makeStock = async (site, call) => {
  const { createItem, createTill, allProcessed } = loadTill();
  await createItem(site, 'TEA', 100, { gtin: '4006381333931', name: 'Tea' });
  await createItem(site, 'CUP', 10);
  const { data: shop } = await call('POST', '/switchboard/locations', {
    name: 'Shop',
    code: 'shop',
  });
  const till = await createTill(site, {
    name: 'Till with a map',
    group: 'high street',
    locations: [{ ref: 'front', location: shop.id }],
  });
  const trial = await createTill(site, { name: 'Trial till', mode: 'test' });
  const revoked = await createTill(site, { name: 'Stolen till' });
  await call('POST', `/switchboard/connections/${revoked.id}/revoke`);
  const sale = { external_id: 'SALE-1', location_ref: 'front' };
  const requests = [
    () => till.count([['TEA', 50]], { external_id: 'COUNT-1', location_ref: 'front' }),
    () => till.sale([['TEA', 3]], sale),
    () =>
      till.refund('SALE-1', {
        external_id: 'REFUND-1',
        line_items: [{ sku: 'TEA', quantity: 1 }],
      }),
    () => till.refund('NEVER-SEEN', { external_id: 'REFUND-2' }),
    () => till.sale([['NO-SUCH-SKU', 1]], { ...sale, external_id: 'SALE-2' }),
    () =>
      till.sale(
        [
          ['CUP', 2],
          ['NO-SUCH-SKU', 1],
        ],
        { ...sale, external_id: 'SALE-3' }
      ),
    () => trial.sale([['CUP', 4]], { external_id: 'SALE-1' }),
  ];
  for (const request of requests) {
    const answer = await request();
    if (answer.status !== 202) throw new Error(`a till's record: ${answer.status} ${answer.text}`);
    await allProcessed(site);
  }
  const forged = await till.send('sale', {}, { secret: trial.secret });
  if (forged.status !== 401) throw new Error(`a forged record: ${forged.status} ${forged.text}`);
  const named = { 'Till with a map': till, 'Trial till': trial, 'Stolen till': revoked };
  return {
    till,
    secrets: Object.entries(named).map(([name, { id, key, secret }]) => ({
      id,
      name,
      key,
      secret,
    })),
  };
};

/** Who may do what, with changes that somebody made to what the plugin gave. */
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

/** What nothing above fills in passing. */
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

/** What the site answers about its rows, to compare a later version's answers with. */
const whatIsThere = async (call, webhooks) => {
  const list = async (route) =>
    (await call('GET', `${route}${route.includes('?') ? '&' : '?'}per_page=100`)).data;
  const deliveries = [];
  for (const { id } of webhooks) {
    for (const delivery of await list(`${API}/webhooks/${id}/deliveries`)) {
      const { delivery_id, webhook_id, event, status, tries, request } = delivery;
      deliveries.push({ delivery_id, webhook_id, event, status, tries, body: request.body });
    }
  }
  const records = {};
  for (const resource of RESOURCES) records[resource] = await list(`${API}/${resource}`);
  records.trashed = await list(`${API}/contacts?trashed=true`);
  const events = await list('/switchboard/pos-events');
  const levels = await list('/switchboard/levels');
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
  };
};

/**
 * Fills a site, over its routes where they can do it, until every table of the plugin has a row.
 * @param site a site of tests/support that was started with `options` of `firstOptions`
 * @param receiver a receiver of tests/support; it must answer as `respond` says
 * @returns notes: what a test cannot read from the database, such as secrets in clear
 */
export const fillSite = async (site, receiver) => {
  const { waitFor } = support('wait');
  const call = callerOf(site);
  receiver.respond(respond);
  const makeWebhook = (name, route, events) =>
    call('POST', `${API}/webhooks`, { name, url: `${receiver.url}${route}`, events });
  const webhooks = [
    await makeWebhook('Every event', 'ok', ['*']),
    await makeWebhook('Switched off by failures', 'dead', ['email.complained']),
    await makeWebhook('Failing', 'failing', ['campaign.sent']),
    await makeWebhook('Switched off by hand', 'ok', ['deal.won']),
  ];
  const [every, dead, failing, byHand] = webhooks;
  const isOff = async () => !(await call('GET', `${API}/webhooks/${dead.id}`)).active;

  await makeContacts(call);
  const { till, secrets } = await makeStock(site, call);
  const access = await makeAccess(site, call);
  await fillTheRest(site);
  await call('POST', `${API}/webhooks/${every.id}/test`);
  await waitFor(
    async () => {
      await site.control('send', { event: 'email.complained', data: { name: 'x' } });
      return isOff();
    },
    60_000,
    'the dead webhook to be switched off'
  );
  const pending = async (id) => {
    const { data } = await call('GET', `${API}/webhooks/${id}/deliveries?status=pending`);
    return data;
  };
  await waitFor(
    async () => (await pending(every.id)).length === 0,
    60_000,
    'everything to be sent'
  );

  // From here the usual schedule: what fails waits.
  await site.restart({ options: { webhooks: { pollSeconds: 1 } } });
  await site.control('send', { event: 'campaign.sent', data: { total: 3 } });
  await waitFor(
    async () => (await pending(failing.id)).some(({ tries }) => tries === 1),
    30_000,
    'one failed try'
  );
  await site.restart({ options: { webhooks: { dispatch: false }, pos: { process: false } } });
  await site.control('send', { event: 'deal.won', data: { title: 'Waits', note: 'ä ☃ 𝄞' } });
  await call('PATCH', `${API}/webhooks/${byHand.id}`, { active: false });
  for (const id of ['SALE-WAITS', 'SALE-FAILED']) {
    const answer = await till.sale([['CUP', 1]], { external_id: id });
    if (answer.status !== 202) throw new Error(`a late sale: ${answer.status} ${answer.text}`);
  }
  await site.control('sql', {
    statement:
      "UPDATE switchboard_pos_events SET state = 'failed', due_at = NULL, tries = 5, error = 'gave up' WHERE external_digest IN (SELECT external_digest FROM (SELECT external_digest, external_id FROM switchboard_pos_events) AS found WHERE external_id = 'SALE-FAILED')",
  });
  return {
    receiver: RECEIVER_URL,
    admin: support('accounts').FIRST_ADMIN,
    webhooks: webhooks.map(({ id, name, secret }) => ({ id, name, secret })),
    connections: secrets,
    ...(await whatIsThere(call, webhooks)),
    ...access,
  };
};

/** Short waits, so that a webhook fails for good in seconds. */
export const firstOptions = {
  webhooks: { pollSeconds: 1, retryScheduleSeconds: [1], disableAfterFailures: 2 },
};

const respond = (request) =>
  request.path === '/ok' ? {} : { status: 500, body: 'not now', headers: { 'x-reason': 'tests' } };
