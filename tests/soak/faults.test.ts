import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { databases, type DatabaseKind } from '../support/databases';
import { type Receiver, startReceiver } from '../support/receiver';
import { createRedis, hasRedis } from '../support/redis';
import { type Site, type SiteOptions, startSite } from '../support/site';
import { sleep, waitFor } from '../support/wait';
import { signBody } from '../support/till-signature';
import { arrivals, createWebhook, sql } from '../api/delivery-support';
import { allProcessed, BASE, createItem, createTill, levelOf, saleBody } from '../api/pos-till';
import { canOwnPostgres, createOwnPostgres, type OwnPostgres } from './lib/own-postgres';
import { canMount, createSmallDisk, type SmallDisk } from './lib/small-disk';

/**
 * Faults with real means. Each ends with: what was committed has its one event, what was not has none,
 * every event arrived, and none twice but what was under way at a fault. It prints its figures.
 * `SOAK=short npm run test:soak -- faults` takes half a minute for each, `SOAK=full` ten minutes, and
 * `SOAK_SECONDS` as many seconds as it says.
 */
const SECONDS = Number(process.env.SOAK_SECONDS ?? (process.env.SOAK === 'full' ? 600 : 30));
const LASTS_MS = SECONDS * 1000;
const LIMIT_MS = 2 * LASTS_MS + 300_000;
jest.setTimeout(LIMIT_MS);

/** What one process may hold when it ends: `webhooks.concurrency` twice. */
const HELD_AT_MOST = 2 * 64;

const WEBHOOKS = {
  timeoutMs: 2000,
  pollSeconds: 1,
  retryScheduleSeconds: Array<number>(20).fill(1),
  disableAfterFailures: 1_000_000,
};

const describeIf = (possible: boolean, name: string, needs: string, body: () => void): void => {
  if (possible) describe(name, body);
  else {
    describe.skip(`${name} (needs ${needs})`, () => {
      it('is not possible here', () => {});
    });
  }
};

interface Written {
  /** Titles of what was said to be committed. */
  acked: string[];
  failed: number;
}

/**
 * Writes with an event each, in lanes beside each other, for so long.
 * @param hot rows that each transaction changes two of, in any order
 * @param size characters that each event has besides
 */
const write = (
  site: Site,
  run: string,
  lanes: number,
  ms: number,
  { hot = 0, size = 0 } = {}
): Promise<Written> =>
  site.evaluate(
    async ({ strapi }, name, count, lasts, contested, characters) => {
      const events = strapi.service('plugin::switchboard.events');
      const labels = strapi.db.query('api::label.label');
      const until = Date.now() + lasts;
      const acked: string[] = [];
      let failed = 0;
      const lane = async (number: number): Promise<void> => {
        for (let n = 0; Date.now() < until; n += 1) {
          const title = `${name}-${number}-${n}`;
          try {
            await strapi.db.transaction(async () => {
              for (let row = 0; row < Math.min(contested, 2); row += 1) {
                const where = { handle: `hot-${Math.floor(Math.random() * contested)}` };
                await labels.update({ where, data: { title: `hot ${title}` } });
              }
              await labels.create({ data: { title } });
              await events.send('label.made', { title, text: 'x'.repeat(characters) });
            });
            acked.push(title);
          } catch {
            failed += 1;
            await new Promise((resolve) => {
              setTimeout(resolve, 20);
            });
          }
        }
      };
      await Promise.all(Array.from({ length: count }, (_none, number) => lane(number)));
      return { acked, failed };
    },
    run,
    lanes,
    ms,
    hot,
    size
  );

const say = (what: string, figures: Record<string, number>): void => {
  const text = Object.entries(figures).map(([name, value]) => `${value} ${name}`);
  process.stderr.write(`[faults] ${what}: ${text.join(', ')}\n`);
};

/**
 * Waits until nothing is pending, and compares what was committed with what arrived.
 * @param faults at how many moments a process, or its database, was cut off
 */
const judge = async (
  what: string,
  site: Site,
  receiver: Receiver,
  run: string,
  { acked, failed }: Written,
  faults: number
): Promise<void> => {
  const pending = `SELECT COUNT(*) AS n FROM switchboard_deliveries WHERE status = 'pending'`;
  await waitFor(
    async () => Number((await sql<{ n: number }>(site, pending))[0]?.n) === 0,
    LASTS_MS + 180_000,
    'all deliveries to finish'
  );
  const titles = (
    await sql<{ title: string }>(site, `SELECT title FROM labels WHERE title LIKE '${run}-%'`)
  ).map(({ title }) => title);
  const rows = await sql<{ document_id: string; body: string; status: string }>(
    site,
    "SELECT document_id, body, status FROM switchboard_deliveries WHERE event = 'label.made'"
  );
  const told = rows.map(({ body }) => String(JSON.parse(body).data.title));
  const posts = arrivals(receiver);
  const arrived = new Set(rows.filter((row) => posts.has(row.document_id)).map(({ body }) => body));
  const lost = rows.length - arrived.size;
  const twice = rows.filter((row) => (posts.get(row.document_id)?.length ?? 0) > 1).length;
  say(what, { written: titles.length, failed, lost, twice });

  const kept = new Set(titles);
  expect(acked.filter((title) => !kept.has(title))).toEqual([]);
  expect(told.filter((title) => !kept.has(title))).toEqual([]);
  const heard = new Set(told);
  expect(titles.filter((title) => !heard.has(title))).toEqual([]);
  expect(told).toHaveLength(titles.length);
  expect(rows.filter(({ status }) => status !== 'sent')).toEqual([]);
  expect(lost).toBe(0);
  expect(twice).toBeLessThanOrEqual(faults * HELD_AT_MOST);
  expect(titles.length).toBeGreaterThan(20);
};

/** A site and a receiver; both end after the test's body, whatever becomes of it. */
const withSite = async (
  settings: SiteOptions,
  body: (site: Site, receiver: Receiver) => Promise<void>
): Promise<void> => {
  const receiver = await startReceiver({ delayMs: 2 });
  const site = await startSite({
    ...settings,
    options: { webhooks: WEBHOOKS, pos: { ratePerMinute: 1_000_000 }, ...settings.options },
  });
  try {
    await createWebhook(site, receiver.url, { name: 'load' });
    await body(site, receiver);
  } finally {
    await site.stop();
    await receiver.close();
  }
};

const mountable = canMount();
/** What is written has to fit on it between two times that it is full. */
const ON_DISK_MS = Math.min(LASTS_MS, 60_000);

describeIf(mountable, 'a full disk', 'root, and leave to mount a tmpfs', () => {
  let disk: SmallDisk;
  beforeEach(() => {
    disk = createSmallDisk(600);
  });
  afterEach(() => disk.unmount());

  /** Fills the disk again and again while there are writes. @returns how often */
  const keepFilling = async (until: number, mend: () => Promise<void>): Promise<number> => {
    let times = 0;
    while (Date.now() < until) {
      await sleep(ON_DISK_MS / 10);
      disk.fill();
      times += 1;
      await sleep(ON_DISK_MS / 10);
      disk.free();
      await mend();
    }
    return times;
  };

  it('under SQLite', async () => {
    const databaseName = path.join(disk.folder, 'data.db');
    await withSite({ database: 'sqlite', databaseName }, async (site, receiver) => {
      const writing = write(site, 'full', 4, ON_DISK_MS, { size: 5000 });
      const times = await keepFilling(Date.now() + ON_DISK_MS * 0.8, async () => {});
      const written = await writing;
      await judge('full disk under SQLite', site, receiver, 'full', written, times);
      expect(written.failed).toBeGreaterThan(0);
    });
  });

  const withPostgres = canOwnPostgres() ? it : it.skip;
  withPostgres('under PostgreSQL', async () => {
    const folder = path.join(disk.folder, 'server');
    fs.mkdirSync(folder);
    const server = await createOwnPostgres(folder);
    try {
      const settings = { database: 'postgres' as const, databaseName: 'soak' };
      const env = { DATABASE_HOST: '127.0.0.1', DATABASE_PORT: String(server.port) };
      await withSite({ ...settings, env }, async (site, receiver) => {
        const writing = write(site, 'full', 4, ON_DISK_MS, { size: 5000 });
        const times = await keepFilling(Date.now() + ON_DISK_MS * 0.8, async () => {
          // Without room for its log the server ends itself, and somebody has to start it again.
          if (!server.answers()) server.start();
        });
        const written = await writing;
        await judge('full disk under PostgreSQL', site, receiver, 'full', written, times);
        expect(written.failed).toBeGreaterThan(0);
      });
    } finally {
      server.stop('immediate');
    }
  });
});

describeIf(canOwnPostgres(), 'PostgreSQL that is restarted', 'root and its programs', () => {
  let folder: string;
  let server: OwnPostgres;
  beforeAll(async () => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'switchboard-pg-'));
    server = await createOwnPostgres(folder);
  });
  afterAll(() => {
    server?.stop('immediate');
    fs.rmSync(folder, { recursive: true, force: true });
  });

  it('under load, with a pool of two', async () => {
    const env = {
      DATABASE_HOST: '127.0.0.1',
      DATABASE_PORT: String(server.port),
      DATABASE_POOL_MAX: '2',
    };
    const settings = { database: 'postgres' as const, databaseName: 'soak', env };
    await withSite(settings, async (site, receiver) => {
      const writing = write(site, 'restart', 8, LASTS_MS);
      const until = Date.now() + LASTS_MS * 0.8;
      let restarts = 0;
      while (Date.now() < until) {
        await sleep(5000);
        server.stop(restarts % 2 === 0 ? 'fast' : 'immediate');
        await sleep(300);
        server.start();
        restarts += 1;
      }
      const written = await writing;
      await judge('restarts of PostgreSQL', site, receiver, 'restart', written, restarts);
    });
  });
});

const hasMysql = databases().includes('mysql');

describeIf(hasMysql, 'deadlocks', 'MariaDB or MySQL', () => {
  it('of fifty writers on MariaDB', async () => {
    const env = { DATABASE_POOL_MAX: '60' };
    await withSite({ database: 'mysql', env }, async (site, receiver) => {
      const HOT = 6;
      await site.evaluate(async ({ strapi }, count) => {
        for (let row = 0; row < count; row += 1) {
          const data = { title: `row ${row}`, handle: `hot-${row}` };
          await strapi.db.query('api::label.label').create({ data });
        }
      }, HOT);
      const written = await write(site, 'deadlock', 50, LASTS_MS, { hot: HOT });
      await judge('fifty writers on MariaDB', site, receiver, 'deadlock', written, 0);
      expect(written.failed).toBeGreaterThan(0);
    });
  });
});

/** Posts a record so slowly that its body takes `ms`. @returns the status of the answer */
const postSlowly = (
  url: string,
  { key, secret }: { key: string; secret: string },
  body: Buffer,
  ms: number
): Promise<number> =>
  new Promise((resolve, reject) => {
    const timestamp = String(Math.floor(Date.now() / 1000));
    const request = http.request(url, {
      method: 'POST',
      agent: false,
      headers: {
        'content-type': 'application/json',
        'content-length': body.length,
        'x-pos-key': key,
        'x-pos-timestamp': timestamp,
        'x-pos-signature': signBody(secret, timestamp, body),
      },
    });
    request.once('error', reject);
    request.once('response', (answer) => {
      answer.resume();
      resolve(Number(answer.statusCode));
    });
    const PARTS = 20;
    const size = Math.ceil(body.length / PARTS);
    let at = 0;
    const timer = setInterval(() => {
      request.write(body.subarray(at, at + size));
      at += size;
      if (at < body.length) return;
      clearInterval(timer);
      request.end();
    }, ms / PARTS);
  });

const slowTills = (database: DatabaseKind): void => {
  it(`two hundred at once, on ${database}`, async () => {
    await withSite({ database }, async (site) => {
      const TILLS = 200;
      await createItem(site, 'SLOW', 10_000);
      const tills = await Promise.all(Array.from({ length: 20 }, () => createTill(site)));
      const quick = await createTill(site);
      const bodies = Array.from({ length: TILLS }, (_none, n) =>
        Buffer.from(JSON.stringify(saleBody([['SLOW', 1]], { external_id: `slow-${n}` })))
      );
      const started = Date.now();
      let open = true;
      const slow = Promise.all(
        bodies.map((body, n) =>
          postSlowly(`${site.url}${BASE}/sale`, tills[n % tills.length]!, body, 15_000)
        )
      ).finally(() => {
        open = false;
      });
      const took: number[] = [];
      while (open) {
        const at = Date.now();
        expect((await quick.sale([['SLOW', 1]])).status).toBe(202);
        took.push(Date.now() - at);
        await sleep(100);
      }
      expect(new Set(await slow)).toEqual(new Set([202]));
      await allProcessed(site);
      const sold = TILLS + took.length;
      expect(await levelOf(site, 'SLOW')).toBe(10_000 - sold);
      const figures = {
        'slow tills': TILLS,
        'quick sales': took.length,
        'ms for the slowest quick one': Math.max(...took),
        seconds: Math.round((Date.now() - started) / 1000),
      };
      say(`slow tills on ${database}`, figures);
      expect(Math.max(...took)).toBeLessThan(5000);
    });
  });
};

describe('slow tills', () => {
  for (const database of databases()) slowTills(database);
});

type Engine = 'database' | 'bullmq';

const killEveryThreeSeconds = async (database: DatabaseKind, engine: Engine): Promise<void> => {
  const redis = engine === 'bullmq' ? await createRedis() : null;
  await redis?.start();
  const options = { webhooks: WEBHOOKS, ...(redis && { scheduler: { engine, redis: redis.url } }) };
  try {
    await withSite({ database, options }, async (site, receiver) => {
      const until = Date.now() + LASTS_MS;
      let times = 0;
      while (Date.now() < until) {
        const writing = write(site, `kill-${times}`, 4, 60_000).catch(() => undefined);
        await sleep(3000);
        await site.kill();
        await writing;
        await site.restart();
        times += 1;
      }
      // What it had acknowledged is gone with each process: the rows say what was committed.
      const nothing = { acked: [], failed: 0 };
      const what = `${times} kills, ${engine} on ${database}`;
      await judge(what, site, receiver, 'kill', nothing, times);
    });
  } finally {
    await redis?.close();
  }
};

const engines: Engine[] = ['database', ...(hasRedis() ? ['bullmq' as const] : [])];

describe.each(engines)('kill -9 every three seconds, with the engine %s', (engine) => {
  it.each(databases())('on %s', (database) => killEveryThreeSeconds(database, engine));
});
