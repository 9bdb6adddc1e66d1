import Sqlite from 'better-sqlite3';

type Done = (error: Error | null, connection: Sqlite) => void;
interface Pool {
  min?: number;
  afterCreate?: (connection: Sqlite, done: Done) => void;
}

// eslint-disable-next-line @typescript-eslint/no-require-imports -- the command is plain JavaScript
const { waitForLocks } = require('../../../bin/lib/site') as {
  waitForLocks: (strapi: unknown, milliseconds: number) => () => void;
};

describe('how long a command waits for the lock of SQLite', () => {
  const opened: Sqlite[] = [];
  afterEach(() => opened.splice(0).forEach((connection) => connection.close()));

  const siteOf = (client: string, pool?: Pool) => {
    const values: Record<string, unknown> = { 'database.connection': { client, pool } };
    const config = {
      get: (name: string) => values[name],
      set: (name: string, value: unknown) => (values[name] = value),
    };
    return { strapi: { config }, poolOf: () => values['database.connection.pool'] as Pool };
  };
  const open = (pool: Pool): Promise<Sqlite> =>
    new Promise((resolve, reject) => {
      const connection = new Sqlite(':memory:');
      opened.push(connection);
      pool.afterCreate?.(connection, (error, given) => (error ? reject(error) : resolve(given)));
    });
  const waitOf = (connection: Sqlite) => connection.pragma('busy_timeout', { simple: true });

  it('is what was asked for until the wait of the site is put back', async () => {
    const { strapi, poolOf } = siteOf('sqlite', {
      min: 1,
      afterCreate(connection, done) {
        connection.pragma('busy_timeout = 50');
        done(null, connection);
      },
    });
    const putBack = waitForLocks(strapi, 700);
    expect(poolOf().min).toBe(1);
    const [kept, closed] = [await open(poolOf()), await open(poolOf())];
    expect([waitOf(kept), waitOf(closed)]).toEqual([700, 700]);
    closed.close();
    putBack();
    expect(waitOf(kept)).toBe(50);
  });

  it('is never shorter than that of the site', async () => {
    const { strapi, poolOf } = siteOf('sqlite');
    waitForLocks(strapi, 700);
    // The driver's own.
    expect(waitOf(await open(poolOf()))).toBe(5000);
  });

  it('leaves an error of the site as it is', async () => {
    const { strapi, poolOf } = siteOf('sqlite', {
      afterCreate: (connection, done) => done(new Error('no such extension'), connection),
    });
    waitForLocks(strapi, 700);
    await expect(open(poolOf())).rejects.toThrow('no such extension');
  });

  it('is nothing where there is another database, or none', () => {
    const { strapi, poolOf } = siteOf('postgres', { min: 0 });
    waitForLocks(strapi, 700)();
    expect(poolOf()).toBeUndefined();
    waitForLocks({ config: { get: (_name: string, fallback: unknown) => fallback } }, 700)();
  });
});
