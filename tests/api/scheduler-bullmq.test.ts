import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { Queue } from 'bullmq';
import { type DatabaseKind, describeEach, anyDatabase, anyServer } from '../support/databases';
import { ROOT } from '../support/paths';
import { type Receiver, startReceiver } from '../support/receiver';
import { createRedis, describeWithRedis, type RedisServer } from '../support/redis';
import { type Site, startSite } from '../support/site';
import { BootError } from '../support/site-process';
import { sleep, waitFor } from '../support/wait';
import { arrivals, countRows, createWebhook, insertDeliveries, send } from './delivery-support';
import { createTill } from './pos-till';
import type { HealthReport } from '../../shared/contracts/overview';
import { runCommand } from '../support/command';

const WITHOUT = pathToFileURL(path.join(ROOT, 'tests/support/without-packages.mjs')).href;
const AWAY = /Redis at \S+ is unreachable/g;
const BACK = /Redis at \S+ is back/g;
const LEFT_OVER = /switchboard deliveries: the ticket \S+ was left over/g;
const MISTYPED =
  /switchboard deliveries: another program wrote to switchboard:\S+ \(string\) on Redis/g;
const PAUSED = /switchboard deliveries: the queue \S+ on Redis is paused/g;

const timesIn = (site: Site, line: RegExp): number => [...site.log().matchAll(line)].length;

const allSent = (site: Site, id: number, count: number) =>
  waitFor(
    async () => (await countRows(site, 'webhook_id = ? AND status = ?', [id, 'sent'])) === count,
    60_000,
    `${count} deliveries to be sent`
  );

/** Nothing lost, and nothing sent that was not asked for. */
const expectEachOnce = async (receiver: Receiver, count: number): Promise<void> => {
  await receiver.settle(300);
  expect(arrivals(receiver).size).toBe(count);
  expect(receiver.requests).toHaveLength(count);
};

/** How many scripts Redis has run: a ticket is written and taken by scripts. */
const scriptsRun = async (redis: RedisServer): Promise<number> => {
  const stats = String(await redis.call('INFO', 'commandstats'));
  const runs = [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)];
  return runs.reduce((sum, [, calls]) => sum + Number(calls), 0);
};

const options = (redis: RedisServer, webhooks: Record<string, unknown> = {}, more = {}) => ({
  scheduler: { engine: 'bullmq', redis: redis.url },
  webhooks: { timeoutMs: 5000, pollSeconds: 1, ...webhooks },
  ...more,
});

describe('a site without the packages', () => {
  it('does not boot, and says what to install', async () => {
    const boot = startSite({
      accounts: false,
      options: { scheduler: { engine: 'bullmq' } },
      env: { NODE_OPTIONS: `--import ${WITHOUT}`, WITHOUT_PACKAGES: 'bullmq,ioredis' },
    });
    const error: unknown = await boot.then(
      (site) => site.stop(),
      (failure: unknown) => failure
    );
    expect(error).toBeInstanceOf(BootError);
    expect((error as BootError).log).toContain('npm install bullmq ioredis');
  }, 90_000);

  it('boots with the database as its engine', async () => {
    const site = await startSite({
      env: { NODE_OPTIONS: `--import ${WITHOUT}`, WITHOUT_PACKAGES: 'bullmq,ioredis' },
    });
    await site.stop();
  }, 90_000);
});

describeWithRedis('tickets on Redis', () => {
  describeEach(anyDatabase(), 'a node', (database) => {
    let redis: RedisServer;
    let site: Site;
    let receiver: Receiver;
    let webhook: { id: number };
    let queued = 0;
    const owned: Receiver[] = [];

    /** Lets deliveries flow: some are under way, and most still wait. */
    const flow = async (count: number): Promise<void> => {
      await insertDeliveries(site, webhook.id, count);
      queued += count;
      await send(site, 'order.placed', { secret: 'of the payload' });
      queued += 1;
      const before = receiver.requests.length;
      await waitFor(() => receiver.requests.length > before + 20);
    };

    beforeAll(async () => {
      redis = await createRedis();
      receiver = await startReceiver({ delayMs: 30 });
      // Redis is not there yet.
      site = await startSite({ database, options: options(redis) });
    }, 120_000);
    afterAll(async () => {
      await site?.stop();
      for (const one of [...owned, receiver]) await one?.close();
      await redis?.close();
    }, 60_000);

    it('that boots while Redis is away says so once, and sends', async () => {
      webhook = await createWebhook(site, receiver.url);
      await flow(50);
      await allSent(site, webhook.id, queued);
      expect(timesIn(site, AWAY)).toBe(1);
      expect(timesIn(site, BACK)).toBe(0);
    }, 90_000);

    it('goes over to it when it is there, and says so once', async () => {
      await redis.start();
      await waitFor(() => timesIn(site, BACK) === 1);
      await sleep(1500);
      const before = await scriptsRun(redis);
      await flow(100);
      await allSent(site, webhook.id, queued);
      expect(await scriptsRun(redis)).toBeGreaterThan(before + 2);
      expect([timesIn(site, AWAY), timesIn(site, BACK)]).toEqual([1, 1]);
    }, 90_000);

    it('loses nothing and sends nothing twice when Redis is flushed, again and again', async () => {
      await flow(400);
      for (let round = 0; round < 10; round += 1) {
        await redis.call('FLUSHALL');
        await sleep(100);
      }
      await allSent(site, webhook.id, queued);
      await expectEachOnce(receiver, queued);
      expect([timesIn(site, AWAY), timesIn(site, BACK)]).toEqual([1, 1]);
    }, 90_000);

    it('goes on while Redis is killed, and after it is back', async () => {
      await flow(300);
      await redis.kill();
      await waitFor(() => timesIn(site, AWAY) === 2);
      await flow(150);
      await redis.start();
      await flow(150);
      await waitFor(() => timesIn(site, BACK) === 2);
      await allSent(site, webhook.id, queued);
      await expectEachOnce(receiver, queued);
      expect([timesIn(site, AWAY), timesIn(site, BACK)]).toEqual([2, 2]);
    }, 90_000);

    it('keeps tickets in it alone: no payload, no address, no secret, and little at rest', async () => {
      const { secret } = await createWebhook(site, `${receiver.url}second`);
      const seen = new Map<string, string>();
      await flow(150);
      for (let look = 0; look < 20; look += 1) {
        for (const [key, value] of await redis.dump()) seen.set(`${key} ${value}`, key);
        await sleep(20);
      }
      const ids = await site.control<{ document_id: string; body: string }[]>('sql', {
        statement: 'SELECT document_id, body FROM switchboard_deliveries ORDER BY id DESC LIMIT 50',
      });
      const held = [...seen.keys()].join('\n');
      expect([...seen.values()].some((key) => /:\d+:\d+$/.test(key))).toBe(true);
      for (const word of [secret, receiver.url, 'load.test', 'order.placed', 'of the payload'])
        expect(held).not.toContain(word);
      for (const { document_id } of ids) expect(held).not.toContain(document_id);

      await waitFor(async () => (await countRows(site, "status = 'pending'")) === 0, 60_000);
      await waitFor(
        async () => ![...(await redis.dump()).keys()].some((key) => /:\d+:\d+$/.test(key))
      );
      const keys = [...(await redis.dump()).keys()];
      expect(keys.length).toBeLessThanOrEqual(100);
      expect(keys.filter((key) => !key.startsWith('switchboard:'))).toEqual([]);
    }, 90_000);

    const nameOfQueue = async (): Promise<string> => {
      const [row] = await site.control<{ value: string }[]>('sql', {
        statement: "SELECT value FROM switchboard_site WHERE name = 'instance'",
      });
      return `switchboard-deliveries-${row?.value}`;
    };

    it('sends what tickets stand for that were left over, whatever they are, and removes them', async () => {
      const queue = `switchboard:${await nameOfQueue()}`;
      const job = ['name', 'turn', 'data', '{}', 'opts', '{}', 'timestamp', '1'];
      const lists = (key: string, id: string): Record<string, string[][]> => ({
        'alone, as if its list was evicted': [['HSET', key, ...job]],
        'in nobody’s hands': [
          ['HSET', key, ...job, 'ats', '1', 'processedOn', '1'],
          ['LPUSH', `${queue}:active`, id],
        ],
        'locked for ever': [
          ['HSET', key, ...job, 'ats', '1'],
          ['SET', `${key}:lock`, 'x'],
          ['LPUSH', `${queue}:active`, id],
        ],
        completed: [
          ['HSET', key, ...job, 'finishedOn', '1', 'returnvalue', 'null'],
          ['ZADD', `${queue}:completed`, '1', id],
        ],
        failed: [
          ['HSET', key, ...job, 'finishedOn', '1', 'failedReason', 'x'],
          ['ZADD', `${queue}:failed`, '1', id],
        ],
        delayed: [
          ['HSET', key, ...job, 'delay', '999999999'],
          ['ZADD', `${queue}:delayed`, '99999999999999999', id],
        ],
        'gone, and its id is still in a list': [['LPUSH', `${queue}:wait`, id]],
      });
      const own = await startReceiver();
      owned.push(own);
      const left = new Map<string, string>();
      for (const name of Object.keys(lists('', ''))) {
        const { id: webhook } = await createWebhook(site, own.url, { name, events: ['deal.won'] });
        const id = `switchboard-deliveries:${webhook}:0`;
        left.set(name, `${queue}:${id}`);
        for (const [command = '', ...args] of lists(`${queue}:${id}`, id)[name] ?? []) {
          await redis.call(command, ...args);
        }
      }
      const said = timesIn(site, LEFT_OVER);
      await send(site, 'deal.won');
      queued += 1;
      await own.waitFor(left.size, 20_000);
      expect(timesIn(site, LEFT_OVER) - said).toBe(1);
      await waitFor(async () => {
        const keys = [...(await redis.dump()).keys()];
        return ![...left.values()].some((key) => keys.some((one) => one.startsWith(key)));
      });
      // The next one needs nobody to look for it.
      const at = Date.now();
      await send(site, 'deal.won');
      queued += 1;
      await own.waitFor(2 * left.size, 10_000);
      expect(Date.now() - at).toBeLessThan(2500);
      await expectEachOnce(own, 2 * left.size);
    }, 90_000);

    it.each([
      ['of a ticket', (id: number) => `switchboard-deliveries:${id}:0`],
      ['of what waits', () => 'wait'],
      ['of what the queue says of itself', () => 'meta'],
      ['of what is in somebody’s hands', () => 'active'],
    ])(
      'sends although somebody wrote a string to the key %s, and removes it',
      async (_of, keyOf) => {
        const own = await startReceiver();
        owned.push(own);
        const { id: webhook } = await createWebhook(site, own.url, { events: ['deal.won'] });
        const key = `switchboard:${await nameOfQueue()}:${keyOf(webhook)}`;
        const away = timesIn(site, AWAY);
        await redis.call('SET', key, 'x');
        await send(site, 'deal.won');
        queued += 1;
        await own.waitFor(1, 20_000);
        await waitFor(async () => (await redis.call('TYPE', key)) !== 'string');
        await send(site, 'deal.won');
        queued += 1;
        await own.waitFor(2, 20_000);
        await expectEachOnce(own, 2);
        expect(timesIn(site, AWAY)).toBe(away);
        // Once in a while: of the first one.
        expect(timesIn(site, MISTYPED)).toBe(1);
      },
      90_000
    );

    const pausedQueues = async (): Promise<string[]> => {
      const { body } = await site.request<{ data: HealthReport }>(
        'GET',
        '/switchboard/webhooks-health'
      );
      return body.data.paused_queues;
    };

    const queuesCheck = async (): Promise<{ state: string; message: string } | undefined> => {
      const { stdout } = await runCommand(['doctor', '--json'], { env: site.env() });
      return JSON.parse(stdout).checks.find(({ name }: { name: string }) => name === 'queues');
    };

    it('has doctor name keys that somebody wrote something else to', async () => {
      const queue = (await nameOfQueue()).replace('deliveries', 'recoveries');
      const key = `switchboard:${queue}:completed`;
      await redis.call('SET', key, 'x');
      expect(await queuesCheck()).toMatchObject({
        state: 'warn',
        message: expect.stringContaining(`${key} (string)`),
      });
      await redis.call('DEL', key);
      expect(await queuesCheck()).toMatchObject({ state: 'ok' });
    }, 90_000);

    it('sends while its queue is paused, and says so', async () => {
      const name = await nameOfQueue();
      const queue = new Queue(name, { connection: { url: redis.url }, prefix: 'switchboard' });
      try {
        await queue.pause();
        for (let n = 0; n < 3; n += 1) {
          await send(site, 'task.created', { n });
          queued += 1;
          await allSent(site, webhook.id, queued);
        }
        await flow(150);
        await allSent(site, webhook.id, queued);
        expect(timesIn(site, PAUSED)).toBe(1);
        expect(await pausedQueues()).toEqual([name]);
        expect(await queuesCheck()).toMatchObject({
          state: 'warn',
          message: expect.stringContaining(name),
        });
        await queue.resume();
        await waitFor(async () => (await pausedQueues()).length === 0);
        // Until the next look has seen it.
        await sleep(1500);
        const before = await scriptsRun(redis);
        await flow(50);
        await allSent(site, webhook.id, queued);
        expect(await scriptsRun(redis)).toBeGreaterThan(before + 2);
      } finally {
        await queue.close();
      }
    }, 90_000);

    it('ends while Redis is away', async () => {
      await redis.kill();
      await waitFor(() => timesIn(site, AWAY) === 3);
      await site.restart();
      await flow(50);
      await allSent(site, webhook.id, queued);
    }, 90_000);
  });

  describeEach(anyServer(), 'two nodes', (database) => {
    let redis: RedisServer;
    let receiver: Receiver;
    const sites: Site[] = [];

    const start = async (
      kind: DatabaseKind,
      ...nodes: Record<string, unknown>[]
    ): Promise<[Site, Site]> => {
      const [one = {}, other = {}] = nodes;
      const first = await startSite({ database: kind, options: one });
      sites.push(first);
      const second = await first.sibling({ options: other, accounts: false });
      sites.push(second);
      return [first, second];
    };

    beforeAll(async () => {
      redis = await createRedis();
      await redis.start();
      receiver = await startReceiver();
    }, 60_000);
    beforeEach(() => receiver.clear());
    afterEach(async () => {
      for (const site of sites.splice(0).reverse()) await site.stop();
    }, 60_000);
    afterAll(async () => {
      await receiver?.close();
      await redis?.close();
    });

    /**
     * Answers none before so many requests are open, or nothing has come for some seconds.
     * @returns the most requests there were at once so far
     */
    const answerTogether = (count: number): (() => number) => {
      let now = 0;
      let most = 0;
      let open = (): void => {};
      let isOpen = new Promise<void>((resolve) => (open = resolve));
      receiver.respond(async () => {
        now += 1;
        most = Math.max(most, now);
        const answered = isOpen;
        if (now >= count) {
          open();
          isOpen = new Promise((resolve) => (open = resolve));
        }
        await Promise.race([answered, sleep(3000)]);
        // Whether one too many comes.
        await sleep(40);
        now -= 1;
        return {};
      });
      return () => most;
    };

    const countAttempts = (node: Site) =>
      node.evaluate(({ strapi, state }) => {
        state.attempts = 0;
        strapi.hook('service_crm_webhook_request_args').register((value: unknown) => {
          state.attempts += 1;
          return value;
        });
      });

    it('keep to one cap of a webhook together, though Redis is flushed meanwhile', async () => {
      const capped = options(redis, { concurrencyPerWebhook: 5, concurrency: 3 });
      const [one, other] = await start(database, capped, capped);
      for (const node of [one, other]) await countAttempts(node);
      // A node alone has three open: what is held until five are takes both.
      const most = answerTogether(5);
      const { id } = await createWebhook(one, receiver.url);
      await insertDeliveries(one, id, 60);
      await send(other, 'order.placed');
      for (let round = 0; round < 10; round += 1) {
        await sleep(150);
        await redis.call('FLUSHALL');
      }
      await allSent(one, id, 61);
      await expectEachOnce(receiver, 61);
      expect(most()).toBe(5);
      for (const node of [one, other])
        expect(await node.control<number>('state', { key: 'attempts' })).toBeGreaterThan(20);
    }, 120_000);

    it('wake each other: what one of them queues, the other sends without having looked', async () => {
      const [one] = await start(
        database,
        options(redis, { dispatch: false, pollSeconds: 3600 }, { pos: { process: false } }),
        options(redis, { pollSeconds: 3600 })
      );
      await createWebhook(one, receiver.url);
      await send(one, 'order.placed');
      await receiver.waitFor(1, 10_000);
      const till = await createTill(one);
      const sale = await till.sale([['unknown', 1]]);
      expect(sale.status).toBe(202);
      await waitFor(async () => {
        const [row] = await one.control('sql', {
          statement: 'SELECT processed_at FROM switchboard_pos_events',
        });
        return row?.processed_at ?? null;
      });
    }, 120_000);

    it('go on with each other’s work when one of them is killed', async () => {
      const [one, other] = await start(
        database,
        options(redis, { timeoutMs: 1000 }),
        options(redis, { timeoutMs: 1000 })
      );
      let hang = true;
      receiver.respond(async () => (hang ? { hang } : {}));
      const { id } = await createWebhook(one, receiver.url);
      await insertDeliveries(one, id, 100);
      await send(one, 'order.placed');
      await waitFor(() => receiver.requests.length >= 5);
      await other.kill();
      hang = false;
      await waitFor(
        async () => (await countRows(one, 'webhook_id = ? AND tries = 0', [id])) === 0,
        50_000,
        'everything to be tried'
      );
      expect(arrivals(receiver).size).toBe(101);
    }, 120_000);
  });
});
