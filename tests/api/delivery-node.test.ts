import { Webhook as StandardWebhook } from 'standardwebhooks';
import { anyDatabase, describeEach } from '../support/databases';
import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import {
  arrivals,
  countRows,
  createWebhook,
  insertDeliveries,
  logSoFar,
  sql,
  testWebhook,
} from './delivery-support';

const COUNT = 300;

/** Sites that still name the client that was removed post with `node`, too. */
describe.each(['node', 'undici'])('webhooks.client is %s', (client) => {
  describeEach(anyDatabase(), 'a site that posts with node', (database) => {
    let site: Site;
    let receiver: Receiver;

    beforeAll(async () => {
      receiver = await startReceiver();
      site = await startSite({
        database,
        options: {
          webhooks: { client, retryScheduleSeconds: [1], disableAfterFailures: 100_000 },
        },
      });
    }, 120_000);
    afterAll(async () => {
      await receiver?.close();
      await site?.stop();
    }, 60_000);

    it('says at boot once that node takes the place of undici, where that is named', async () => {
      const lines = (await logSoFar(site)).match(/webhooks\.client "undici" was removed.*/g) ?? [];
      expect(lines).toHaveLength(client === 'undici' ? 1 : 0);
    });

    it('sends each delivery once, and again what failed, when it is due', async () => {
      receiver.respond((_request, index) => (index % 10 === 0 ? { status: 503 } : { status: 200 }));
      const { id, secret } = await createWebhook(site, receiver.url);
      await insertDeliveries(site, id, COUNT);
      await waitFor(
        async () => (await countRows(site, 'webhook_id = ? AND status = ?', [id, 'pending'])) === 0,
        60_000,
        'everything to be sent or to have failed twice'
      );
      await receiver.settle(300);
      expect(arrivals(receiver).size).toBe(COUNT);
      const sent = await countRows(site, 'webhook_id = ? AND status = ?', [id, 'sent']);
      const retried = [...arrivals(receiver).values()].filter((posts) => posts.length === 2).length;
      expect(retried).toBeGreaterThanOrEqual(COUNT / 10 - 1);
      expect(receiver.requests).toHaveLength(COUNT + retried);
      expect(sent).toBeGreaterThan(COUNT * 0.9);
      const judge = new StandardWebhook(String(secret));
      for (const { body, headers } of receiver.requests) judge.verify(body, headers);
    }, 90_000);

    it('connects to no address that is refused', async () => {
      receiver.clear();
      const { id } = await createWebhook(site, 'https://93.184.216.34/hook', { active: false });
      const refused = 'http://169.254.169.254/';
      await sql(site, 'UPDATE switchboard_webhooks SET url = ? WHERE id = ?', [refused, id]);
      const { body } = await testWebhook(site, id);
      expect(body).toMatchObject({ ok: false, response_code: null, error: 'blocked_address' });
    });
  });
});
