import fs from 'node:fs';
import path from 'node:path';
import { runCommand, spawnCommand } from '../support/command';
import { describeEach, anyDatabase, readEverything } from '../support/databases';
import { freePort } from '../support/site-process';
import { type Site, startSite } from '../support/site';
import { createWebhook, insertDeliveries } from './delivery-support';

interface Answer {
  ok: boolean;
  checks: { name: string; state: 'ok' | 'warn' | 'fail'; message: string; advice: string }[];
}

const ask = async (env: NodeJS.ProcessEnv) => {
  const { code, stdout, stderr } = await runCommand(['doctor', '--json'], { env });
  if (stdout === '') throw new Error(`no output: ${stderr}`);
  const answer = JSON.parse(stdout) as Answer;
  const checks = Object.fromEntries(answer.checks.map((check) => [check.name, check]));
  return { code, stderr, answer, checks };
};

const QUIET = { webhooks: { dispatch: false }, pos: { process: false } };

describeEach(anyDatabase(), 'switchboard doctor', (database) => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({ database, options: QUIET, nodeEnv: 'production' });
    const { id } = await createWebhook(site, 'http://127.0.0.1:9/');
    await insertDeliveries(site, id, 3);
    await insertDeliveries(site, id, 2, { tries: 1, next_attempt_at: Date.now() + 600_000 });
    await insertDeliveries(site, id, 4, { status: 'sent', tries: 1 });
  }, 120_000);
  afterAll(() => site?.stop(), 60_000);

  it('finds nothing that must be mended, with a line each, and changes nothing', async () => {
    const before = await readEverything(database, site.databaseName);
    const { code, stdout } = await runCommand(['doctor'], {
      env: { ...site.env(), NODE_ENV: 'production' },
    });
    expect(code).toBe(0);
    const lines = stdout.trimEnd().split('\n');
    expect(lines.every((line) => /^(ok {4}|warn {2})\w+: /.test(line))).toBe(true);
    expect(lines.map((line) => line.slice(6).split(':')[0])).toEqual([
      'database',
      'clocks',
      'tables',
      ...(database === 'sqlite' ? ['sqlite'] : []),
      'deliveries',
      'pos_events',
      'encryption_key',
      'environment',
      'proxy',
      'mcp',
    ]);
    expect(await readEverything(database, site.databaseName)).toEqual(before);
  });

  it('counts what waits and what fails, and says how far the clocks are apart', async () => {
    const { answer, checks } = await ask({ ...site.env(), NODE_ENV: 'production' });
    expect(answer.ok).toBe(true);
    expect(checks.deliveries).toMatchObject({
      state: 'warn',
      message: expect.stringContaining('3 waiting, 2 failing'),
      advice: expect.stringMatching(/fix the receivers/),
    });
    expect(checks.pos_events).toMatchObject({ state: 'ok' });
    expect(checks.clocks).toMatchObject({ state: 'ok', message: expect.stringMatching(/\d+ ms/) });
    expect(checks.tables).toMatchObject({ state: 'ok' });
    expect(checks.environment).toMatchObject({
      state: 'ok',
      message: expect.stringMatching(
        /private addresses are refused .*NODE_ENV is set to production/
      ),
    });
    for (const check of answer.checks) {
      expect(Object.keys(check).sort()).toEqual(['advice', 'message', 'name', 'state']);
      expect(check.advice).not.toBe('');
      expect(check.message).not.toContain('\n');
    }
  });

  it('names what stands still because nobody sends, and tables that are missing', async () => {
    await site.control('sql', {
      statement: 'UPDATE switchboard_delivery_queue SET due_at = due_at - 300000 WHERE section = 0',
    });
    await site.control('sql', { statement: 'DROP TABLE switchboard_nodes' });
    const { code, checks } = await ask(site.env());
    expect(code).toBe(0);
    expect(checks.deliveries).toMatchObject({
      message: expect.stringMatching(/the oldest has been due for 3\d\d seconds/),
      advice: expect.stringMatching(/switchboard worker/),
    });
    expect(checks.tables).toMatchObject({
      state: 'warn',
      message: expect.stringMatching(/1 of \d+ tables are missing: switchboard_nodes/),
    });
  });
});

describe('switchboard doctor', () => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({ options: QUIET });
  }, 120_000);
  afterAll(() => site?.stop(), 60_000);

  it('says in one line that the database is away, and ends with 1', async () => {
    const port = await freePort();
    const env = {
      ...site.env(),
      DATABASE_CLIENT: 'postgres',
      DATABASE_HOST: '127.0.0.1',
      DATABASE_PORT: String(port),
      DATABASE_NAME: 'x',
    };
    const { code, stderr, answer, checks } = await ask(env);
    expect({ code, ok: answer.ok }).toEqual({ code: 1, ok: false });
    expect(checks.database).toMatchObject({
      state: 'fail',
      message: expect.stringMatching(/does not answer.*ECONNREFUSED/),
    });
    expect(stderr).not.toMatch(/^\s+at /m);
    const { code: again, stdout, stderr: complaint } = await runCommand(['doctor'], { env });
    expect(again).toBe(1);
    expect(stdout.split('\n').filter((line) => /database/.test(line))).toEqual([
      expect.stringMatching(/^fail {2}database: the database does not answer: .*ECONNREFUSED/),
    ]);
    expect(complaint).not.toMatch(/^\s+at /m);
  });

  it('tells webhooks of a copied database from those that were switched off', async () => {
    const body = { name: 'copied', url: 'https://receiver.example', events: ['*'] };
    await site.request('POST', '/api/fw-crm/v1/webhooks', { body });
    await site.control('sql', { statement: 'DELETE FROM switchboard_site' });
    await site.restart({ options: QUIET });
    const { checks } = await ask(site.env());
    expect(checks.deliveries).toMatchObject({
      state: 'warn',
      message:
        'deliveries: 0 waiting, 0 failing; 0 webhooks were switched off, 1 more came from another site',
      advice: 'switch on the webhooks that should send from this site',
    });
  }, 120_000);

  it('ends with 1 without an encryption key', async () => {
    const { code, answer, checks } = await ask({ ...site.env(), ENCRYPTION_KEY: '' });
    expect({ code, ok: answer.ok }).toEqual({ code: 1, ok: false });
    expect(checks.encryption_key).toMatchObject({
      state: 'fail',
      advice: expect.stringContaining('ENCRYPTION_KEY'),
    });
  });

  it('names the option that is wrong, and a site without the plugin', async () => {
    const wrong = await ask({
      ...site.env(),
      SWITCHBOARD_OPTIONS: JSON.stringify({ webhooks: { concurency: 3 } }),
    });
    expect(wrong).toMatchObject({
      code: 1,
      checks: {
        site: {
          state: 'fail',
          message: expect.stringContaining('switchboard.webhooks.concurency'),
        },
      },
    });
    expect(await ask({ ...site.env(), SWITCHBOARD_ENABLED: 'false' })).toMatchObject({
      code: 1,
      checks: { plugin: { state: 'fail' } },
    });
  });

  it('is not alone to say what a site lacks: any command does', async () => {
    const env = { ...site.env(), SITE_PUBLIC_DIR: '/nowhere' };
    const ended = await spawnCommand(['webhooks'], { env });
    expect(ended).toMatchObject({ code: 2, stdout: '' });
    expect(ended.stderr).toMatch(/upload folder \(\/nowhere\/uploads\) doesn't exist/);
  }, 60_000);

  it('warns of SQLite without WAL, of a proxy that is not counted, and of open addresses', async () => {
    const { code, checks } = await ask({
      ...site.env(),
      SQLITE_JOURNAL_MODE: 'DELETE',
      // What it reads is a file of its own: the site's keeps the mode it has.
      DATABASE_FILENAME: path.join(path.dirname(site.databaseName), 'other.db'),
      SITE_PROXY: JSON.stringify({ koa: true }),
      NODE_ENV: 'development',
      HTTP_PROXY: '',
    });
    fs.rmSync(path.join(path.dirname(site.databaseName), 'other.db'), { force: true });
    expect(code).toBe(0);
    expect(checks.sqlite).toMatchObject({ state: 'warn', message: expect.stringMatching(/WAL/) });
    expect(checks.proxy).toMatchObject({
      state: 'warn',
      message: expect.stringMatching(/maxIpsCount/),
    });
    expect(checks.environment).toMatchObject({
      state: 'warn',
      message: expect.stringMatching(/private addresses are open/),
    });
    // An empty database: the site never started on it.
    expect(checks.tables).toMatchObject({ state: 'warn' });
    expect(checks.deliveries).toBeUndefined();
  });
});
