import { type DatabaseKind, databases, describeEach } from '../support/databases';
import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import {
  countRows,
  createWebhook,
  listDeliveries,
  removeWebhooks,
  retryDelivery,
  sql,
  testWebhook,
} from './delivery-support';

jest.setTimeout(180_000);

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

interface Counts {
  sent: number;
  failed: number;
  endedSent: number;
  endedFailed: number;
  answered: number;
}

/** By webhook, what the rollups say of all hours together. */
const rolled = async (site: Site): Promise<Record<number, Counts>> => {
  const rows = await sql<Record<string, number | string>>(
    site,
    'SELECT * FROM switchboard_delivery_rollups'
  );
  const found: Record<number, Counts> = {};
  for (const row of rows) {
    const counts = (found[Number(row.webhook_id)] ??= {
      sent: 0,
      failed: 0,
      endedSent: 0,
      endedFailed: 0,
      answered: 0,
    });
    counts.sent += Number(row.sent);
    counts.failed += Number(row.failed);
    counts.endedSent += Number(row.ended_sent);
    counts.endedFailed += Number(row.ended_failed);
    for (const [name, value] of Object.entries(row))
      if (name.startsWith('span_')) counts.answered += Number(value);
  }
  return found;
};

/** By webhook, what the log says; tests left out. */
const logged = async (site: Site, ids: readonly number[]): Promise<Record<number, Counts>> => {
  const found: Record<number, Counts> = {};
  const tests = await sql<{ id: number }>(
    site,
    'SELECT id FROM switchboard_deliveries WHERE is_test = ?',
    [true]
  );
  const areTests = new Set(tests.map(({ id }) => Number(id)));
  for (const id of ids) {
    const pages = await Promise.all(
      [1, 2].map((page) => listDeliveries(site, id, `?per_page=100&page=${page}`))
    );
    const deliveries = pages.flat().filter((one) => !areTests.has(one.id));
    const attempts = deliveries.flatMap((one) => one.attempts);
    if (attempts.length === 0) continue;
    const sent = attempts.filter(({ error }) => error === null).length;
    found[id] = {
      sent,
      failed: attempts.length - sent,
      endedSent: sent,
      endedFailed: deliveries.filter(({ status }) => status === 'failed').length,
      answered: attempts.filter(({ answer }) => answer !== null).length,
    };
  }
  return found;
};

const publish = (site: Site, count: number) =>
  site.evaluate(async ({ strapi }, total) => {
    const events = strapi.service('plugin::switchboard.events');
    for (let n = 0; n < total; n += 1) await events.send('contact.created', { n });
  }, count);

const finished = (site: Site) =>
  waitFor(
    async () => (await countRows(site, 'status = ?', ['pending'])) === 0,
    60_000,
    'all deliveries to end'
  );

/** Has the database refuse an attempt whose answer says so. */
const REFUSE: Record<DatabaseKind, string> = {
  sqlite: `CREATE TRIGGER refuse BEFORE INSERT ON switchboard_attempts WHEN NEW.answer_body = 'refuse'
    BEGIN SELECT RAISE(ABORT, 'refused'); END`,
  postgres: `ALTER TABLE switchboard_attempts ADD CONSTRAINT refuse CHECK (answer_body <> 'refuse')`,
  mysql: `ALTER TABLE switchboard_attempts ADD CONSTRAINT refuse CHECK (answer_body <> 'refuse')`,
};
const ACCEPT: Record<DatabaseKind, string> = {
  sqlite: 'DROP TRIGGER refuse',
  postgres: 'ALTER TABLE switchboard_attempts DROP CONSTRAINT refuse',
  mysql: 'ALTER TABLE switchboard_attempts DROP CONSTRAINT refuse',
};

describeEach(databases(), 'hourly figures of deliveries', (database) => {
  let site: Site;
  let receiver: Receiver;

  beforeAll(async () => {
    receiver = await startReceiver();
    site = await startSite({
      database,
      options: {
        webhooks: { retryScheduleSeconds: [1], pollSeconds: 1, disableAfterFailures: 10_000 },
      },
    });
  }, 120_000);
  afterAll(async () => {
    await receiver?.close();
    await site?.stop();
  }, 60_000);
  beforeEach(() => receiver.respond({}));
  afterEach(() => removeWebhooks(site));

  it('count every attempt once, on two nodes too, and no test', async () => {
    // Of two processes on one SQLite file one may find it locked.
    const other = database === 'sqlite' ? null : await site.sibling();
    try {
      const ids: number[] = [];
      for (let n = 0; n < 3; n += 1) ids.push((await createWebhook(site, receiver.url)).id);
      receiver.respond((_request, index) => {
        if (index % 7 === 0) return { close: 'before' };
        return index % 3 === 0 ? { status: 500 } : {};
      });
      await Promise.all([publish(site, 25), publish(other ?? site, 25)]);
      for (const id of ids) await testWebhook(site, id);
      await finished(site);
      const before = await rolled(site);
      expect(before).toEqual(await logged(site, ids));
      expect(before[ids[1]!]!.failed).toBeGreaterThan(5);

      // By hand, what was given up may still arrive; it has ended twice then.
      receiver.respond({});
      const failed = await listDeliveries(site, ids[0]!, '?status=failed');
      const given = failed.filter(({ tries }) => tries === 2).slice(0, 3);
      for (const { id } of given) await retryDelivery(site, id);
      const { sent, endedSent, endedFailed } = before[ids[0]!]!;
      expect((await rolled(site))[ids[0]!]).toMatchObject({
        sent: sent + given.length,
        endedSent: endedSent + given.length,
        endedFailed,
      });
      await removeWebhooks(site);
      expect(await rolled(site)).toEqual({});
    } finally {
      await other?.stop();
    }
  });

  it('are right where one row of a batch is refused, and the batch is split', async () => {
    await sql(site, REFUSE[database]);
    const { id } = await createWebhook(site, receiver.url);
    receiver.respond((_request, index) => ({ body: index % 10 === 3 ? 'refuse' : 'ok' }));
    await publish(site, 50);
    await finished(site);
    await sql(site, ACCEPT[database]);
    expect(await rolled(site)).toEqual(await logged(site, [id]));
    expect((await rolled(site))[id]).toMatchObject({ sent: 50, endedSent: 50, answered: 50 });
  });

  it('are kept for 31 days, longer where the log is', async () => {
    const { id } = await createWebhook(site, receiver.url);
    const now = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;
    const young = now - 30 * DAY_MS;
    for (const hour of [now - 40 * DAY_MS, now - 32 * DAY_MS, young]) {
      await sql(site, 'INSERT INTO switchboard_delivery_rollups (webhook_id, hour) VALUES (?, ?)', [
        id,
        hour,
      ]);
    }
    const hours = async (): Promise<number[]> =>
      (
        await sql<{ hour: number | string }>(
          site,
          'SELECT hour FROM switchboard_delivery_rollups WHERE webhook_id = ? ORDER BY hour',
          [id]
        )
      ).map(({ hour }) => Number(hour));
    const runRetention = () =>
      site.evaluate(async ({ strapi }) => {
        const job = strapi.cron.jobs.find(
          ({ name }: { name: string }) => name === 'switchboardDeliveryRetention'
        );
        await job.job.invoke(new Date());
      });
    await site.evaluate(({ strapi, state }) => {
      state.days = 45;
      strapi.hook('service_crm_webhook_log_days').register(() => state.days);
    });
    await runRetention();
    expect(await hours()).toHaveLength(3);
    await site.evaluate(({ state }) => {
      state.days = 7;
    });
    await runRetention();
    expect(await hours()).toEqual([young]);
  });
});
