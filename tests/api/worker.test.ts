import path from 'node:path';
import { anyDatabase, databases, describeEach } from '../support/databases';
import { runCommand, spawnWorker, startWorker, type Worker } from '../support/command';
import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import { freePort } from '../support/site-process';
import { sleep, waitFor } from '../support/wait';
import {
  arrivals,
  countRows,
  createWebhook,
  insertDeliveries,
  removeWebhooks,
  send,
  sql,
  testWebhook,
} from './delivery-support';
import { createItem, createTill, eventOf, levelOf, type Till } from './pos-till';

/** What examples/compose starts in containers: a web node that serves, and workers, on one database. */

const OPTIONS = {
  webhooks: { dispatch: false, pollSeconds: 1, timeoutMs: 30_000, retryScheduleSeconds: [600] },
  pos: { process: false },
};

/** Another address of this machine alone; Linux has all of 127.0.0.0/8. */
const ELSEWHERE = process.platform === 'linux' ? '127.0.0.2' : '::1';

const healthOf = async (
  port: number,
  host = '127.0.0.1'
): Promise<{ status: number; body: unknown }> => {
  const answer = await fetch(`http://${host.includes(':') ? `[${host}]` : host}:${port}/health`);
  return { status: answer.status, body: await answer.json() };
};

/** MariaDB and PostgreSQL lock alike here; SQLite, with its one writer, does not. */
const kinds = databases().filter((kind) => kind !== 'mysql' || databases().length === 1);

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
    await receiver?.close();
    await site?.stop();
  }, 60_000);
  beforeEach(() => {
    receiver.clear();
    receiver.respond({});
  });
  afterEach(async () => {
    await Promise.all(workers.map((worker) => worker.stop()));
    workers = [];
    await removeWebhooks(site);
  }, 60_000);

  const sent = async (webhook: number, count: number): Promise<boolean> =>
    (await countRows(site, 'webhook_id = ? AND status = ?', [webhook, 'sent'])) === count;

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
    await waitFor(() => sent(id, 300), 30_000);
    for (const sale of sales)
      await waitFor(async () => (await eventOf(site, sale)).state === 'applied', 20_000);
    expect(await levelOf(site, 'TEA')).toBe(before! - 3);
    await receiver.settle(300);
    expect(receiver.requests).toHaveLength(300);
    expect(arrivals(receiver).size).toBe(300);
    // A web node that does not send has one of them do what somebody asks for by hand.
    expect((await testWebhook(site, id)).body).toMatchObject({ ok: true, response_code: 200 });
    expect(one.said()).toMatch(/sends to webhooks and applies what tills send/);

    const ended = await Promise.all([one.stop(), other.stop()]);
    for (const { code, stdout } of ended) {
      expect(code).toBe(0);
      expect(stdout).toMatch(/takes no more work/);
      expect(stdout.match(/worker: stopped/g)).toHaveLength(1);
    }
  }, 120_000);

  // What follows is of a worker's process, whatever it is that keeps its rows.
  if (!anyDatabase().includes(database)) return;

  it('--only keeps a worker to sending, or to applying; --concurrency to so many attempts', async () => {
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
    const sale = await sell();
    const sender = await start('--only', 'webhooks', '--concurrency', '2', '--json');
    await waitFor(() => sent(id, 30), 30_000);
    expect(most).toBe(2);
    // A worker that applies looks every five seconds.
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

  it('sends nothing before every bootstrap has run, and leaves the site’s own tasks to its nodes', async () => {
    const { id } = await createWebhook(site, receiver.url, { events: ['task.created'] });
    await insertDeliveries(site, id, 20);
    const files = ['late-plugin', 'own-task'].map((name) =>
      require.resolve(`../support/handlers/${name}.js`)
    );
    const worker = await startWorker({
      ...site.env(),
      SITE_SETUP_FILES: files.join(path.delimiter),
    });
    workers.push(worker);
    await waitFor(() => sent(id, 20), 30_000);
    for (const { headers } of receiver.requests) {
      expect(headers['x-late-plugin']).toBe('yes');
      expect(headers['x-late-site']).toBe('yes');
    }
    await sleep(1500);
    expect(worker.log()).not.toMatch(/own task ran/);
  }, 60_000);

  it('answers GET /health while it works, and SIGTERM in the middle of sending loses nothing', async () => {
    receiver.respond({ delayMs: 1000 });
    const { id } = await createWebhook(site, receiver.url, { events: ['task.created'] });
    const port = await freePort();
    const worker = await start('--health-port', String(port));
    expect(await healthOf(port)).toEqual({
      status: 200,
      body: { ok: true, state: 'working', serves: ['webhooks', 'pos'] },
    });
    expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(404);
    await expect(healthOf(port, ELSEWHERE)).rejects.toThrow();
    const taken = await runCommand(['worker', '--health-port', String(port)], { env: site.env() });
    expect(taken).toMatchObject({ code: 2, stdout: '' });
    expect(taken.stderr.trimEnd().split('\n')).toEqual([expect.stringMatching(/EADDRINUSE/)]);

    await insertDeliveries(site, id, 100);
    await receiver.waitFor(5);
    const stopped = worker.stop();
    await waitFor(async () => (await healthOf(port)).status === 503, 5000);
    const { code, signal, stderr } = await stopped;
    expect({ code, signal }).toEqual({ code: 0, signal: null });
    expect(stderr).not.toMatch(/error/i);
    expect(receiver.requests.length).toBeLessThan(100);
    expect(await sent(id, receiver.requests.length)).toBe(true);
    // Nothing is left under a lease that somebody would have to wait for.
    expect(
      await sql(site, 'SELECT id FROM switchboard_delivery_queue WHERE owner IS NOT NULL')
    ).toEqual([]);

    receiver.respond({});
    await start();
    await waitFor(() => sent(id, 100), 30_000);
    await receiver.settle(300);
    expect(receiver.requests).toHaveLength(100);
    expect(arrivals(receiver).size).toBe(100);
  }, 120_000);

  it('SIGTERM while it loads ends it, too, with 0', async () => {
    const port = await freePort();
    const words = ['--health-port', String(port), '--health-host', ELSEWHERE];
    const loading = spawnWorker(site.env(), words);
    await waitFor(async () => (await healthOf(port, ELSEWHERE)).status === 503, 20_000);
    await expect(healthOf(port)).rejects.toThrow();
    const { code, stdout, stderr } = await loading.stop();
    expect({ code, stderr: /^\s+at /m.test(stderr) }).toEqual({ code: 0, stderr: false });
    expect(stdout).toMatch(/worker: stopped/);
  }, 60_000);
});
