import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import Sqlite from 'better-sqlite3';

type Done = (error: Error | null, connection: Sqlite) => void;
interface Pool {
  min?: number;
  afterCreate?: ((connection: Sqlite, done: Done) => void) | null;
}

// eslint-disable-next-line @typescript-eslint/no-require-imports -- the command is plain JavaScript
const { waitForLocks } = require('../../../bin/lib/site') as {
  waitForLocks: (strapi: unknown, milliseconds: number) => () => void;
};

describe('how long a command waits for the lock of SQLite', () => {
  const opened: Sqlite[] = [];
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'switchboard-locks-'));
  afterEach(() => opened.splice(0).forEach((connection) => connection.close()));
  afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

  const siteOf = (client: string, pool?: Pool | null) => {
    const values: Record<string, unknown> = { 'database.connection': { client, pool } };
    const config = {
      get: (name: string) => values[name],
      set: (name: string, value: unknown) => (values[name] = value),
    };
    return { strapi: { config }, poolOf: () => values['database.connection.pool'] as Pool };
  };
  const open = (pool: Pool, file = ':memory:'): Promise<Sqlite> =>
    new Promise((resolve, reject) => {
      const connection = new Sqlite(file);
      opened.push(connection);
      pool.afterCreate?.(connection, (error, given) => (error ? reject(error) : resolve(given)));
    });
  const waitOf = (connection: Sqlite) => connection.pragma('busy_timeout', { simple: true });

  const short = (connection: Sqlite, done: Done): void => {
    connection.pragma('busy_timeout = 50');
    done(null, connection);
  };

  it('is so long until it ends', async () => {
    const { strapi, poolOf } = siteOf('sqlite', { min: 1, afterCreate: short });
    const end = waitForLocks(strapi, 700);
    expect(poolOf().min).toBe(1);
    const kept = await open(poolOf());
    const closed = await open(poolOf());
    const changed = await open(poolOf());
    expect([kept, closed, changed].map(waitOf)).toEqual([700, 700, 700]);
    closed.close();
    changed.pragma('busy_timeout = 80');
    end();
    expect([kept, changed, await open(poolOf())].map(waitOf)).toEqual([50, 80, 50]);
  });

  it('is never shorter than that of the site', async () => {
    const { strapi, poolOf } = siteOf('sqlite');
    const end = waitForLocks(strapi, 700);
    // The driver's own.
    const connection = await open(poolOf());
    expect(waitOf(connection)).toBe(5000);
    end();
    expect(waitOf(connection)).toBe(5000);
  });

  it('begins with the lock, as a transaction that has read does not wait', async () => {
    const file = path.join(folder, 'locks.db');
    const { strapi, poolOf } = siteOf('sqlite', { afterCreate: short });
    const end = waitForLocks(strapi, 700);
    const connection = await open(poolOf(), file);
    const other = await open({ afterCreate: short }, file);
    const run = (sql: string) => connection.prepare(sql).run();
    run('BEGIN;');
    expect(() => other.exec('BEGIN IMMEDIATE')).toThrow('database is locked');
    run('COMMIT;');
    end();
    run('BEGIN;');
    other.exec('BEGIN IMMEDIATE; ROLLBACK');
    run('COMMIT;');
  });

  it('leaves an error of the site as it is', async () => {
    const { strapi, poolOf } = siteOf('sqlite', {
      afterCreate: (connection, done) => done(new Error('no such extension'), connection),
    });
    waitForLocks(strapi, 700);
    await expect(open(poolOf())).rejects.toThrow('no such extension');
  });

  it.each([null, { afterCreate: null }])('takes a pool of %j, as the host does', async (pool) => {
    const { strapi, poolOf } = siteOf('sqlite', pool);
    waitForLocks(strapi, 7000);
    expect(waitOf(await open(poolOf()))).toBe(7000);
  });

  it('is nothing where there is another database, or none', () => {
    const { strapi, poolOf } = siteOf('postgres', null);
    waitForLocks(strapi, 700)();
    expect(poolOf()).toBeUndefined();
    waitForLocks({ config: { get: (_name: string, fallback: unknown) => fallback } }, 700)();
  });
});
