import { BootError } from '../support/site-process';
import { describeEach, databases, itOnce } from '../support/databases';
import { type Site, type SiteOptions, startSite } from '../support/site';

/** Resolves with why a site did not start; fails where it did. */
const bootFailure = async (options: SiteOptions): Promise<string> => {
  let site: Site;
  try {
    site = await startSite({ ...options, accounts: false });
  } catch (error) {
    if (error instanceof BootError) return error.log;
    throw error;
  }
  await site.stop();
  throw new Error('The site started');
};

describeEach(databases(), 'a site with the plugin', (database) => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({ database, firstBoot: true });
  }, 120_000);
  afterAll(() => site?.stop(), 60_000);

  it('boots, and its routes know the administrator and the API token', async () => {
    const me = await site.request('GET', '/admin/users/me');
    expect(me.status).toBe(200);
    expect(me.body.data.email).toBe('ada@example.test');

    expect((await site.request('GET', '/api/products')).status).toBe(200);
    expect((await site.request('GET', '/api/products', { as: 'nobody' })).status).toBe(403);
  });

  it('has the plugin in it, with the options it was given', async () => {
    const options = await site.control('config', { key: 'plugin::switchboard' });
    expect(options.webhooks.allowPrivateNetworks).toEqual(['127.0.0.0/8', '::1/128']);
    const answer = await site.request('GET', '/api/fw-crm/v1/webhooks');
    expect(answer.status).toBe(200);
  });

  it('can be asked from inside: a transaction that throws leaves nothing', async () => {
    const create = (articleNumber: string) => ({
      op: 'query',
      args: { uid: 'api::product.product', method: 'create', params: { data: { articleNumber } } },
    });
    const attempt = site.control('transaction', {
      steps: [create('a'), { op: 'transaction', args: { steps: [create('b')] } }],
      throw: 'after both',
    });
    await expect(attempt).rejects.toThrow('after both');
    const count = { op: 'sql', args: { statement: 'SELECT COUNT(*) AS n FROM products' } };
    const steps = [create('c'), count];
    const [, rows] = await site.control('transaction', { steps });
    expect(Number(rows[0].n)).toBe(1);
    const numbers = await site.evaluate(
      async ({ strapi }, uid) =>
        (await strapi.db.query(uid).findMany()).map((row: { articleNumber: string }) =>
          row.articleNumber.toUpperCase()
        ),
      'api::product.product'
    );
    expect(numbers).toEqual(['C']);
  });

  itOnce(database)(
    'can be joined by a second process on the same data',
    async () => {
      const second = await site.sibling();
      try {
        const found = await second.request('GET', '/api/products');
        expect(found.body.data).toHaveLength(1);
        expect((await second.request('GET', '/api/products', { as: 'nobody' })).status).toBe(403);
      } finally {
        await second.stop();
      }
    },
    60_000
  );

  it('starts again on its own data, and drops nothing that a node of a later version has added', async () => {
    await site.request('POST', '/api/products', { body: { data: { articleNumber: 'kept' } } });
    await site.evaluate(async ({ strapi }) => {
      const { schemaStorage } = strapi.db.schema;
      const { schema } = await schemaStorage.read();
      for (const name of ['switchboard_contacts', 'switchboard_webhooks']) {
        await strapi.db.connection.raw(`alter table ${name} add column from_later varchar(255)`);
        await strapi.db.connection.raw(`create index ${name}_later on ${name} (from_later)`);
        const table = schema.tables.find((one: { name: string }) => one.name === name);
        const like = table.columns.find((one: { type: string }) => one.type === 'string');
        table.columns.push({ ...like, name: 'from_later' });
        table.indexes.push({ name: `${name}_later`, columns: ['from_later'] });
      }
      await schemaStorage.add(schema);
      const data = { email: 'later@example.test' };
      await strapi.db.query('plugin::switchboard.contact').create({ data });
      await strapi.db.connection('switchboard_contacts').update({ from_later: 'kept' });
    });
    await site.restart();
    expect(
      await site.control('sql', { statement: 'select from_later from switchboard_contacts' })
    ).toEqual([{ from_later: 'kept' }]);
    expect(
      await site.control('sql', { statement: 'select from_later from switchboard_webhooks' })
    ).toEqual([]);
    const found = await site.control('query', {
      uid: 'api::product.product',
      method: 'count',
      params: { where: { articleNumber: 'kept' } },
    });
    expect(found).toBe(1);
    expect((await site.request('GET', '/admin/users/me')).status).toBe(200);
  }, 60_000);

  it('logs no error while it boots, nor options beside enabled', () => {
    expect(site.log()).not.toMatch(/\berror\b:|Error:/);
    expect(site.log()).not.toContain('beside enabled');
  });
});

describe('options next to enabled instead of inside config', () => {
  const linesOf = async (env: Record<string, string>): Promise<string[]> => {
    const site = await startSite({ env });
    await site.stop();
    return site
      .log()
      .split('\n')
      .filter((line) => line.includes('next to enabled'));
  };

  it('are named in a line of the boot log that says where they belong', async () => {
    const beside = { webhooks: { logDays: 7 }, forms: [] };
    const lines = await linesOf({ SWITCHBOARD_BESIDE_CONFIG: JSON.stringify(beside) });
    expect(lines).toEqual([
      expect.stringMatching(/warn.*switchboard: webhooks, forms next to enabled .* inside config/),
    ]);
  }, 60_000);
});

// What is wrong is in unit/config/options.test.ts.
it('a wrong option stops the boot and is named', async () => {
  const options = { webhooks: { concurency: 3 } };
  expect(await bootFailure({ options })).toMatch(/switchboard\.webhooks\.concurency/);
});

describe('a site without an encryption key', () => {
  it('starts and says which line to add', async () => {
    const site = await startSite({ env: { ENCRYPTION_KEY: '' } });
    try {
      expect(site.log()).toContain('admin.secrets.encryptionKey');
      expect(site.log()).toContain('config/admin');
    } finally {
      await site.stop();
    }
  }, 60_000);
});
