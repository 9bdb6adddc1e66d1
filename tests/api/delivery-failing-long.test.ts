import { describeEach, anyDatabase } from '../support/databases';
import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import {
  countRows,
  createWebhook,
  getWebhook,
  sql,
  testWebhook,
  updateWebhook,
} from './delivery-support';

/** Events as they come on a busy site: faster than one slot can try them. */
const keepSending = (site: Site): Promise<unknown> =>
  site.evaluate(({ strapi, state }) => {
    state.load = setInterval(() => {
      strapi
        .service('plugin::switchboard.events')
        .send('order.placed', {})
        .catch(() => {});
    }, 40);
  });
const stopSending = (site: Site): Promise<unknown> =>
  site.evaluate(({ state }) => clearInterval(state.load));

describeEach(anyDatabase(), 'a busy webhook whose receiver hangs', (database) => {
  let site: Site;
  let receiver: Receiver;
  const start = async (webhooks: Record<string, unknown>) => {
    receiver = await startReceiver({ hang: true });
    site = await startSite({
      database,
      options: {
        webhooks: { timeoutMs: 200, pollSeconds: 1, concurrencyPerWebhook: 4, ...webhooks },
      },
    });
  };
  afterEach(async () => {
    await stopSending(site).catch(() => {});
    await receiver?.close();
    await site?.stop();
  }, 60_000);

  it('has its retries tried among the first tries, so that deliveries end failed and are counted', async () => {
    await start({ retryScheduleSeconds: [1], disableAfterFailures: 3 });
    const { id } = await createWebhook(site, receiver.url);
    await keepSending(site);
    await waitFor(
      async () => !(await getWebhook(site, id)).active,
      60_000,
      'it to be switched off'
    );
    expect((await getWebhook(site, id)).disabled_reason).toContain('3 failed deliveries in a row');
    // It never had more than one slot once it failed, and what was due first went first.
    const tried = await sql<{ id: number }>(
      site,
      'SELECT id FROM switchboard_deliveries WHERE tries > 0 ORDER BY id'
    );
    const untried = await sql<{ id: number }>(
      site,
      'SELECT id FROM switchboard_deliveries WHERE tries = 0 ORDER BY id'
    );
    expect(Number(tried.at(-1)?.id)).toBeLessThan(Number(untried[0]?.id));
  }, 180_000);

  it('is switched off when no attempt has succeeded for too long, with at least 20 failed', async () => {
    // 3.6 seconds; no delivery ends in this time.
    await start({ disableAfterFailingHours: 0.001 });
    await site.evaluate(({ strapi, state }) => {
      state.announced = [];
      strapi.eventHub.on('switchboard.webhook.disabled', async ({ webhook }: never) => {
        state.announced.push(webhook);
      });
    });
    const { id } = await createWebhook(site, receiver.url);
    // A test is no attempt of a delivery: it neither counts nor resets.
    await testWebhook(site, id);
    const [untouched] = await sql<{ failed_attempts: number }>(
      site,
      'SELECT failed_attempts FROM switchboard_webhooks'
    );
    expect(Number(untouched?.failed_attempts)).toBe(0);
    await keepSending(site);
    await waitFor(
      async () => !(await getWebhook(site, id)).active,
      60_000,
      'it to be switched off'
    );
    await stopSending(site);
    const webhook = await getWebhook(site, id);
    expect(webhook.disabled_reason).toBe(
      'Switched off because no attempt succeeded for 0.001 hours.'
    );
    expect(webhook.disabled_at).toMatch(/\+00:00$/);
    expect(webhook.consecutive_failures).toBe(0);
    const announced = await site.control<{ id: number }[]>('state', { key: 'announced' });
    expect(announced.filter((one) => one.id === id)).toHaveLength(1);
    expect(site.log()).toContain('no attempt succeeded for 0.001 hours');
    const failed = await countRows(site, 'tries > 0');
    expect(failed).toBeGreaterThanOrEqual(20);
    expect(await countRows(site, "status = 'failed' AND is_test = ?", [false])).toBe(0);

    // Switched on again the count is 0, and one that succeeds leaves nothing behind.
    receiver.respond({});
    await updateWebhook(site, id, { active: true });
    await waitFor(async () => (await countRows(site, "status = 'sent'")) > 20, 30_000);
    const [row] = await sql<{ failed_attempts: number; failing_since: number | null }>(
      site,
      'SELECT failed_attempts, failing_since FROM switchboard_webhooks'
    );
    expect(row).toEqual({ failed_attempts: 0, failing_since: null });
    expect((await getWebhook(site, id)).active).toBe(true);
  }, 180_000);
});

describeEach(anyDatabase(), 'a webhook of a database that an earlier version made', (database) => {
  let site: Site;
  let receiver: Receiver;
  beforeAll(async () => {
    receiver = await startReceiver({ status: 500 });
    site = await startSite({
      database,
      options: { webhooks: { disableAfterFailingHours: 0.0001 } },
    });
  }, 120_000);
  afterAll(async () => {
    await receiver?.close();
    await site?.stop();
  }, 60_000);

  it('counts from nothing', async () => {
    const { id } = await createWebhook(site, receiver.url);
    await sql(site, 'UPDATE switchboard_webhooks SET failed_attempts = NULL, failing_since = NULL');
    await site.evaluate(async ({ strapi }) => {
      for (let n = 0; n < 40; n += 1) {
        await strapi.service('plugin::switchboard.events').send('order.placed', { n });
        await new Promise((resolve) => setTimeout(resolve, 30));
      }
    });
    await waitFor(
      async () => !(await getWebhook(site, id)).active,
      30_000,
      'it to be switched off'
    );
  }, 60_000);
});
