import type { Delivery, ManagedWebhook } from '../../shared/contracts/webhooks';
import { describeEach, databases, itOnce } from '../support/databases';
import type { Receiver } from '../support/receiver';
import type { Site } from '../support/site';
import { waitFor } from '../support/wait';
import {
  countRows,
  createWebhook,
  getWebhook,
  insertDeliveries,
  listDeliveries,
  sql,
  testWebhook,
  updateWebhook,
  useSiteAndReceiver,
} from './delivery-support';
import { insertFailing } from './recoveries-support';

describeEach(databases(), 'what waits when a webhook is switched on', (database) => {
  let site: Site;
  let receiver: Receiver;
  useSiteAndReceiver({ database, webhooks: { pollSeconds: 1 } }, (made, receiving) => {
    site = made;
    receiver = receiving;
  });

  const makeWaiting = async (): Promise<number> => {
    const { id } = await createWebhook(site, receiver.url, { active: false });
    await insertDeliveries(site, id, 3, { created_at: Date.parse('2026-01-02T03:04:05Z') });
    await insertFailing(site, id, 2);
    return id;
  };

  it.each([{}, { waiting: 'send' }])('is sent with %j', async (choice) => {
    const id = await makeWaiting();
    const off = await getWebhook(site, id);
    expect(off.health).toMatchObject({
      state: 'off',
      waiting: 3,
      failing: 2,
      waiting_since: '2026-01-02T03:04:05.000+00:00',
    });
    const on = await updateWebhook(site, id, { active: true, ...choice });
    expect([on.status, on.body.health.waiting, on.body.health.waiting_since]).toEqual([
      200,
      3,
      '2026-01-02T03:04:05.000+00:00',
    ]);
    await receiver.waitFor(3);
    await waitFor(
      async () => (await countRows(site, "webhook_id = ? AND status = 'sent'", [id])) === 3
    );
    expect(await countRows(site, "webhook_id = ? AND status = 'pending'", [id])).toBe(2);
  });

  it('ends as discarded, counts for nothing, and is not sent', async () => {
    const id = await makeWaiting();
    await insertDeliveries(site, id, 1200);
    await testWebhook(site, id);
    receiver.clear();
    const on = await site.request<ManagedWebhook>('PUT', `/api/fw-crm/v1/webhooks/${id}`, {
      body: { active: true, waiting: 'discard' },
    });
    expect(on.status).toBe(200);
    expect(on.body).toMatchObject({
      active: true,
      consecutive_failures: 0,
      health: { waiting: 0, failing: 0, waiting_since: null },
    });
    const all = await listDeliveries(site, id, '?per_page=100&status=failed');
    const ended = all.filter((one): one is Delivery => one.state === 'failed');
    expect(new Set(ended.map(({ error }) => error))).toEqual(new Set(['discarded']));
    expect(ended[0]).toMatchObject({ next_attempt_at: null, finished_at: expect.any(String) });
    expect(
      await countRows(site, "webhook_id = ? AND error = 'discarded' AND status = 'failed'", [id])
    ).toBe(1205);
    await receiver.settle(1500);
    expect(receiver.requests).toEqual([]);
    const counted = await sql<{ n: number | string }>(
      site,
      'SELECT COUNT(*) AS n FROM switchboard_delivery_rollups WHERE webhook_id = ?',
      [id]
    );
    expect(Number(counted[0]?.n)).toBe(0);
    const row = await sql<Record<string, unknown>>(
      site,
      'SELECT failed_attempts, unwell_since FROM switchboard_webhooks WHERE id = ?',
      [id]
    );
    expect([Number(row[0]?.failed_attempts), row[0]?.unwell_since]).toEqual([0, null]);
  });

  it('lets an attempt end that was under way when it was switched off', async () => {
    const { id } = await createWebhook(site, receiver.url);
    let hold = true;
    receiver.respond(async () => {
      await waitFor(() => !hold);
      return { status: 200 };
    });
    await insertDeliveries(site, id, 1);
    await receiver.waitFor(1);
    await updateWebhook(site, id, { active: false });
    await insertDeliveries(site, id, 2);
    const switching = updateWebhook(site, id, { active: true, waiting: 'discard' });
    await waitFor(
      async () => (await countRows(site, "webhook_id = ? AND error = 'discarded'", [id])) === 2
    );
    hold = false;
    expect((await switching).status).toBe(200);
    const states = (await listDeliveries(site, id)).map(({ state }) => state).sort();
    expect(states).toEqual(['failed', 'failed', 'sent']);
    expect(receiver.requests).toHaveLength(1);
  });

  itOnce(database)('is left alone where nothing is switched on', async () => {
    const id = await makeWaiting();
    const renamed = await updateWebhook(site, id, { name: 'other', waiting: 'discard' });
    expect(renamed.status).toBe(200);
    expect(await countRows(site, "webhook_id = ? AND status = 'pending'", [id])).toBe(5);
  });

  itOnce(database).each([null, 'later', true, 1])(
    'refuses %j, and switches nothing on',
    async (waiting) => {
      const id = await makeWaiting();
      for (const method of ['PUT', 'PATCH']) {
        const answer = await site.request(method, `/api/fw-crm/v1/webhooks/${id}`, {
          body: { active: true, waiting },
        });
        expect(answer.status).toBe(400);
        expect(answer.body.error.details.errors[0].path).toEqual(['waiting']);
      }
      expect((await getWebhook(site, id)).active).toBe(false);
    }
  );
});
