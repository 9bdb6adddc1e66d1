import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { databases, describeEach, listTables, readEverything } from '../support/databases';
import { startFixture } from '../support/fixtures';
import { runCommand as run } from '../support/command';
import type { Site } from '../support/site';
import { type Receiver, startReceiver } from '../support/receiver';

jest.setTimeout(240_000);

const QUIET = { webhooks: { dispatch: false }, pos: { process: false } };

describe('switchboard', () => {
  it.each([
    [[], /Which command\?.*stock rebuild.*uninstall/],
    [['nonsense'], /Unknown command "nonsense"/],
    [['stock'], /Unknown command "stock"/],
    [['stock', 'sell'], /Unknown command "stock sell"/],
    [['uninstall', '--dorp'], /uninstall.*--dorp/],
    [['uninstall', 'now'], /uninstall.*now/],
    [['stock', 'rebuild', '--mend=yes'], /stock rebuild.*--mend/],
    [['doctor', '--fix'], /doctor.*--fix/],
    [['worker', '--only', 'mail'], /worker.*--only.*mail/],
    [['worker', '--only'], /worker.*--only/],
    [['worker', '--concurrency', '0'], /worker.*--concurrency.*"0"/],
    [['worker', '--concurrency', 'many'], /worker.*--concurrency.*"many"/],
    [['worker', '--health-port', '65536'], /worker.*--health-port.*65536/],
    [['worker', '--health-host', '0.0.0.0'], /worker.*--health-host.*--health-port/],
  ])('refuses %j in one line that names it', async (words, expected) => {
    const { code, stdout, stderr } = await run(words as string[]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr.trimEnd().split('\n')).toEqual([expect.stringMatching(expected)]);
  });

  it.each([[], ['uninstall'], ['stock', 'rebuild'], ['worker'], ['doctor']].map((name) => [name]))(
    'explains %j',
    async (name) => {
      const { code, stdout, stderr } = await run([...name, '--help']);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout).toMatch(/^Usage/);
      expect(stdout).toContain('--json');
      const json = await run([...name, '--help', '--json']);
      expect({ code: json.code, answer: JSON.parse(json.stdout) }).toEqual({
        code: 0,
        answer: { usage: stdout },
      });
    }
  );

  it('says in one line that a folder is no site', async () => {
    const { code, stdout, stderr } = await run(['uninstall'], { cwd: os.tmpdir() });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr.trimEnd().split('\n')).toEqual([expect.stringMatching(/not.*Strapi site/)]);
  });

  it('says in one line that the database does not answer', async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'switchboard-'));
    fs.mkdirSync(path.join(folder, 'uploads'));
    const env = {
      SITE_PUBLIC_DIR: folder,
      DATABASE_CLIENT: 'postgres',
      DATABASE_HOST: '127.0.0.1',
      DATABASE_PORT: '9',
      DATABASE_NAME: 'x',
      SWITCHBOARD_PATH: '',
      SWITCHBOARD_ENABLED: 'false',
    };
    const { code, stdout, stderr } = await run(['uninstall'], { env });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/ECONNREFUSED/);
    expect(stderr).not.toMatch(/^\s+at /m);
    fs.rmSync(folder, { recursive: true });
  });
});

describeEach(databases(), 'switchboard in a site', (database) => {
  let site: Site;
  let receiver: Receiver;
  beforeAll(async () => {
    receiver = await startReceiver();
    site = await startFixture('0.2.0', { database, options: QUIET, receiverUrl: receiver.url });
    // From here the site's own options say that it sends; the command's process must not.
    await site.evaluate(({ strapi }) =>
      strapi.db.connection('switchboard_levels').where({ id: 1 }).update({ quantity: 7 })
    );
    await site.kill('SIGTERM');
  });
  afterAll(async () => {
    await site?.stop();
    await receiver?.close();
  });

  const sending = () => ({
    ...site.env(),
    SWITCHBOARD_OPTIONS: JSON.stringify({
      webhooks: { allowPrivateNetworks: ['127.0.0.0/8'], logDays: 3650, pollSeconds: 1 },
    }),
  });
  const json = async (words: string[], input = '') => {
    const { code, stdout, stderr } = await run([...words, '--json'], { env: sending(), input });
    if (stdout === '') throw new Error(`no output: ${stderr}`);
    return { code, answer: JSON.parse(stdout) };
  };
  const tables = async () =>
    (await listTables(database, site.databaseName)).filter((name) =>
      name.startsWith('switchboard_')
    );

  it('stock rebuild names the SKU that differs, mends it, and sends and applies nothing', async () => {
    const text = await run(['stock', 'rebuild'], { env: sending() });
    expect(text).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/TEA at main: is 7, should be 95/),
    });
    const found = await json(['stock', 'rebuild']);
    expect(found).toMatchObject({
      code: 1,
      answer: { mended: false, differences: [{ sku: 'TEA', quantity: 7, should_be: 95 }] },
    });
    expect((await json(['stock', 'rebuild', '--mend'])).code).toBe(0);
    const first = await run([], { env: sending(), file: 'stock-rebuild' });
    expect(first).toMatchObject({ code: 0, stdout: expect.stringMatching(/0 differences/) });
    expect(receiver.requests).toEqual([]);
  });

  it('uninstall says what it would remove, and changes nothing', async () => {
    const before = await readEverything(database, site.databaseName);
    const { code, stdout } = await run(['uninstall'], { env: sending() });
    expect(code).toBe(0);
    for (const name of await tables()) expect(stdout).toContain(`${name}:`);
    const { answer } = await json(['uninstall']);
    expect(answer).toMatchObject({ dropped: false, role: { name: 'CRM Manager', users: 1 } });
    expect(answer.tables).toContainEqual({ name: 'switchboard_contacts', rows: 5 });
    expect(answer.permissions.admin).toBeGreaterThan(0);
    expect(await readEverything(database, site.databaseName)).toEqual(before);
    expect(receiver.requests).toEqual([]);
  });

  it.each(['', 'yes please\n'])(
    'uninstall --drop drops nothing when it is answered %j',
    async (input) => {
      const before = await tables();
      const { code, answer } = await json(['uninstall', '--drop'], input);
      expect({ code, dropped: answer.dropped }).toEqual({ code: 1, dropped: false });
      expect(await tables()).toEqual(before);
    }
  );

  it('uninstall --drop removes everything when it is answered yes, with the plugin on or not', async () => {
    const before = await readEverything(database, site.databaseName);
    const { code, stdout, stderr } = await run(['uninstall', '--drop'], {
      env: { ...sending(), SWITCHBOARD_ENABLED: 'false' },
      input: 'yes\n',
    });
    expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringMatching(/yes/) });
    expect(stdout).toMatch(/CRM Manager stays/);
    expect(await tables()).toEqual([]);
    const after = await readEverything(database, site.databaseName);
    const about = (name: string) =>
      after[name]!.filter((row) => row.includes('plugin::switchboard.'));
    for (const name of ['admin_permissions', 'strapi_api_token_permissions', 'up_permissions'])
      expect(about(name)).toEqual([]);
    const left = after.strapi_core_store_settings!.map((row) => String(JSON.parse(row).key));
    expect(left.filter((key) => /^plugin_switchboard|::plugin::switchboard/.test(key))).toEqual([]);
    const persisted = after.strapi_core_store_settings!.find((row) =>
      row.includes('core_persisted_tables')
    );
    expect(persisted ?? '').not.toContain('switchboard_');
    expect(after.admin_users).toEqual(before.admin_users);
    expect(after.strapi_api_tokens).toEqual(before.strapi_api_tokens);
    expect((await json(['uninstall'])).answer).toMatchObject({ tables: [], dropped: false });
  });

  it('the site runs on without the plugin, and with it makes everything anew', async () => {
    await site.restart({ env: { SWITCHBOARD_ENABLED: 'false' } });
    expect((await site.request('GET', '/admin/init', { as: 'nobody' })).status).toBe(200);
    expect(await tables()).toEqual([]);
    await site.restart({ env: { SWITCHBOARD_ENABLED: 'true' } });
    const contacts = await site.request('GET', '/api/fw-crm/v1/contacts', { as: 'admin' });
    expect(contacts.status).toBe(401);
    const items = await site.request('GET', '/switchboard/items');
    expect(items.body).toMatchObject({ data: [] });
    expect((await json(['uninstall', '--drop', '--yes'])).answer.dropped).toBe(true);
    expect(await tables()).toEqual([]);
  });
});
