import { runCommand, startWorker, type Worker } from '../support/command';
import { anyServer, describeEach } from '../support/databases';
import { type Receiver, startReceiver } from '../support/receiver';
import { createRedis, describeWithRedis, type RedisServer } from '../support/redis';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import {
  arrivals,
  countRows,
  createWebhook,
  insertDeliveries,
  testWebhook,
} from './delivery-support';

/** examples/compose with its Redis, as processes on one machine. */

interface Check {
  name: string;
  state: string;
  message: string;
  advice: string;
}

describeWithRedis('workers that hear of work over Redis', () => {
  describeEach(anyServer(), 'a web node and two workers', (database) => {
    let redis: RedisServer;
    let receiver: Receiver;
    let site: Site;
    let workers: Worker[] = [];

    const doctor = async (): Promise<{ code: number | null; check: Check | undefined }> => {
      const { code, stdout } = await runCommand(['doctor', '--json'], { env: site.env() });
      const { checks } = JSON.parse(stdout) as { checks: Check[] };
      return { code, check: checks.find(({ name }) => name === 'redis') };
    };

    beforeAll(async () => {
      redis = await createRedis();
      await redis.start();
      receiver = await startReceiver();
      site = await startSite({
        database,
        options: {
          scheduler: { engine: 'bullmq', redis: redis.url },
          webhooks: { dispatch: false, timeoutMs: 30_000, pollSeconds: 1 },
          pos: { process: false },
        },
      });
      workers = await Promise.all([startWorker(site.env()), startWorker(site.env())]);
    }, 180_000);
    afterAll(async () => {
      await Promise.all(workers.map((worker) => worker.stop()));
      await receiver?.close();
      await redis?.close();
      await site?.stop();
    }, 60_000);

    it('send, do what is asked for by hand, and go on without Redis', async () => {
      const { id } = await createWebhook(site, receiver.url, { events: ['task.created'] });
      await insertDeliveries(site, id, 50);
      const sent = async (count: number): Promise<boolean> =>
        (await countRows(site, 'webhook_id = ? AND status = ? AND is_test = ?', [id, 'sent', false])) === count; // prettier-ignore
      await waitFor(() => sent(50), 30_000);
      expect((await testWebhook(site, id)).body).toMatchObject({ ok: true });

      await redis.kill();
      await insertDeliveries(site, id, 10);
      await waitFor(() => sent(60), 30_000);
      expect((await testWebhook(site, id)).body).toMatchObject({ ok: true });
      expect(receiver.requests).toHaveLength(62);
      expect(arrivals(receiver).size).toBe(62);

      expect(await doctor()).toMatchObject({
        code: 1,
        check: { state: 'fail', message: expect.stringMatching(/ECONNREFUSED/) },
      });
      await redis.start();
      await redis.call('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru');
      expect(await doctor()).toMatchObject({
        code: 0,
        check: { state: 'warn', message: expect.stringMatching(/allkeys-lru/) },
      });
      await redis.call('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
      expect(await doctor()).toMatchObject({ code: 0, check: { state: 'ok' } });
      const ended = await Promise.all(workers.map((worker) => worker.stop()));
      expect(ended.map(({ code }) => code)).toEqual([0, 0]);
    }, 180_000);
  });
});
