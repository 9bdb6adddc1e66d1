import type { Worker } from 'node:worker_threads';
import { describeEach, anyDatabase } from '../support/databases';
import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import {
  arrivals,
  countRows,
  createWebhook,
  insertDeliveries,
  logSoFar,
  send,
  signedWith,
  useSiteAndReceiver,
  waitForDelivery,
} from './delivery-support';

const COUNT = 60;

describe.each([0, 3])('webhooks.threads is %i', (threads) => {
  let site: Site;
  let receiver: Receiver;

  beforeAll(async () => {
    receiver = await startReceiver();
    site = await startSite({ options: { webhooks: { threads } } });
  }, 120_000);
  afterAll(async () => {
    await receiver?.close();
    await site?.stop();
  }, 60_000);

  it('sends each delivery once', async () => {
    const { id } = await createWebhook(site, receiver.url);
    await insertDeliveries(site, id, COUNT);
    await waitFor(
      async () => (await countRows(site, 'webhook_id = ? AND status = ?', [id, 'sent'])) === COUNT
    );
    expect(arrivals(receiver).size).toBe(COUNT);
    expect(receiver.requests).toHaveLength(COUNT);
  });

  it('posts in as many threads', async () => {
    const count = await site.evaluate(({ require }) => {
      const { Worker: Threads } = require('node:worker_threads');
      const seen = new Set();
      const { postMessage } = Threads.prototype;
      Threads.prototype.postMessage = function remember(...given: unknown[]) {
        seen.add(this);
        return postMessage.apply(this, given);
      };
      (globalThis as { posting?: Set<unknown> }).posting = seen;
      return seen.size;
    });
    expect(count).toBe(0);
    receiver.respond({ delayMs: 300 });
    for (let n = 0; n < 6; n += 1) await send(site, 'order.placed', { n });
    await receiver.waitFor(COUNT + 6);
    const used = await site.evaluate(
      () => (globalThis as { posting?: Set<unknown> }).posting?.size ?? 0
    );
    expect(used).toBe(threads);
  });
});

describeEach(anyDatabase(), 'a thread that sends', (database) => {
  let site: Site;
  let receiver: Receiver;
  useSiteAndReceiver({ database, webhooks: { pollSeconds: 1 } }, (s, r) => {
    [site, receiver] = [s, r];
  });

  it('may die: what it was sending is sent again once its lease has ended, and the rest at once', async () => {
    await site.evaluate(({ require }) => {
      const { Worker: Threads } = require('node:worker_threads');
      const { postMessage } = Threads.prototype;
      Threads.prototype.postMessage = function remember(...given: unknown[]) {
        (globalThis as { poster?: unknown }).poster = this;
        return postMessage.apply(this, given);
      };
    });
    receiver.respond((_request, index) => (index === 0 ? { delayMs: 30_000 } : { status: 200 }));
    const { id } = await createWebhook(site, receiver.url);
    await send(site, 'order.placed', { n: 1 });
    await receiver.waitFor(1);
    await site.evaluate(() => {
      const { poster } = globalThis as unknown as { poster: Worker };
      // As it would end with a fault of its own.
      poster.emit('error', new Error('out of memory'));
      return poster.terminate();
    });
    const diedAt = Date.now();
    await send(site, 'order.placed', { n: 2 });
    await receiver.waitFor(2);
    expect(receiver.requests[1]?.json).toMatchObject({ data: { n: 2 } });
    expect(Date.now() - diedAt).toBeLessThan(5000);
    await receiver.waitFor(3, 20_000);
    const [first, , again] = receiver.requests;
    expect(again?.headers['x-service-delivery']).toBe(first?.headers['x-service-delivery']);
    const sent = await waitForDelivery(
      site,
      id,
      ({ status, tries }) => status === 'sent' && tries === 1
    );
    expect(sent.error).toBeNull();
    expect(await logSoFar(site)).toContain('a thread that sends died: Error out of memory');
  }, 60_000);
});

describeEach(anyDatabase(), 'posts that wait in a thread until they may begin', (database) => {
  const AT_ONCE = 4;
  let site: Site;
  let receiver: Receiver;
  useSiteAndReceiver(
    { database, webhooks: { concurrencyPerWebhook: AT_ONCE, concurrency: 32 } },
    (s, r) => {
      [site, receiver] = [s, r];
    }
  );

  /** Queues many, and waits until they are sent so quickly that some are handed over ahead. */
  const sendMany = async (count: number) => {
    const webhook = await createWebhook(site, receiver.url);
    await insertDeliveries(site, webhook.id, count);
    await receiver.waitFor(count / 4, 20_000);
    return webhook;
  };
  const sent = (id: number) => countRows(site, 'webhook_id = ? AND status = ?', [id, 'sent']);

  it('never are more at once than the webhook may have', async () => {
    let now = 0;
    let most = 0;
    receiver.respond(async () => {
      now += 1;
      most = Math.max(most, now);
      await new Promise((resolve) => setTimeout(resolve, 2));
      now -= 1;
      return {};
    });
    const { id } = await sendMany(600);
    await waitFor(async () => (await sent(id)) === 600, 30_000);
    expect(most).toBe(AT_ONCE);
    expect(arrivals(receiver).size).toBe(600);
    expect(receiver.requests).toHaveLength(600);
  });

  it('have the secret that is the right one when they begin', async () => {
    receiver.respond(() => ({ delayMs: 1 }));
    const { id } = await sendMany(1200);
    const rotated = await site.request('POST', `/api/fw-crm/v1/webhooks/${id}/secret`);
    expect(rotated.status).toBe(200);
    const before = receiver.requests.length;
    await waitFor(async () => (await sent(id)) === 1200, 30_000);
    expect(receiver.requests).toHaveLength(1200);
    // Those that were under way with the answer have come by then.
    const later = receiver.requests.slice(before + AT_ONCE);
    expect(later.length).toBeGreaterThan(100);
    expect(later.filter((one) => !signedWith(rotated.body.secret, one))).toEqual([]);
  });

  it('go back when their receiver asks for a pause', async () => {
    const PAUSED_AT = 300;
    receiver.respond((_request, index) =>
      index < PAUSED_AT ? { delayMs: 1 } : { status: 429, headers: { 'retry-after': '600' } }
    );
    const { id } = await sendMany(1000);
    await waitFor(() => receiver.requests.length > PAUSED_AT, 20_000);
    await receiver.settle(1000);
    // The answer is recorded within a moment, in which posts go out one after the other.
    expect(receiver.requests.length).toBeLessThan(PAUSED_AT + 300);
    await waitFor(async () => (await sent(id)) === PAUSED_AT);
    // Nobody holds the others: they wait for the end of the pause.
    const held = await site.evaluate(
      ({ strapi }, webhook) =>
        strapi.db
          .connection('switchboard_delivery_queue')
          .where({ group_id: webhook })
          .whereNotNull('owner')
          .count({ rows: '*' }),
      id
    );
    expect(Number(held[0].rows)).toBe(0);
  });
});
