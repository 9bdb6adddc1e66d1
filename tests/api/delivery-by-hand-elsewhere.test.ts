import { startWorker, type Worker } from '../support/command';
import { describeEach, anyDatabase } from '../support/databases';
import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import { sleep, waitFor } from '../support/wait';
import {
  createWebhook,
  getWebhook,
  listDeliveries,
  removeWebhooks,
  retryDelivery,
  send,
  testWebhook,
  waitForDelivery,
} from './delivery-support';

/** With `POLL_SECONDS`, how long a request waits for a process that sends, on a busy machine too. */
const TIMEOUT_MS = 4000;
const POLL_SECONDS = 1;

describeEach(anyDatabase(), 'sending by hand on a node that does not send', (database) => {
  let site: Site;
  let receiver: Receiver;
  let worker: Worker | undefined;

  const openRequests = (): Promise<unknown[]> =>
    site.control('sql', {
      statement: 'SELECT id FROM switchboard_delivery_queue WHERE group_id = 2147483647',
    });

  /** Starts a worker that has sent once: until then it may take longer than a request waits. */
  const startSender = async (): Promise<Worker> => {
    worker = await startWorker(site.env(), ['--only', 'webhooks']);
    const { id } = await createWebhook(site, receiver.url, { active: false });
    await waitFor(async () => (await testWebhook(site, id)).status === 200);
    receiver.clear();
    return worker;
  };

  beforeAll(async () => {
    receiver = await startReceiver();
    const webhooks = { dispatch: false, pollSeconds: POLL_SECONDS, timeoutMs: TIMEOUT_MS };
    site = await startSite({ database, options: { webhooks } });
  }, 120_000);
  afterAll(async () => {
    await receiver?.close();
    await site?.stop();
  }, 60_000);
  beforeEach(() => {
    receiver.clear();
    receiver.respond({});
  });
  afterEach(async () => {
    await worker?.stop();
    worker = undefined;
    await removeWebhooks(site);
  }, 60_000);

  it('is done by a process that does, and answered to whoever asked', async () => {
    await startSender();
    const { id } = await createWebhook(site, receiver.url, { active: false });
    receiver.respond({ status: 503, body: 'closed today' });
    const test = await testWebhook(site, id);
    expect(test).toMatchObject({
      status: 200,
      body: { ok: false, response_code: 503, error: 'http_503', delivery_id: expect.any(String) },
    });
    expect(receiver.requests).toHaveLength(1);
    const [logged] = await listDeliveries(site, id);
    expect(logged).toMatchObject({
      delivery_id: test.body.delivery_id,
      status: 'failed',
      tries: 1,
    });

    receiver.respond({ status: 204 });
    const retry = await retryDelivery(site, logged!.id);
    expect(retry).toMatchObject({
      status: 200,
      body: { id: logged!.id, status: 'sent', tries: 2 },
    });
    expect(receiver.requests).toHaveLength(2);

    receiver.respond({ delayMs: 1000 });
    const both = await Promise.all([
      retryDelivery(site, logged!.id),
      retryDelivery(site, logged!.id),
    ]);
    expect(both.map(({ status }) => status).sort()).toEqual([200, 409]);
    expect(receiver.requests).toHaveLength(3);
    expect((await getWebhook(site, id)).active).toBe(false);
    expect(await openRequests()).toEqual([]);
  }, 120_000);

  it('without a process that sends the answer is 503 in time, and nothing is sent later', async () => {
    const { id } = await createWebhook(site, receiver.url, { events: ['task.created'] });
    await send(site, 'task.created', {});
    const [waiting] = await listDeliveries(site, id);
    const from = performance.now();
    const [test, retry] = await Promise.all([
      testWebhook(site, id),
      retryDelivery(site, waiting!.id),
    ]);
    expect(performance.now() - from).toBeGreaterThan(TIMEOUT_MS + POLL_SECONDS * 1000 - 100);
    for (const { status, body } of [test, retry]) {
      expect(status).toBe(503);
      expect(body).toMatchObject({
        data: null,
        error: { status: 503, message: expect.stringMatching(/No sending process/) },
      });
    }
    expect(await listDeliveries(site, id)).toHaveLength(1);
    worker = await startWorker(site.env(), ['--only', 'webhooks']);
    await waitForDelivery(site, id, ({ status }) => status === 'sent');
    await sleep(1500);
    expect(receiver.requests).toHaveLength(1);
    expect((await retryDelivery(site, 999_999)).status).toBe(404);
    expect((await testWebhook(site, 999_999)).status).toBe(404);
  }, 120_000);

  it('where the site is stopped meanwhile the answer is 503 at once, and nothing is sent later', async () => {
    const { id } = await createWebhook(site, receiver.url, { events: ['task.created'] });
    await send(site, 'task.created', {});
    const [waiting] = await listDeliveries(site, id);
    const from = performance.now();
    const asked = [testWebhook(site, id), retryDelivery(site, waiting!.id)];
    await waitFor(async () => (await openRequests()).length === 2);
    const restarted = site.restart();
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([503, 503]);
    expect(performance.now() - from).toBeLessThan(TIMEOUT_MS + POLL_SECONDS * 1000);
    await restarted;
    expect(await openRequests()).toEqual([]);
    expect(await listDeliveries(site, id)).toMatchObject([{ id: waiting!.id, tries: 0 }]);
  }, 120_000);

  it('sends an old test again, and keeps it in the log where no process does', async () => {
    const sender = await startSender();
    const { id } = await createWebhook(site, receiver.url);
    await testWebhook(site, id);
    const [test] = await listDeliveries(site, id);
    await sleep(TIMEOUT_MS + POLL_SECONDS * 1000);
    // A busy machine may not have sent it within that time.
    receiver.clear();
    expect((await retryDelivery(site, test!.id)).body).toMatchObject({ status: 'sent', tries: 2 });
    expect(receiver.requests).toHaveLength(1);
    await sender.stop();
    expect((await retryDelivery(site, test!.id)).status).toBe(503);
    expect(await listDeliveries(site, id, '?state=test')).toMatchObject([
      { id: test!.id, status: 'sent', tries: 2 },
    ]);
    expect(await openRequests()).toEqual([]);
  }, 120_000);

  it('says that nobody answered where the process that took it over died', async () => {
    const { id } = await createWebhook(site, receiver.url, { active: false });
    const sender = await startSender();
    receiver.respond({ hang: true });
    const test = testWebhook(site, id);
    await receiver.waitFor(1);
    await sender.stop('SIGKILL');
    const { status, body } = await test;
    expect(status).toBe(503);
    expect(body).toMatchObject({
      error: { message: expect.stringMatching(/No result yet/) },
    });
    // The next one ends it, without sending it.
    worker = await startWorker(site.env(), ['--only', 'webhooks']);
    await waitForDelivery(site, id, ({ error }) => error === 'interrupted', 60_000);
    expect(await openRequests()).toEqual([]);
    expect(receiver.requests).toHaveLength(1);
  }, 120_000);
});
