import { randomInt } from 'node:crypto';
import { databases, type DatabaseKind, describeEach } from '../support/databases';
import { endLeases } from '../support/leases';
import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import { sleep, waitFor } from '../support/wait';
import { arrivals, countRows, createWebhook, sql } from '../api/delivery-support';

/**
 * The sum is what the suite promises: at least 20 kills; one a database beside all other tests, in CI.
 * SOAK_KILLS: so many a database instead.
 */
const KILLS: Record<DatabaseKind, number> = { sqlite: 7, postgres: 7, mysql: 6 };
const kills = (kind: DatabaseKind): number => {
  if (process.env.SOAK_KILLS) return Number(process.env.SOAK_KILLS);
  if (process.env.CI === 'true') return 1;
  return databases().length === 1 ? 20 : databases().length === 2 ? 10 : KILLS[kind];
};

jest.setTimeout(240_000 + 20_000 * Number(process.env.SOAK_KILLS ?? 0));

/** So many are committed before a kill, however slow the machine is. */
const WRITES_BEFORE_KILL = 11;
/** So many posts of this process have arrived before each second kill: the others come before the first answers. */
const POSTS_BEFORE_KILL = 40;

const countWritten = async (site: Site, prefix: string): Promise<number> => {
  const [row] = await sql<{ count: number | string }>(
    site,
    `SELECT COUNT(*) AS count FROM labels WHERE title LIKE '${prefix}-%'`
  );
  return Number(row?.count ?? 0);
};

/** Writes with an event each, as fast as they commit, until the process is no more. */
const writeUntilKilled = (site: Site, prefix: string): Promise<unknown> =>
  site
    .evaluate(async ({ strapi }, run) => {
      const events = strapi.service('plugin::switchboard.events');
      const write = async (lane: number) => {
        for (let n = 0; n < 100_000; n += 1) {
          const title = `${run}-${lane}-${n}`;
          await strapi.db.transaction(async () => {
            await strapi.db.query('api::label.label').create({ data: { title } });
            await events.send('label.made', { title });
          });
          // As between requests. SQLite answers at once, and a loop of such answers lets no post out and no
          // answer in: thousands are written and none is sent until this process is killed.
          await new Promise(setImmediate);
        }
      };
      await Promise.all([write(0), write(1), write(2), write(3)]);
    }, prefix)
    .catch(() => {});

describeEach(databases(), 'a process killed at any moment, under load', (database) => {
  /** A single kill is of either kind. */
  const first = randomInt(2);
  let site: Site;
  let receiver: Receiver;

  beforeAll(async () => {
    receiver = await startReceiver((_post, index) => ({
      delayMs: index % 5,
      status: index % 7 === 0 ? 500 : 200,
    }));
    site = await startSite({
      database,
      options: {
        // Six quick tries, so that a receiver that fails now and then is in the picture.
        webhooks: { timeoutMs: 1000, pollSeconds: 1, retryScheduleSeconds: [1, 1, 1, 1, 1, 1] },
      },
    });
  }, 120_000);
  afterAll(async () => {
    await site?.stop();
    await receiver?.close();
  }, 60_000);

  it(`loses no event, sends none without its write, and never changes a body or an id (${kills(database)} kills)`, async () => {
    const { id } = await createWebhook(site, receiver.url, { name: 'load' });
    for (let kill = 0; kill < kills(database); kill += 1) {
      const run = `k${kill}`;
      const before = receiver.requests.length;
      const writing = writeUntilKilled(site, run);
      await waitFor(async () => (await countWritten(site, run)) >= WRITES_BEFORE_KILL, 60_000);
      if ((kill + first) % 2 === 1) await receiver.waitFor(before + POSTS_BEFORE_KILL, 60_000);
      await sleep(Math.random() * 500);
      await site.kill();
      await writing;
      // Those of earlier kills end at any moment of what follows them.
      if (kill === kills(database) - 1) await endLeases(site);
      await site.restart();
    }
    await waitFor(
      async () => (await countRows(site, 'webhook_id = ? AND status = ?', [id, 'pending'])) === 0,
      180_000,
      'all deliveries to finish'
    );

    const titles = (
      await sql<{ title: string }>(site, "SELECT title FROM labels WHERE title LIKE 'k%'")
    ).map(({ title }) => title);
    expect(titles.length).toBeGreaterThan(kills(database) * 10);
    const rows = await sql<{ document_id: string; body: string; status: string }>(
      site,
      'SELECT document_id, body, status FROM switchboard_deliveries WHERE webhook_id = ?',
      [id]
    );
    // Each committed write has its one event; no event is there without its write.
    expect(rows.map(({ body }) => JSON.parse(body).data.title).sort()).toEqual(titles.sort());
    expect(rows.filter(({ status }) => status !== 'sent')).toEqual([]);

    const byId = arrivals(receiver);
    const bodies = new Map(rows.map((row) => [row.document_id, row.body]));
    expect([...byId.keys()].filter((one) => !bodies.has(one))).toEqual([]);
    for (const [deliveryId, body] of bodies) {
      const posts = byId.get(deliveryId) ?? [];
      expect(posts.length).toBeGreaterThan(0);
      for (const post of posts) {
        expect(post.body).toBe(body);
        expect(post.json.id).toBe(deliveryId);
      }
    }
  });
});
