import type { CursorPage, Delivery, FailureCauses } from '../../shared/contracts/webhooks';
import { describeEach, anyDatabase } from '../support/databases';
import type { Receiver } from '../support/receiver';
import type { Site } from '../support/site';
import { sleep } from '../support/wait';
import {
  createWebhook,
  listDeliveries,
  retryDelivery,
  send,
  testWebhook,
  updateWebhook,
  useSiteAndReceiver,
  waitForDelivery,
} from './delivery-support';

const API = '/api/fw-crm/v1';

describeEach(anyDatabase(), 'sending by hand', (database) => {
  let site: Site;
  let receiver: Receiver;
  useSiteAndReceiver(
    { database, webhooks: { retryScheduleSeconds: [3, 3], timeoutMs: 30_000, pollSeconds: 1 } },
    (...started) => {
      [site, receiver] = started;
    }
  );

  it('a pending delivery is its next try, now: the automatic one is not doubled', async () => {
    const { id } = await createWebhook(site, receiver.url);
    receiver.enqueue({ status: 500 });
    await send(site, 'order.placed', {});
    const pending = await waitForDelivery(site, id, ({ tries }) => tries === 1);
    const answer = await retryDelivery(site, pending.id);
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({ id: pending.id, status: 'sent', tries: 2, error: null });
    expect(answer.body.attempts.map(({ manual }) => manual)).toEqual([false, true]);
    await sleep(3500);
    expect(receiver.requests).toHaveLength(2);
  });

  it('a pending delivery that fails again keeps its schedule: it is due when it was', async () => {
    const { id } = await createWebhook(site, receiver.url);
    receiver.respond({ status: 500 });
    await send(site, 'order.placed', {});
    const pending = await waitForDelivery(site, id, ({ tries }) => tries === 1);
    const { body } = await retryDelivery(site, pending.id);
    expect(body).toMatchObject({
      ...{ status: 'pending', tries: 2, next_attempt_at: pending.next_attempt_at },
    });
    // Three by the schedule of this site, and the one by hand.
    await waitForDelivery(site, id, ({ status, tries }) => status === 'failed' && tries === 4);
    expect(receiver.requests).toHaveLength(4);
  });

  it('keeps a delivery in the lists and causes of its webhook while the attempt is under way', async () => {
    const { id } = await createWebhook(site, receiver.url);
    receiver.respond({ status: 500 });
    await send(site, 'order.placed', {});
    const { id: row } = await waitForDelivery(site, id, ({ status }) => status === 'failed');
    receiver.clear();
    receiver.respond({ status: 500, delayMs: 1500 });
    const retried = retryDelivery(site, row);
    await receiver.waitFor(1);
    const log = `${API}/webhook-deliveries`;
    const causes = await site.request<FailureCauses>('GET', `${log}/causes?webhook=${id}`);
    expect(causes.body.data).toMatchObject([{ cause: 'http_500', webhook_id: id, count: 1 }]);
    const all = await site.request<FailureCauses>('GET', `${log}/causes?cause=http_500`);
    expect(all.body.data).toMatchObject([{ webhook_id: id, count: 1 }]);
    for (const query of [`webhook=${id}&state=failed`, 'state=failed', 'state=failed,sent']) {
      const found = await site.request<CursorPage<Delivery>>('GET', `${log}?${query}`);
      expect(found.body.data.map((one) => one.id)).toEqual([row]);
    }
    await retried;
  }, 30_000);

  it('without end leaves the first seven attempts and the last thirteen in the log', async () => {
    const { id } = await createWebhook(site, receiver.url);
    await send(site, 'order.placed', {});
    const sent = await waitForDelivery(site, id, ({ status }) => status === 'sent');
    const made = [sent.attempts[0]!.at];
    for (let time = 0; time < 24; time += 1) {
      const { body } = await retryDelivery(site, sent.id);
      made.push(body.attempts.at(-1)!.at);
    }
    const [kept] = await listDeliveries(site, id);
    expect(kept!.tries).toBe(25);
    expect(kept!.attempts.map(({ at }) => at)).toEqual([...made.slice(0, 7), ...made.slice(-13)]);
  });

  it('answers 409 while an attempt of that delivery is under way, and sends nothing twice', async () => {
    const { id } = await createWebhook(site, receiver.url);
    receiver.respond({ delayMs: 1000 });
    await send(site, 'order.placed', {});
    await receiver.waitFor(1);
    const [running] = await listDeliveries(site, id);
    const answer = await retryDelivery(site, running!.id);
    expect(answer.status).toBe(409);
    await waitForDelivery(site, id, ({ status }) => status === 'sent');
    expect(receiver.requests).toHaveLength(1);
    receiver.clear();
    const [first, second] = await Promise.all([
      retryDelivery(site, running!.id),
      retryDelivery(site, running!.id),
    ]);
    expect([first.status, second.status].sort()).toEqual([200, 409]);
    expect(receiver.requests).toHaveLength(1);
  });

  it('answers 404 for a delivery that is not there', async () => {
    expect((await retryDelivery(site, 999_999)).status).toBe(404);
    const odd = await site.request('POST', '/api/fw-crm/v1/webhook-deliveries/abc/retry');
    expect(odd.status).toBe(404);
  });

  it('a test is a ping that is logged, never tried again, and works on an inactive webhook', async () => {
    const { id } = await createWebhook(site, receiver.url, { active: false });
    receiver.respond({ status: 503, body: 'closed today' });
    const answer = await testWebhook(site, id);
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      ok: false,
      response_code: 503,
      error: 'http_503',
      duration_ms: expect.any(Number),
      delivery_id: expect.any(String),
    });
    expect(receiver.requests[0]!.json).toMatchObject({
      id: answer.body.delivery_id,
      event: 'ping',
      data: { webhook_id: id, message: expect.any(String) },
    });
    expect(await listDeliveries(site, id)).toMatchObject([
      {
        delivery_id: answer.body.delivery_id,
        event: 'ping',
        status: 'failed',
        tries: 1,
        next_attempt_at: null,
      },
    ]);
    await updateWebhook(site, id, { active: true });
    await sleep(1500);
    expect(receiver.requests).toHaveLength(1);
    receiver.respond({ status: 204 });
    expect((await testWebhook(site, id)).body).toMatchObject({
      ok: true,
      response_code: 204,
      error: null,
    });
  });
});
