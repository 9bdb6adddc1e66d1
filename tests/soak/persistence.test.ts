import {
  databases,
  describeEach,
  readEverything,
  runSql,
  serverDatabases,
} from '../support/databases';
import { startFixture } from '../support/fixtures';
import { type Site, startSite } from '../support/site';

jest.setTimeout(240_000);

const ROLE = 'switchboard-crm-manager';
const QUIET = { webhooks: { dispatch: false }, pos: { process: false } };
const PERSISTED = "key = 'core_persisted_tables'";

type Everything = Record<string, string[]>;

/** What a boot writes anew, with or without the plugin, and what each node says of itself while it runs. */
const EACH_BOOT = ['strapi_database_schema', 'strapi_sessions', 'switchboard_nodes'];
/** The host's own: a time of the week at which it will report. */
const METRICS = '"plugin_upload_metrics"';

/** Where a row of a join table lies tells nothing: what is joined does. */
const joined = (row: string): string => {
  const entries = Object.entries(JSON.parse(row) as Record<string, unknown>);
  return JSON.stringify(entries.filter(([name]) => name !== 'id' && !name.endsWith('_ord')));
};

const withoutBootMarks = (everything: Everything): Everything =>
  Object.fromEntries(
    Object.entries(everything)
      .filter(([name]) => !EACH_BOOT.includes(name))
      .map(([name, rows]) => [
        name,
        name.endsWith('_lnk')
          ? rows.map(joined).sort()
          : rows.filter((row) => !row.includes(METRICS)),
      ])
  );

const everythingOf = async (site: Site): Promise<Everything> =>
  withoutBootMarks(await readEverything(site.database, site.databaseName));

const tablesOf = (everything: Everything): string[] =>
  Object.keys(everything).filter((name) => name.startsWith('switchboard_'));

const key = (site: Site): string => (site.database === 'mysql' ? '`key`' : '"key"');

const persistedRows = (site: Site) =>
  runSql(
    site.database,
    site.databaseName,
    `SELECT id, value FROM strapi_core_store_settings WHERE ${PERSISTED.replace('key', key(site))}`
  );

const persistedNames = async (site: Site): Promise<string[]> =>
  (await persistedRows(site))
    .flatMap(({ value }) => JSON.parse(String(value)) as (string | { name: string })[])
    .map((entry) => (typeof entry === 'string' ? entry : entry.name));

describeEach(databases(), 'a boot without the plugin', (database) => {
  let site: Site;
  beforeAll(async () => {
    site = await startFixture('0.2.0', { database, options: QUIET });
  });
  afterAll(() => site?.stop());

  const off = (enabled: boolean) => site.restart({ env: { SWITCHBOARD_ENABLED: String(enabled) } });

  it('changes no row of any table: permissions, tokens and screens are there again afterwards', async () => {
    const before = await everythingOf(site);
    const filled = tablesOf(before).filter((name) => before[name]!.length > 0);
    expect(filled).toEqual(
      expect.arrayContaining([
        'switchboard_contacts',
        'switchboard_contacts_tags_lnk',
        'switchboard_webhooks',
        'switchboard_deliveries',
        'switchboard_movements',
        'switchboard_unpublished',
      ])
    );
    await off(false);
    expect((await site.request('GET', '/api/fw-crm/v1/contacts')).status).toBe(404);
    const without = await everythingOf(site);
    for (const name of tablesOf(before)) expect(without[name]).toEqual(before[name]);
    await off(true);
    const after = await everythingOf(site);
    expect(Object.keys(after)).toEqual(Object.keys(before));
    for (const [name, rows] of Object.entries(before))
      expect({ name, rows: after[name] }).toEqual({ name, rows });
  });

  it('brings back what was granted and taken away last, even after a crash', async () => {
    await site.evaluate(async ({ strapi }, code) => {
      const query = strapi.db.query('admin::permission');
      const role = await strapi.db.query('admin::role').findOne({ where: { code } });
      await query.deleteMany({
        where: { role: role.id, action: 'plugin::switchboard.crm.import' },
      });
      const author = await strapi.db.query('admin::role').findOne({
        where: { code: 'strapi-author' },
      });
      await query.create({
        data: { action: 'plugin::switchboard.crm.read', role: author.id, conditions: [] },
      });
    }, ROLE);
    const before = await everythingOf(site);
    await site.kill();
    await off(false);
    await site.kill();
    await off(false);
    await off(true);
    const after = await everythingOf(site);
    for (const name of ['admin_permissions', 'admin_permissions_role_lnk'])
      expect(after[name]).toEqual(before[name]);
  });

  it('gives nothing back to a role that was deleted meanwhile', async () => {
    await site.evaluate(({ strapi }) =>
      strapi.db.query('admin::permission').create({
        data: { action: 'plugin::switchboard.crm.read', conditions: [], role: 3 },
      })
    );
    await off(false);
    await site.evaluate(async ({ strapi }) => {
      await strapi.db.query('admin::permission').deleteMany({ where: { role: { id: 3 } } });
      await strapi.db.query('admin::role').delete({ where: { id: 3 } });
    });
    await off(true);
    const orphans = await site.evaluate(({ strapi }) =>
      strapi.db.query('admin::permission').count({ where: { role: null, apiToken: null } })
    );
    expect(orphans).toBe(0);
  });

  it('writes down who holds a permission, and nothing of a token’s key', async () => {
    const [row] = await runSql(
      database,
      site.databaseName,
      `SELECT * FROM switchboard_host_settings WHERE name = 'admin::api-token-permission'`
    );
    const rows = JSON.parse(String(row!.rows)) as { action: string; token: unknown }[];
    expect(rows.map(({ action }) => action)).toContain('plugin::switchboard.contacts.create');
    for (const { token } of rows) expect(token).toEqual({ id: expect.any(Number) });
  });

  it('lists every table of the plugin for the host, and nothing of anybody else’s', async () => {
    const names = await persistedNames(site);
    expect(new Set(names).size).toBe(names.length);
    expect([...names].sort()).toEqual(
      tablesOf(await readEverything(site.database, site.databaseName))
    );
  });
});

describeEach(databases(), 'a database that newer and older versions share', (database) => {
  let site: Site;
  beforeAll(async () => {
    site = await startFixture('0.2.0', { database, options: QUIET });
  });
  afterAll(() => site?.stop());

  it('keeps the tables and columns of a newer version when an older one boots', async () => {
    const sql = (...statements: string[]) => runSql(database, site.databaseName, ...statements);
    await site.evaluate(async ({ strapi }) => {
      const { schema } = await strapi.db.schema.schemaStorage.read();
      const like = (name: string) =>
        schema.tables.find((item: { name: string }) => item.name === name);
      // A content type of the newer version, tracked by the host.
      const added = { ...like('switchboard_tags'), name: 'switchboard_notes' };
      await strapi.db.schema.schemaStorage.add({ tables: [...schema.tables, added] });
      const where = { key: 'core_persisted_tables' };
      const row = await strapi.db.query('strapi::core-store').findOne({ where });
      const value = JSON.stringify([
        'their_table',
        ...JSON.parse(row.value),
        { name: 'switchboard_notes' },
      ]);
      await strapi.db.query('strapi::core-store').update({ where, data: { value } });
    });
    await sql(
      'CREATE TABLE switchboard_notes (id INTEGER, text VARCHAR(20))',
      "INSERT INTO switchboard_notes VALUES (1, 'kept')",
      'ALTER TABLE switchboard_items ADD COLUMN colour VARCHAR(20)',
      "UPDATE switchboard_items SET colour = 'green'",
      'CREATE INDEX sb_item_colour ON switchboard_items (colour)'
    );
    await site.restart();
    expect(await sql('SELECT text FROM switchboard_notes')).toEqual([{ text: 'kept' }]);
    expect(await sql('SELECT DISTINCT colour FROM switchboard_items')).toEqual([
      { colour: 'green' },
    ]);
    const names = await persistedNames(site);
    expect(names).toEqual(expect.arrayContaining(['their_table', 'switchboard_notes']));
    const created = await site.request('POST', '/switchboard/items', { body: { sku: 'NEW' } });
    expect(created.status).toBe(201);
  });

  it('is made whole by nodes that boot at the same time, and the list is one', async () => {
    const index = database === 'mysql' ? 'sb_item_gtin ON switchboard_items' : 'sb_item_gtin';
    await runSql(
      database,
      site.databaseName,
      'DROP TABLE switchboard_host_settings',
      'DROP TABLE switchboard_unpublished',
      'ALTER TABLE switchboard_movements DROP COLUMN note',
      `DROP INDEX ${index}`,
      `DELETE FROM strapi_core_store_settings WHERE ${PERSISTED.replace('key', key(site))}`
    );
    const siblings = await Promise.allSettled([
      site.sibling({ accounts: false }),
      site.sibling({ accounts: false }),
    ]);
    const failures = siblings.flatMap((it) => (it.status === 'rejected' ? [it.reason] : []));
    for (const it of siblings) if (it.status === 'fulfilled') await it.value.stop();
    expect(failures).toEqual([]);
    const found = await site.evaluate(async ({ strapi }) => {
      const { schemaInspector } = strapi.db.dialect;
      return {
        tables: await schemaInspector.getTables(),
        indexes: (await schemaInspector.getIndexes('switchboard_items')).map(
          ({ name }: { name: string }) => name
        ),
        columns: Object.keys(await strapi.db.connection('switchboard_movements').columnInfo()),
      };
    });
    expect(found.tables).toEqual(
      expect.arrayContaining(['switchboard_host_settings', 'switchboard_unpublished'])
    );
    expect(found.indexes).toContain('sb_item_gtin');
    expect(found.columns).toContain('note');
    expect(await persistedRows(site)).toHaveLength(1);
    expect(await persistedNames(site)).toEqual(
      expect.arrayContaining(['switchboard_host_settings', 'switchboard_items'])
    );
  });
});

const postgresOnly = serverDatabases().filter((kind) => kind === 'postgres');

describeEach(postgresOnly, 'a schema of its own', (database) => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({
      database,
      env: { DATABASE_SCHEMA: 'shop' },
      prepare: async (kind, name) => {
        await runSql(kind, name, 'CREATE SCHEMA shop');
      },
    });
  });
  afterAll(() => site?.stop());

  it('has all tables, also after a boot without the plugin', async () => {
    const created = await site.request('POST', '/switchboard/items', { body: { sku: 'TEA' } });
    expect(created.status).toBe(201);
    await site.restart({ env: { DATABASE_SCHEMA: 'shop', SWITCHBOARD_ENABLED: 'false' } });
    await site.restart({ env: { DATABASE_SCHEMA: 'shop' } });
    const items = await site.request('GET', '/switchboard/items');
    expect(items.body.data).toMatchObject([{ sku: 'TEA' }]);
    const [others] = await runSql(
      database,
      site.databaseName,
      "SELECT COUNT(*) AS n FROM pg_tables WHERE schemaname = 'public'"
    );
    expect(Number(others!.n)).toBe(0);
  });
});
