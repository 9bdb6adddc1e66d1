import { describeEach, databases } from '../support/databases';
import { runCommand, startWorker, type Worker } from '../support/command';
import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import { freePort } from '../support/site-process';
import { sleep, waitFor } from '../support/wait';
import {
  arrivals,
  countRows,
  createWebhook,
  getWebhook,
  insertDeliveries,
  listDeliveries,
  removeWebhooks,
  retryDelivery,
  send,
  testWebhook,
  waitForDelivery,
} from './delivery-support';
import { createItem, createTill, eventOf, levelOf, type Till } from './pos-till';

/** What examples/compose starts in containers: a web node that serves, and workers, on one database. */

const TIMEOUT_MS = 2000;
const OPTIONS = {
  webhooks: { dispatch: false, pollSeconds: 1, timeoutMs: TIMEOUT_MS, retryScheduleSeconds: [600] },
  pos: { process: false },
};

const healthOf = async (port: number): Promise<{ status: number; body: unknown }> => {
  const answer = await fetch(`http://127.0.0.1:${port}/health`);
  return { status: answer.status, body: await answer.json() };
};

/** MariaDB and PostgreSQL lock alike here; SQLite, with its one writer, does not. */
const kinds = databases().filter((kind) => kind !== 'mysql');

describeEach(kinds, 'a web node that serves, and workers', (database) => {
  let site: Site;
  let receiver: Receiver;
  let workers: Worker[] = [];
  let till: Till;

  const start = async (...words: string[]): Promise<Worker> => {
    const worker = await startWorker(site.env(), words);
    workers.push(worker);
    return worker;
  };

  beforeAll(async () => {
    receiver = await startReceiver();
    site = await startSite({ database, options: OPTIONS });
    await createItem(site, 'TEA', 100);
    till = await createTill(site);
  }, 120_000);
  afterAll(async () => {
    await site?.stop();
    await receiver?.close();
  }, 60_000);
  beforeEach(() => {
    receiver.clear();
    receiver.respond({});
  });
  afterEach(async () => {
    await Promise.all(workers.map((worker) => worker.stop('SIGKILL')));
    workers = [];
    await removeWebhooks(site);
  }, 60_000);

  const sell = async (): Promise<number> => {
    const answer = await till.sale([['TEA', 1]]);
    expect(answer.status).toBe(202);
    return answer.body.event_id;
  };

  it('two workers send and apply what the web node takes in, none of it twice', async () => {
    const { id } = await createWebhook(site, receiver.url, { events: ['task.created'] });
    await insertDeliveries(site, id, 300);
    const sales = [await sell(), await sell(), await sell()];
    const before = await levelOf(site, 'TEA');
    await sleep(1500);
    expect(receiver.requests).toEqual([]);

    const [one, other] = await Promise.all([start(), start()]);
    await waitFor(async () => (await countRows(site, 'status = ?', ['sent'])) === 300, 30_000);
    for (const sale of sales)
      await waitFor(async () => (await eventOf(site, sale)).state === 'applied', 20_000);
    expect(await levelOf(site, 'TEA')).toBe(before! - 3);
    await receiver.settle(300);
    expect(receiver.requests).toHaveLength(300);
    expect(arrivals(receiver).size).toBe(300);
    expect(one.said()).toMatch(/sends to webhooks and applies what tills send/);

    const ended = await Promise.all([one.stop(), other.stop()]);
    for (const { code, stdout } of ended) {
      expect(code).toBe(0);
      expect(stdout).toMatch(/takes no more work/);
      expect(stdout.match(/worker: stopped/g)).toHaveLength(1);
    }
  }, 120_000);

  it('--only keeps a worker to sending, or to applying', async () => {
    const { id } = await createWebhook(site, receiver.url, { events: ['task.created'] });
    const sender = await start('--only', 'webhooks', '--json');
    const sale = await sell();
    await send(site, 'task.created', {});
    await waitForDelivery(site, id, ({ status }) => status === 'sent');
    await sleep(6000);
    expect((await eventOf(site, sale)).state).toBe('pending');
    const { code, stdout } = await sender.stop();
    expect({ code, answer: JSON.parse(stdout) }).toEqual({
      code: 0,
      answer: {
        serves: ['webhooks'],
        started_at: expect.any(String),
        stopped_at: expect.any(String),
      },
    });

    receiver.clear();
    await start('--only', 'pos');
    await send(site, 'task.created', {});
    await waitFor(async () => (await eventOf(site, sale)).state === 'applied', 20_000);
    await sleep(1500);
    expect(receiver.requests).toEqual([]);
  }, 120_000);

  it('keeps to its own --concurrency', async () => {
    let most = 0;
    let now = 0;
    receiver.respond(async () => {
      most = Math.max(most, (now += 1));
      await sleep(50);
      now -= 1;
      return {};
    });
    const { id } = await createWebhook(site, receiver.url, { events: ['task.created'] });
    await insertDeliveries(site, id, 30);
    await start('--concurrency', '2');
    await waitFor(async () => (await countRows(site, 'webhook_id = ? AND status = ?', [id, 'sent'])) === 30, 30_000); // prettier-ignore
    expect(most).toBe(2);
  }, 60_000);

  it('SIGTERM in the middle of sending loses nothing and sends nothing twice', async () => {
    receiver.respond({ delayMs: 300 });
    const { id } = await createWebhook(site, receiver.url, { events: ['task.created'] });
    await insertDeliveries(site, id, 100);
    const worker = await start();
    await receiver.waitFor(5);
    const { code, signal, stderr } = await worker.stop();
    expect({ code, signal }).toEqual({ code: 0, signal: null });
    expect(stderr).not.toMatch(/error/i);
    const sent = await countRows(site, 'webhook_id = ? AND status = ?', [id, 'sent']);
    expect(sent).toBe(receiver.requests.length);
    expect(sent).toBeLessThan(100);
    // Nothing is left under a lease that somebody would have to wait for.
    expect(await countRows(site, 'webhook_id = ? AND owner IS NOT NULL', [id])).toBe(0);

    receiver.respond({});
    await start();
    await waitFor(async () => (await countRows(site, 'webhook_id = ? AND status = ?', [id, 'sent'])) === 100, 30_000); // prettier-ignore
    await receiver.settle(300);
    expect(receiver.requests).toHaveLength(100);
    expect(arrivals(receiver).size).toBe(100);
  }, 120_000);

  it('answers GET /health while it works, and has no port unless it is asked for', async () => {
    receiver.respond({ delayMs: 1500 });
    const { id } = await createWebhook(site, receiver.url, { events: ['task.created'] });
    const port = await freePort();
    const worker = await start('--health-port', String(port));
    expect(await healthOf(port)).toEqual({
      status: 200,
      body: { ok: true, state: 'working', serves: ['webhooks', 'pos'] },
    });
    expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(404);
    const taken = await runCommand(['worker', '--health-port', String(port)], { env: site.env() });
    expect(taken).toMatchObject({ code: 2, stdout: '' });
    expect(taken.stderr.trimEnd().split('\n')).toEqual([expect.stringMatching(/EADDRINUSE/)]);

    await insertDeliveries(site, id, 1);
    await receiver.waitFor(1);
    const stopped = worker.stop();
    await waitFor(async () => (await healthOf(port)).status === 503, 5000);
    expect((await stopped).code).toBe(0);
  }, 60_000);

  it('a test and a retry by hand are made by a worker and answered to whoever asked', async () => {
    await start('--only', 'webhooks');
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
    expect(
      await site.control('sql', { statement: 'SELECT id FROM switchboard_manual_requests' })
    ).toEqual([]);
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
    expect(performance.now() - from).toBeGreaterThan(TIMEOUT_MS + 1000 - 100);
    for (const { status, body } of [test, retry]) {
      expect(status).toBe(503);
      expect(body).toMatchObject({
        data: null,
        error: { status: 503, message: expect.stringMatching(/no other one took this over/) },
      });
    }
    expect(await listDeliveries(site, id)).toHaveLength(1);
    await start('--only', 'webhooks');
    await waitForDelivery(site, id, ({ status }) => status === 'sent');
    await sleep(1500);
    expect(receiver.requests).toHaveLength(1);
    expect((await retryDelivery(site, 999_999)).status).toBe(404);
    expect((await testWebhook(site, 999_999)).status).toBe(404);
  }, 120_000);
});
