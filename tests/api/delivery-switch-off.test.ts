import { describeEach, databases, itOnce } from '../support/databases';
import type { Receiver } from '../support/receiver';
import type { Site } from '../support/site';
import { sleep, waitFor } from '../support/wait';
import {
  countRows,
  createWebhook,
  getWebhook,
  retryDelivery,
  send,
  testWebhook,
  updateWebhook,
  useSiteAndReceiver,
  waitForDelivery,
} from './delivery-support';

const THRESHOLD = 4;

describeEach(databases(), 'deliveries that fail in a row', (database) => {
  let site: Site;
  let receiver: Receiver;
  useSiteAndReceiver(
    {
      database,
      webhooks: {
        // Two tries a delivery.
        retryScheduleSeconds: [1],
        disableAfterFailures: THRESHOLD,
        timeoutMs: 30_000,
        pollSeconds: 1,
      },
      answers: { status: 500 },
    },
    (...started) => {
      [site, receiver] = started;
    }
  );
  beforeAll(() =>
    site.evaluate(({ strapi, state }) => {
      state.announced = [];
      strapi.eventHub.on('switchboard.webhook.disabled', async ({ webhook }: never) => {
        state.announced.push(webhook);
      });
    })
  );

  const sendMany = async (count: number) => {
    for (let n = 0; n < count; n += 1) await send(site, 'order.placed', { n });
  };
  const finished = (id: number, status: string, count: number) =>
    waitFor(
      async () => (await countRows(site, 'webhook_id = ? AND status = ?', [id, status])) === count,
      30_000,
      `${count} ${status} deliveries`
    );

  it('are counted as deliveries, not as tries, and switch the webhook off at the threshold', async () => {
    const { id } = await createWebhook(site, receiver.url);
    await sendMany(THRESHOLD - 1);
    await finished(id, 'failed', THRESHOLD - 1);
    expect(receiver.requests).toHaveLength(2 * (THRESHOLD - 1));
    expect(await getWebhook(site, id)).toMatchObject({
      active: true,
      consecutive_failures: THRESHOLD - 1,
      disabled_reason: null,
    });
    await sendMany(1);
    await finished(id, 'failed', THRESHOLD);
    expect(await getWebhook(site, id)).toMatchObject({
      active: false,
      consecutive_failures: THRESHOLD,
      disabled_reason: expect.stringContaining(`${THRESHOLD} failed deliveries in a row`),
      disabled_because: { code: 'failed_deliveries', values: { deliveries: THRESHOLD } },
      disabled_at: expect.stringMatching(/\+00:00$/),
    });
    // Announced after the commit that is seen above, so it may be a moment later.
    const announced = () => site.control<{ id: number }[]>('state', { key: 'announced' });
    const ofThis = async () => (await announced()).filter((webhook) => webhook.id === id);
    await waitFor(async () => (await ofThis()).length > 0);
    const mine = await ofThis();
    expect(mine).toHaveLength(1);
    expect(mine[0]).not.toHaveProperty('secret');
    expect(await send(site, 'order.placed', {})).toBe(0);
  });

  itOnce(database)('start over after one that was sent', async () => {
    const { id } = await createWebhook(site, receiver.url);
    await sendMany(THRESHOLD - 1);
    await finished(id, 'failed', THRESHOLD - 1);
    receiver.respond({});
    await sendMany(1);
    await finished(id, 'sent', 1);
    expect((await getWebhook(site, id)).consecutive_failures).toBe(0);
    receiver.respond({ status: 500 });
    await sendMany(THRESHOLD - 1);
    await finished(id, 'failed', 2 * (THRESHOLD - 1));
    expect(await getWebhook(site, id)).toMatchObject({
      active: true,
      consecutive_failures: THRESHOLD - 1,
    });
  });

  itOnce(database)('are not counted again by retries by hand, nor are tests', async () => {
    const { id } = await createWebhook(site, receiver.url);
    await sendMany(1);
    const failed = await waitForDelivery(site, id, ({ status }) => status === 'failed');
    for (let n = 0; n < THRESHOLD; n += 1) {
      expect((await retryDelivery(site, failed.id)).body.status).toBe('failed');
      expect((await testWebhook(site, id)).body.ok).toBe(false);
    }
    expect(await getWebhook(site, id)).toMatchObject({ active: true, consecutive_failures: 1 });
  });

  it('leave what still waits in place; switched on, it goes out and the count is 0', async () => {
    const { id } = await createWebhook(site, receiver.url);
    await sendMany(THRESHOLD);
    await finished(id, 'failed', THRESHOLD);
    expect((await getWebhook(site, id)).active).toBe(false);
    // One that was under way when the webhook was switched off is still pending.
    await site.evaluate(async ({ strapi }, webhookId) => {
      const at = Date.now() - 1000;
      const [row] = await strapi.db
        .connection('switchboard_deliveries')
        .where({ webhook_id: webhookId })
        .limit(1);
      await strapi.db.connection('switchboard_deliveries').where({ id: row.id }).update({
        status: 'pending',
        tries: 1,
        next_attempt_at: at,
        finished_at: null,
      });
      await strapi.db
        .connection('switchboard_delivery_queue')
        .where({ id: row.id })
        .update({ state: 0, section: 1, due_at: at });
    }, id);
    const seen = receiver.requests.length;
    await sleep(1500);
    expect(receiver.requests).toHaveLength(seen);
    receiver.respond({});
    const updated = await updateWebhook(site, id, { active: true });
    expect(updated.body).toMatchObject({
      active: true,
      consecutive_failures: 0,
      disabled_reason: null,
      disabled_at: null,
    });
    await finished(id, 'sent', 1);
    expect((await getWebhook(site, id)).consecutive_failures).toBe(0);
  });

  it('are each counted once when many end at the same moment', async () => {
    const { id } = await createWebhook(site, receiver.url);
    await site.evaluate(async ({ strapi }) => {
      const events = strapi.service('plugin::switchboard.events');
      await strapi.db.transaction(async () => {
        for (let n = 0; n < 3; n += 1) await events.send('order.placed', { n });
      });
    });
    await finished(id, 'failed', 3);
    expect(await getWebhook(site, id)).toMatchObject({ active: true, consecutive_failures: 3 });
  });
});
