import { createApiToken } from '../support/accounts';
import { runCommand } from '../support/command';
import { describeEach, listTables, anyDatabase, readEverything } from '../support/databases';
import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import { createWebhook, waitForDelivery } from './delivery-support';
import { createTill } from './pos-till';

const NEITHER = { crm: false, pos: false };
const QUIET = { webhooks: { dispatch: false }, pos: { process: false } };
const CRM_PATHS = ['contacts', 'tags', 'companies', 'deals', 'deal-stages', 'tasks', 'campaigns'];
const POS_PATHS = [
  'connections',
  'pos-events',
  'mapping-inbox',
  'items',
  'locations',
  'levels',
  'stock-grid',
  'transfers',
  'stocktakes',
];
const ROLE = 'switchboard-crm-manager';

const ownTables = async (site: Site): Promise<string[]> =>
  (await listTables(site.database, site.databaseName))
    .filter((name) => name.startsWith('switchboard_'))
    .sort();

const status = async (site: Site, method: string, address: string, body?: unknown) =>
  (await site.request(method, address, { body })).status;

/** Whether the methods of the host's entity manager are its own. */
const isWrapped = (site: Site): Promise<boolean> =>
  site.evaluate(({ strapi }) => {
    const methods = ['create', 'createMany', 'update', 'updateMany', 'delete', 'deleteMany'];
    return methods.some((name) => !/lifecycles/.test(String(strapi.db.entityManager[name])));
  });

const cronTasks = (site: Site): Promise<string[]> =>
  site.evaluate(({ strapi }) =>
    strapi.cron.jobs
      .map(({ name }: { name: string }) => String(name))
      .filter((name: string) => name.startsWith('switchboard'))
  );

const catalogueOf = async (site: Site): Promise<string> => {
  const { body } = await site.request('GET', '/api/fw-crm/v1/webhooks/events');
  return JSON.stringify(body);
};

const grantsOfManager = (site: Site): Promise<string[]> =>
  site.evaluate(async ({ strapi }, code) => {
    const role = await strapi.db
      .query('admin::role')
      .findOne({ where: { code }, populate: ['permissions'] });
    return role.permissions
      .map(({ action, subject }: { action: string; subject: string | null }) =>
        subject ? `${action} ${subject}` : action
      )
      .sort();
  }, ROLE);

describeEach(anyDatabase(), 'a site that wants webhooks only', (database) => {
  let site: Site;
  let receiver: Receiver;
  beforeAll(async () => {
    receiver = await startReceiver();
    site = await startSite({
      database,
      firstBoot: true,
      options: {
        features: NEITHER,
        sources: { contact: { contentType: 'api::lead.lead', fields: { email: 'mail' } } },
        stock: { contentType: 'api::product.product', sku: 'code' },
      },
    });
  }, 120_000);
  afterAll(async () => {
    await receiver?.close();
    await site?.stop();
  }, 60_000);

  it('has no table, no content type and no service of the CRM, of tills or of stock', async () => {
    expect(await ownTables(site)).toEqual([
      'switchboard_application_passwords',
      'switchboard_attempts',
      'switchboard_deliveries',
      'switchboard_delivery_order',
      'switchboard_delivery_queue',
      'switchboard_delivery_rollups',
      'switchboard_delivery_slots',
      'switchboard_delivery_totals',
      'switchboard_host_settings',
      'switchboard_import_rejects',
      'switchboard_imports',
      'switchboard_journal',
      'switchboard_journal_replays',
      'switchboard_messages',
      'switchboard_nodes',
      'switchboard_recoveries',
      'switchboard_recovery_items',
      'switchboard_site',
      'switchboard_subscriptions',
      'switchboard_webhook_turns',
      'switchboard_webhooks',
    ]);
    const known = await site.evaluate(({ strapi }) => {
      const ours = (registry: string) =>
        strapi
          .get(registry)
          .keys()
          .filter((uid: string) => uid.startsWith('plugin::switchboard.'))
          .map((uid: string) => uid.slice('plugin::switchboard.'.length))
          .sort();
      return { types: ours('content-types'), services: ours('services') };
    });
    expect(known.types).toEqual(['delivery', 'message', 'webhook']);
    expect(known.services).toEqual([
      'application-passwords',
      'doctor',
      'events',
      'host-webhooks',
      'modules',
      'publisher',
      'webhooks',
    ]);
  });

  it('looks at no write and has no task of theirs', async () => {
    expect(await isWrapped(site)).toBe(false);
    expect(await cronTasks(site)).toEqual([
      'switchboardClock',
      'switchboardRecoveries',
      'switchboardDeliveries',
      'switchboardHeldBack',
      'switchboardDeliveryRetention',
    ]);
  });

  it('answers 404 on their routes', async () => {
    for (const name of CRM_PATHS) {
      expect(await status(site, 'GET', `/api/fw-crm/v1/${name}`)).toBe(404);
      expect(await status(site, 'POST', `/api/fw-crm/v1/${name}`, {})).toBe(404);
    }
    expect(await status(site, 'POST', '/api/fw-crm/v1/email/sendgrid', [])).toBe(404);
    expect(await status(site, 'POST', '/switchboard/contacts/import', {})).toBe(404);
    for (const name of ['sale', 'refund', 'inventory', 'batch', 'catalogue', 'test'])
      expect(await status(site, 'POST', `/api/service-pos/v1/${name}`, {})).toBe(404);
    for (const name of POS_PATHS) {
      expect(await status(site, 'GET', `/switchboard/${name}`)).toBe(404);
      expect(await status(site, 'POST', `/switchboard/${name}`, {})).toBe(404);
    }
    expect(await status(site, 'GET', '/api/service-pos/v1/ping')).toBe(404);
    expect(await status(site, 'POST', '/api/service-pos/v1/anything', {})).toBe(404);
    // What is there knows its methods as ever.
    expect(await status(site, 'PATCH', '/api/fw-crm/v1/webhooks', {})).toBe(405);
  });

  it('delivers an event of another plugin, and offers none of theirs', async () => {
    expect(await catalogueOf(site)).not.toMatch(/"(contact|tag|deal|pos|stock|form)\./);
    const webhook = await createWebhook(site, receiver.url, { events: ['*'] });
    await site.control('send', { event: 'loyalty.earned', data: { points: 5 } });
    await site.control('documents', {
      uid: 'api::lead.lead',
      method: 'create',
      params: { data: { mail: 'a@example.test' } },
    });
    const [post] = await receiver.waitFor(1);
    expect(post!.headers['x-service-event']).toBe('loyalty.earned');
    await waitForDelivery(site, webhook.id, ({ status: state }) => state === 'sent');
    expect(receiver.requests).toHaveLength(1);
    expect(await status(site, 'GET', `/api/fw-crm/v1/webhooks/${webhook.id}/deliveries`)).toBe(200);
    expect(await status(site, 'POST', `/api/fw-crm/v1/webhooks/${webhook.id}/test`)).toBe(200);
  });

  it('answers what the first page and the settings ask for', async () => {
    const { body } = await site.request('GET', '/switchboard/modules');
    expect(body).toEqual({
      data: [{ id: 'webhooks', name: 'Webhooks', enabled: true }],
      features: NEITHER,
    });
    expect(await status(site, 'PUT', '/switchboard/modules', { companies: false })).toBe(400);
    expect(await status(site, 'GET', '/switchboard/webhooks-health')).toBe(200);
    expect((await site.request('GET', '/switchboard/mapped-types')).body).toEqual({ data: [] });
    expect(await status(site, 'GET', '/switchboard/application-passwords')).toBe(200);
  });

  it('warns of options that have no effect', async () => {
    const lines = site
      .log()
      .split('\n')
      .filter((line) => line.includes('has no effect'));
    expect(lines).toHaveLength(2);
    expect(lines[0]).toMatch(/switchboard: the option sources .* features\.crm is false/);
    expect(lines[1]).toMatch(/switchboard: the option stock .* features\.pos is false/);
  });

  it('offers administrators no permission on what is not there', async () => {
    const grants = await grantsOfManager(site);
    expect(grants).toContain('plugin::switchboard.webhooks.read');
    expect(
      grants.filter((grant) => /\.(crm|connections|pos-events|stock)\.|contact/.test(grant))
    ).toEqual([]);
  });

  it('can have them later, and CRM Manager with them', async () => {
    await site.restart({ options: {} });
    expect(await isWrapped(site)).toBe(true);
    expect(await catalogueOf(site)).toMatch(/"contact\.created"/);
    const made = await site.request('POST', '/api/fw-crm/v1/contacts', {
      body: { email: 'later@example.test' },
    });
    expect(made.status).toBe(201);
    await createTill(site);
    const grants = await grantsOfManager(site);
    expect(grants).toEqual(
      expect.arrayContaining([
        'plugin::switchboard.crm.read',
        'plugin::switchboard.stock.manage',
        'plugin::content-manager.explorer.read plugin::switchboard.contact',
      ])
    );
  });

  it('has nothing to rebuild: the command says so in one line', async () => {
    const ended = await runCommand(['stock', 'rebuild'], {
      env: {
        ...site.env(),
        // The host has a line about it that is no error.
        STRAPI_DISABLE_UPDATE_NOTIFICATION: undefined,
        SWITCHBOARD_OPTIONS: JSON.stringify({ features: { pos: false } }),
      },
    });
    expect(ended).toMatchObject({ code: 2, stdout: '' });
    expect(ended.stderr.trimEnd().split('\n')).toEqual([
      expect.stringMatching(/features\.pos is false/),
    ]);
  }, 60_000);
});

type Everything = Record<string, string[]>;

/** Where a row of a join table lies tells nothing: what is joined does. */
const joined = (row: string): string => {
  const entries = Object.entries(JSON.parse(row) as Record<string, unknown>);
  return JSON.stringify(entries.filter(([name]) => name !== 'id' && !name.endsWith('_ord')));
};

/** What says which nodes run, and with which settings of the host. */
const OF_RUNNING = ['switchboard_host_settings', 'switchboard_nodes'];

const ownRows = async (site: Site): Promise<Everything> =>
  Object.fromEntries(
    Object.entries(await readEverything(site.database, site.databaseName))
      .filter(([name]) => name.startsWith('switchboard_') && !OF_RUNNING.includes(name))
      .map(([name, rows]) => [name, name.endsWith('_lnk') ? rows.map(joined).sort() : rows])
      // How far the index of phones is, which is kept while a connection attaches customers.
      .map(([name, rows]) => [
        name,
        (rows as string[]).filter((row) => !row.includes('"contact_phones"')),
      ])
  );

/** What the host keeps about the plugin: permissions of roles and tokens, screens. */
const hostRows = (site: Site): Promise<Record<string, unknown>> =>
  site.evaluate(async ({ strapi }) => {
    const ours = { $startsWith: 'plugin::switchboard.' };
    const rows = (uid: string, where: object, populate: string[] = []) =>
      strapi.db.query(uid).findMany({ where, populate, orderBy: { id: 'asc' } });
    return {
      admin: await rows('admin::permission', { $or: [{ action: ours }, { subject: ours }] }, [
        'role',
      ]),
      tokens: await rows('admin::api-token-permission', { action: ours }),
      users: await rows('plugin::users-permissions.permission', { action: ours }, ['role']),
      screens: await rows('strapi::core-store', {
        key: { $contains: 'configuration_content_types::plugin::switchboard.' },
      }),
    };
  });

describeEach(anyDatabase(), 'a site that does without for a while', (database) => {
  let site: Site;
  afterEach(() => site?.stop(), 60_000);

  const features = (crm: boolean, pos: boolean) => ({ ...QUIET, features: { crm, pos } });

  it('keeps every row, every permission and every screen', async () => {
    site = await startSite({ database, options: QUIET });
    const token = await createApiToken(site, {
      type: 'custom',
      permissions: ['plugin::switchboard.contacts.find', 'plugin::switchboard.webhooks.find'],
    });
    const contact = await site.request('POST', '/api/fw-crm/v1/contacts', {
      body: { email: 'kept@example.test', tags: [] },
    });
    expect(contact.status).toBe(201);
    await site.evaluate(async ({ strapi }) => {
      const tag = await strapi.documents('plugin::switchboard.tag').create({
        data: { name: 'kept', slug: 'kept' },
      });
      await strapi.documents('plugin::switchboard.contact').create({
        data: { email: 'tagged@example.test', tags: [tag.documentId] },
      });
      // Somebody took one permission away from CRM Manager.
      const role = await strapi.db
        .query('admin::role')
        .findOne({ where: { code: 'switchboard-crm-manager' } });
      await strapi.db
        .query('admin::permission')
        .deleteMany({ where: { role: role.id, action: 'plugin::switchboard.stock.manage' } });
    });
    const till = await createTill(site);
    const sale = await till.sale([['TEA', 1]]);
    expect(sale.status).toBe(202);
    const before = { own: await ownRows(site), host: await hostRows(site) };
    expect(before.own['switchboard_contacts_tags_lnk']).toHaveLength(1);

    for (const [crm, pos] of [
      [false, false],
      [false, false],
      [true, false],
      [false, true],
    ] as const) {
      await site.restart({ options: features(crm, pos) });
      expect(await ownRows(site)).toEqual(before.own);
      const read = await site.request('GET', '/api/fw-crm/v1/contacts', { as: { token } });
      expect(read.status).toBe(crm ? 200 : 404);
      expect(await status(site, 'GET', '/switchboard/connections')).toBe(pos ? 200 : 404);
      const kept = await site.request('GET', '/api/fw-crm/v1/webhooks', { as: { token } });
      expect(kept.status).toBe(200);
    }
    // What is changed meanwhile of what is there is not undone.
    await site.evaluate(async ({ strapi }) => {
      const role = await strapi.db
        .query('admin::role')
        .findOne({ where: { code: 'switchboard-crm-manager' } });
      await strapi.db
        .query('admin::permission')
        .deleteMany({ where: { role: role.id, action: 'plugin::switchboard.webhooks.delete' } });
    });

    await site.restart({ options: QUIET });
    const after = { own: await ownRows(site), host: await hostRows(site) };
    expect(after.own).toEqual(before.own);
    expect(withoutDeletedWebhooks(after.host)).toEqual(withoutDeletedWebhooks(before.host));
    expect(await grantsOfManager(site)).not.toContain('plugin::switchboard.webhooks.delete');
    expect(await grantsOfManager(site)).not.toContain('plugin::switchboard.stock.manage');
    const read = await site.request('GET', '/api/fw-crm/v1/contacts', { as: { token } });
    expect(read.status).toBe(200);
  }, 240_000);
});

const withoutDeletedWebhooks = (host: Record<string, unknown>): Record<string, unknown> => ({
  ...host,
  admin: (host.admin as { action: string; role: { code: string } | null }[]).filter(
    ({ action, role }) => !(action === 'plugin::switchboard.webhooks.delete' && role?.code === ROLE)
  ),
});
