import { describeEach, anyServer } from '../support/databases';
import { type Receiver, startReceiver } from '../support/receiver';
import { createRedis, describeWithRedis, type RedisServer } from '../support/redis';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import {
  arrivals,
  countRows,
  createWebhook,
  insertDeliveries,
  removeWebhook,
  send,
} from './delivery-support';
import { allChanges, changeRecords, TRIED_SOON, watchOrder } from './order-support';

const RECORDS = 20;
const UPDATES = 10;
const RATE = 20;
/** Seconds of its rate that wait for a webhook. */
const QUEUED_SECONDS = 4;

describeWithRedis('the engine bullmq', () => {
  describeEach(anyServer(), 'over two processes', (database) => {
    let redis: RedisServer;
    let receiver: Receiver;
    let nodes: Site[] = [];

    beforeAll(async () => {
      redis = await createRedis();
      await redis.start();
      receiver = await startReceiver();
      const scheduler = { engine: 'bullmq', redis: redis.url };
      const options = { scheduler, webhooks: TRIED_SOON };
      const first = await startSite({ database, options });
      nodes = [first, await first.sibling({ accounts: false })];
      // Which of them makes an attempt is seen by what its hook has counted.
      for (const node of nodes) {
        await node.evaluate(({ strapi, state }) => {
          state.attempts = 0;
          strapi.hook('service_crm_webhook_request_args').register((value: unknown) => {
            state.attempts += 1;
            return value;
          });
        });
      }
    }, 180_000);
    afterAll(async () => {
      for (const node of [...nodes].reverse()) await node.stop();
      await receiver?.close();
      await redis?.close();
    }, 90_000);
    beforeEach(async () => {
      receiver.clear();
      for (const node of nodes) await node.evaluate(({ state }) => void (state.attempts = 0));
    });

    const attempts = (node: Site) => node.control<number>('state', { key: 'attempts' });
    const allSent = (id: number, count: number) =>
      waitFor(
        async () =>
          (await countRows(nodes[0]!, 'webhook_id = ? AND status = ?', [id, 'sent'])) === count,
        120_000,
        `${count} deliveries to be sent`
      );

    it('keeps the order by record, though a fifth fails and Redis is flushed meanwhile', async () => {
      const order = watchOrder(receiver, 0.2);
      const { id } = await createWebhook(nodes[0]!, receiver.url, { ordering: 'by_record' });
      for (const nth of allChanges(UPDATES)) {
        await changeRecords(nodes[nth % nodes.length]!, RECORDS, nth);
        await redis.call('FLUSHALL');
      }
      await allSent(id, RECORDS * UPDATES);
      expect(order.delivered.size).toBe(RECORDS);
      for (const got of order.delivered.values()) expect(got).toEqual(allChanges(UPDATES));
      expect(order.twoAtOnce).toEqual([]);
      expect(order.failed()).toBeGreaterThan(0);
      expect(arrivals(receiver).size).toBe(RECORDS * UPDATES);
      for (const node of nodes) expect(await attempts(node)).toBeGreaterThan(0);
      await removeWebhook(nodes[0]!, id);
    }, 200_000);

    it('keeps to one rate of a webhook together', async () => {
      receiver.respond({ delayMs: 5 });
      const { id } = await createWebhook(nodes[0]!, receiver.url, { rate_per_second: RATE });
      const count = RATE * QUEUED_SECONDS;
      await insertDeliveries(nodes[0]!, id, count);
      for (const node of nodes) await send(node, 'order.placed');
      await allSent(id, count + nodes.length);
      expect(receiver.requests).toHaveLength(count + nodes.length);
      const at = receiver.requests.map((one) => one.at).sort((a, b) => a - b);
      const took = (at.at(-1) ?? 0) - (at[0] ?? 0);
      // Together they may be ahead of the rate by what it gives in a quarter of a second, no more.
      expect(took).toBeGreaterThan(((count - RATE / 4) / RATE) * 1000);
    }, 150_000);
  });
});
