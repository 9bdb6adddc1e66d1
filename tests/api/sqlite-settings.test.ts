import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { runCommand, startWorker } from '../support/command';
import { describeEach, databases } from '../support/databases';
import { type Site, startSite } from '../support/site';

const onSqlite = databases().filter((kind) => kind === 'sqlite');
const CONTACTS = '/api/fw-crm/v1/contacts';

describeEach(onSqlite, 'a site whose database another process is writing to', () => {
  let site: Site;
  let holder: ChildProcess | undefined;
  beforeAll(async () => {
    site = await startSite();
  }, 120_000);
  afterAll(async () => {
    holder?.kill('SIGKILL');
    await site?.stop();
  }, 60_000);

  const holdLock = async (): Promise<() => Promise<void>> => {
    const file = require.resolve('../support/hold-write-lock.js');
    const child = spawn(process.execPath, [file, site.databaseName], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    holder = child;
    await once(child.stdout, 'data');
    return async () => {
      const gone = once(child, 'exit');
      child.stdin.end();
      await gone;
    };
  };
  const create = async (email: string) => {
    const from = Date.now();
    const { status } = await site.request('POST', CONTACTS, { body: { email } });
    return { status, took: Date.now() - from };
  };

  it('goes on answering, and writes again afterwards', async () => {
    // The host notes the first use of a token, which is a write.
    expect((await site.request('GET', CONTACTS)).status).toBe(200);
    const release = await holdLock();

    const writes: ReturnType<typeof create>[] = [];
    let reading = 0;
    for (let round = 0; round < 10; round += 1) {
      writes.push(create(`locked-${round}@example.test`));
      const from = Date.now();
      expect((await site.request('GET', CONTACTS)).status).toBe(200);
      reading += Date.now() - from;
    }
    // A driver that waits the 5 s of its default would need a minute for this.
    expect(reading).toBeLessThan(25_000);
    for (const { status, took } of await Promise.all(writes)) {
      expect(status).toBeGreaterThanOrEqual(500);
      expect(took).toBeLessThan(40_000);
    }

    await release();
    expect((await create('free@example.test')).status).toBe(201);
    const { body } = await site.request('GET', CONTACTS);
    expect(body.data.map(({ email }: { email: string }) => email)).toEqual(['free@example.test']);
  }, 180_000);

  it('writes without its client noticing where the lock is soon gone', async () => {
    const release = await holdLock();
    const write = create('patient@example.test');
    // Answered once the write has met the lock: the site takes requests in turn.
    expect((await site.request('GET', CONTACTS)).status).toBe(200);
    await release();
    expect((await write).status).toBe(201);
  }, 60_000);
});

describeEach(onSqlite, 'a process of the command beside a site that is writing', () => {
  let site: Site;
  let stopWriting: (() => void) | undefined;
  beforeAll(async () => {
    site = await startSite({ options: { webhooks: { dispatch: false } } });
    stopWriting = keepWriting();
  }, 120_000);
  afterAll(async () => {
    stopWriting?.();
    await site?.stop();
  }, 60_000);

  /** Holds the write lock for 300 ms twice a second, and commits a row each time. */
  const keepWriting = (): (() => void) => {
    const connection = new Database(site.databaseName);
    connection.exec('CREATE TABLE of_another (at INTEGER)');
    connection.pragma('busy_timeout = 0');
    let timer: NodeJS.Timeout;
    const begin = () => {
      try {
        connection.exec('BEGIN IMMEDIATE');
      } catch {
        timer = setTimeout(begin, 5);
        return;
      }
      connection.exec('INSERT INTO of_another VALUES (1)');
      timer = setTimeout(end, 300);
    };
    const end = () => {
      connection.exec('COMMIT');
      timer = setTimeout(begin, 200);
    };
    begin();
    return () => {
      clearTimeout(timer);
      connection.close();
    };
  };

  it('waits for the lock where it runs a command', async () => {
    const ended = await runCommand(['stock', 'rebuild'], { env: site.env() });
    expect(ended).toMatchObject({ code: 0, stdout: expect.stringContaining('0 differences') });
  }, 120_000);

  it('waits for it where the host reads first, as for permissions that are no more', async () => {
    const options = JSON.stringify({ features: { pos: false } });
    const ended = await runCommand(['stock', 'rebuild'], {
      env: { ...site.env(), SWITCHBOARD_OPTIONS: options },
    });
    expect(ended).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/features\.pos is false/),
    });
  }, 120_000);

  it('waits for it while a worker starts', async () => {
    const worker = await startWorker(site.env());
    expect(worker.log()).not.toMatch(/database is locked|busy_timeout/);
    await worker.stop();
  }, 120_000);
});

describeEach(onSqlite, "a site's write-ahead log", () => {
  let site: Site | undefined;
  afterEach(async () => {
    await site?.stop();
  }, 60_000);

  /** The contacts in the file without the log next to it; none while a part of it is being written. */
  const contactsOfFile = (databaseName: string): number => {
    const copy = `${databaseName}-copied`;
    fs.copyFileSync(databaseName, copy);
    const connection = new Database(copy, { readonly: true });
    try {
      return connection.prepare('SELECT id FROM switchboard_contacts').all().length;
    } catch {
      return 0;
    } finally {
      connection.close();
      for (const end of ['', '-wal', '-shm']) fs.rmSync(`${copy}${end}`, { force: true });
    }
  };
  const create = (email: string) => site?.request('POST', CONTACTS, { body: { email } });
  const createMany = async (count: number): Promise<void> => {
    const emails = Array.from({ length: count }, (_one, at) => `${at}@example.test`);
    const answers = await Promise.all(emails.map(create));
    expect(new Set(answers.map((answer) => answer?.status))).toEqual(new Set([201]));
  };
  const pagesOfCheckpoint = () =>
    site?.evaluate(async ({ strapi }) => {
      const [row] = await strapi.db.connection.raw('PRAGMA wal_autocheckpoint');
      return row.wal_autocheckpoint;
    });

  it('is copied into the file by a thread, before a write of the site does it', async () => {
    site = await startSite({ env: { SQLITE_CHECKPOINT_PAGES: '100' } });
    expect(await pagesOfCheckpoint()).toBe(400);
    // So that only the thread does.
    await site.evaluate(({ strapi }) => strapi.db.connection.raw('PRAGMA wal_autocheckpoint = 0'));
    await createMany(40);
    // Each has written at least five pages, and fewer than a hundred are left.
    let copied = 0;
    for (let tries = 0; tries < 40 && copied < 20; tries += 1) {
      await sleep(100);
      copied = contactsOfFile(site.databaseName);
    }
    expect(copied).toBeGreaterThanOrEqual(20);
    expect(site.log()).not.toMatch(/checkpoints|database is locked/);
  }, 120_000);

  it('is left alone if the site has switched checkpoints off', async () => {
    site = await startSite({ env: { SQLITE_CHECKPOINT_PAGES: '0' } });
    expect(await pagesOfCheckpoint()).toBe(0);
    await createMany(40);
    await sleep(1000);
    expect(contactsOfFile(site.databaseName)).toBe(0);
  }, 120_000);
});

describeEach(onSqlite, 'the warnings of a boot', () => {
  const bootLog = async (env: Record<string, string>): Promise<string> => {
    const site = await startSite({ env });
    await site.stop();
    return site
      .log()
      .split('\n')
      .filter((line) => line.includes('switchboard: SQLite'))
      .join('\n');
  };

  it('name WAL where SQLite lacks it, and a wait that holds the site', async () => {
    const log = await bootLog({ SQLITE_JOURNAL_MODE: 'DELETE', SQLITE_BUSY_TIMEOUT: '5000' });
    expect(log.match(/WAL/g)).toHaveLength(1);
    expect(log).toMatch(/warn.*journal_mode is delete/);
    expect(log).toMatch(/warn.*waits up to 5000 ms/);
  }, 120_000);

  it('are none with the recommended settings', async () => {
    expect(await bootLog({})).toBe('');
  }, 120_000);
});
