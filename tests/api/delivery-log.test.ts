import { databases, describeEach } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import {
  countRows,
  createWebhook,
  insertDeliveries,
  listDeliveries,
  removeWebhook,
  removeWebhooks,
  retryDelivery,
  sql,
} from './delivery-support';

const MILLION = 1_000_000;
/** A file of a million takes longer to write than all else here; what reads it all shows sooner, too. */
const MANY = { sqlite: MILLION / 5, postgres: MILLION };
const DAY_MS = 86_400_000;

const runRetention = (site: Site) =>
  site.evaluate(async ({ strapi }) => {
    const job = strapi.cron.jobs.find(
      ({ name }: { name: string }) => name === 'switchboardDeliveryRetention'
    );
    await job.job.invoke(new Date());
  });

/** Finished deliveries by one statement; MariaDB has its own sequence engine. */
const SERIES = {
  sqlite: (count: number) =>
    `WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < ${count})`,
  postgres: (count: number) => `WITH s AS (SELECT generate_series(1, ${count}) AS n)`,
};

const fillLog = (site: Site, kind: 'sqlite' | 'postgres', webhookId: number, count: number) =>
  sql(
    site,
    `${SERIES[kind](count)} INSERT INTO switchboard_deliveries
       (document_id, webhook_id, event, status, tries, is_test, created_at, finished_at, url, body)
     SELECT 'w${webhookId}-' || n, ${webhookId}, 'load.test',
       CASE WHEN n % 10 = 0 THEN 'failed' ELSE 'sent' END, 1, ${kind === 'postgres' ? 'false' : '0'},
       ${Date.now()}, ${Date.now()}, 'http://127.0.0.1/', '{}' FROM s`
  ).then(() =>
    sql(
      site,
      `INSERT INTO switchboard_delivery_queue (id, group_id, state, due_at, section, event, created_at)
       SELECT id, webhook_id, 3, created_at, 2, event, created_at
       FROM switchboard_deliveries WHERE webhook_id = ${webhookId} AND status = 'failed'`
    )
  );

describeEach(databases(), 'the log’s retention', (database) => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({ database });
  }, 120_000);
  afterAll(() => site?.stop(), 60_000);

  it('removes finished deliveries after 30 days in batches, and never a pending one', async () => {
    const { id } = await createWebhook(site, 'http://127.0.0.1:9/', { active: false });
    const old = Date.now() - 31 * DAY_MS;
    const young = Date.now() - 29 * DAY_MS;
    const ofOld = { created_at: old, finished_at: old };
    await insertDeliveries(site, id, 1700, { status: 'sent', ...ofOld });
    await insertDeliveries(site, id, 20, { status: 'failed', ...ofOld });
    await insertDeliveries(site, id, 10, { status: 'sent', created_at: old, finished_at: young });
    await insertDeliveries(site, id, 10, { created_at: old, next_attempt_at: old });
    // An old one that somebody is sending again at this moment is under a lease.
    const held = { owner: 'x', leased_until: Date.now() + 600_000 };
    await insertDeliveries(site, id, 1, { status: 'failed', ...ofOld }, held);

    await sql(
      site,
      'INSERT INTO switchboard_attempts (delivery_id, webhook_id) SELECT id, webhook_id FROM switchboard_deliveries'
    );
    const deletes = await site.evaluate(({ strapi, state }) => {
      state.deletes = [];
      strapi.db.connection.on('query', ({ sql: statement, bindings }: never) => {
        if (/^delete from .*switchboard_deliveries/i.test(statement)) {
          state.deletes.push((bindings as unknown[]).length);
        }
      });
      return true;
    });
    expect(deletes).toBe(true);
    await runRetention(site);
    await waitFor(async () => (await countRows(site, 'webhook_id = ?', [id])) === 21, 30_000);
    expect(await countRows(site, 'webhook_id = ? AND status = ?', [id, 'pending'])).toBe(10);
    expect(await countRows(site, 'finished_at = ?', [young])).toBe(10);
    const [attempts] = await sql<{ number: number | string }>(
      site,
      'SELECT count(*) AS number FROM switchboard_attempts'
    );
    expect(Number(attempts?.number)).toBe(21);
    const batches = await site.control<number[]>('state', { key: 'deletes' });
    expect(batches.length).toBeGreaterThanOrEqual(4);
    expect(Math.max(...batches)).toBeLessThanOrEqual(1000);
    await removeWebhooks(site);
  }, 60_000);

  /** Creates a contact in a transaction that stays open while its webhook is deleted. */
  const writeWhileDeleted = async (email: string): Promise<number> => {
    const { id } = await createWebhook(site, 'http://127.0.0.1:9/', {
      events: ['contact.created'],
    });
    const writing = site.evaluate(
      async ({ strapi, state }, address, isSqlite, webhook) => {
        state.isWritten = false;
        await strapi.db.transaction(async () => {
          await strapi
            .documents('plugin::switchboard.contact')
            .create({ data: { email: address } as never });
          state.isWritten = true;
          if (isSqlite) {
            // There one connection serves all: another node deletes it, or the transaction itself.
            const executor = (await strapi.db.transaction()).get();
            await executor('switchboard_webhooks').where({ id: webhook }).delete();
            return;
          }
          await new Promise<void>((resolve) => {
            state.goOn = resolve;
          });
        });
      },
      email,
      database === 'sqlite',
      id
    );
    await waitFor(() => site.control<boolean>('state', { key: 'isWritten' }));
    if (database !== 'sqlite') {
      expect((await removeWebhook(site, id)).status).toBe(204);
      await site.evaluate(({ state }) => state.goOn());
    }
    await writing;
    return id;
  };

  const readLog = async (id: number, query = '') =>
    (
      await site.request<{ data: { webhook_id: number; state: string; error: string }[] }>(
        'GET',
        `/api/fw-crm/v1/webhook-deliveries${query}`
      )
    ).body.data.filter(({ webhook_id: webhook }) => webhook === id);

  it('ends what a write queued whose webhook was deleted while it was open', async () => {
    const id = await writeWhileDeleted('open@example.test');
    await waitFor(async () => (await readLog(id, '?state=waiting')).length === 0);
    await waitFor(async () => (await readLog(id))[0]?.state === 'failed');
    expect(await readLog(id)).toMatchObject([{ state: 'failed', error: 'webhook_deleted' }]);
    const [row] = await sql(site, 'SELECT * FROM switchboard_deliveries WHERE webhook_id = ?', [
      id,
    ]);
    expect(row).toMatchObject({ status: 'failed', next_attempt_at: null });
    expect((await retryDelivery(site, Number(row!.id))).status).toBe(404);
  });

  it('ends what an earlier version left of webhooks that are gone', async () => {
    const { id } = await createWebhook(site, 'http://127.0.0.1:9/', { active: false });
    await removeWebhook(site, id);
    await insertDeliveries(site, id, 1);
    // What waits is not shown as waiting, and is ended by whoever looks.
    expect(await readLog(id, '?state=waiting')).toEqual([]);
    expect(await readLog(id)).toMatchObject([{ state: 'failed', error: 'webhook_deleted' }]);
    // A test that nobody ended, one that is due for nobody, and one whose attempt is under way.
    await insertDeliveries(site, id, 1, { is_test: true });
    await insertDeliveries(site, id, 1, {}, { state: 2 });
    await insertDeliveries(site, id, 1, {}, { owner: 'x', leased_until: Date.now() + 600_000 });
    await runRetention(site);
    await waitFor(
      async () => (await countRows(site, "webhook_id = ? AND status = 'failed'", [id])) === 3
    );
    expect(await countRows(site, "webhook_id = ? AND status = 'pending'", [id])).toBe(1);
  });
});

describeEach(
  databases().filter((kind) => kind !== 'mysql'),
  'the log of a webhook with very many deliveries',
  (database) => {
    let site: Site;
    beforeAll(async () => {
      site = await startSite({ database });
    }, 120_000);
    afterAll(() => site?.stop(), 60_000);

    it('is paged, newest first, as fast as one with a thousand', async () => {
      if (database === 'mysql') return;
      const big = await createWebhook(site, 'http://127.0.0.1:9/', { active: false });
      const small = await createWebhook(site, 'http://127.0.0.1:9/', { active: false });
      await fillLog(site, database, big.id, MANY[database]);
      await fillLog(site, database, small.id, 1000);
      // As the database does by itself within a minute; until then it takes very many rows for a few.
      await sql(site, 'ANALYZE');
      const quickest = async (id: number, query: string): Promise<number> => {
        const times: number[] = [];
        for (let round = 0; round < 9; round += 1) {
          const start = performance.now();
          const page = await listDeliveries(site, id, query);
          times.push(performance.now() - start);
          expect(page).toHaveLength(50);
          const ids = page.map((one) => one.id);
          expect(ids).toEqual([...ids].sort((a, b) => b - a));
        }
        return Math.min(...times);
      };
      for (const query of ['', '?page=2', '?status=failed', '?status=sent&page=3']) {
        const [ofSmall, ofBig] = [await quickest(small.id, query), await quickest(big.id, query)];
        // Generous: a page that read the whole log would take hundreds of times longer.
        expect(ofBig).toBeLessThan(ofSmall * 3 + 100);
      }
    }, 240_000);
  }
);
