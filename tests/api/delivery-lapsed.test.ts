import { anyDatabase, describeEach } from '../support/databases';
import type { Receiver } from '../support/receiver';
import type { Site } from '../support/site';
import {
  createWebhook,
  insertDeliveries,
  updateWebhook,
  useSiteAndReceiver,
} from './delivery-support';

describeEach(anyDatabase(), 'what a process held that died', (database) => {
  let site: Site;
  let receiver: Receiver;
  useSiteAndReceiver({ database, webhooks: { pollSeconds: 1 } }, (s, r) => {
    [site, receiver] = [s, r];
  });

  it('goes out where it was in the queue, and not behind all that waits', async () => {
    receiver.respond({ delayMs: 50 });
    const { id } = await createWebhook(site, receiver.url, { active: false, concurrency: 1 });
    const at = Date.now();
    await insertDeliveries(site, id, 400, { next_attempt_at: at - 60_000 });
    const lapsed = { body: JSON.stringify({ data: 'lapsed' }), next_attempt_at: at - 3_600_000 };
    await insertDeliveries(site, id, 1, lapsed, { owner: 'dead', leased_until: at - 1500 });
    await updateWebhook(site, id, { active: true });
    await receiver.waitFor(1, 60_000, ({ json }) => json.data === 'lapsed');
    expect(receiver.requests.length).toBeLessThan(300);
    await updateWebhook(site, id, { active: false });
  }, 90_000);
});
