import type { HealthReport } from '../../shared/contracts/overview';
import { describeEach, anyDatabase } from '../support/databases';
import type { Receiver } from '../support/receiver';
import type { Site } from '../support/site';
import { waitFor } from '../support/wait';
import { createWebhook, send, updateWebhook, useSiteAndReceiver } from './delivery-support';

describeEach(anyDatabase(), 'the health that the screens show', (database) => {
  let site: Site;
  let receiver: Receiver;
  useSiteAndReceiver({ database, webhooks: { retryScheduleSeconds: [3600] } }, (s, r) => {
    site = s;
    receiver = r;
  });

  const health = async (id: number) => {
    const { body } = await site.request<{ data: HealthReport }>(
      'GET',
      '/switchboard/webhooks-health'
    );
    const { buckets, webhooks, totals } = body.data;
    const mine = webhooks.find(({ webhook_id: webhook }) => webhook === id)!;
    return { mine, buckets, totals };
  };

  it('says that every attempt fails while none has been given up', async () => {
    receiver.respond({ status: 500 });
    const webhook = await createWebhook(site, receiver.url, { events: ['contact.created'] });
    for (let n = 0; n < 3; n += 1) await send(site, 'contact.created', { n });
    const { mine, buckets, totals } = await waitFor(async () => {
      const found = await health(webhook.id);
      return found.mine.failing === 3 ? found : undefined;
    });
    expect(mine).toMatchObject({ pending: 3, failing: 3, sent: 0, failed: 0 });
    expect(totals).toMatchObject({ pending: 3, failing: 3 });
    expect(buckets.reduce((sum, { failing }) => sum + failing, 0)).toBe(3);
    expect(mine.last).toMatchObject({ status: 'pending', error: 'http_500' });
  });

  it('does not count what was never tried as failing', async () => {
    const webhook = await createWebhook(site, receiver.url, { events: ['contact.created'] });
    await send(site, 'contact.created');
    await waitFor(async () => (await health(webhook.id)).mine.sent === 1);
    receiver.respond({ hang: true });
    await send(site, 'contact.created');
    await receiver.waitFor(2);
    const { mine } = await waitFor(async () => {
      const found = await health(webhook.id);
      return found.mine.pending === 1 ? found : undefined;
    });
    expect(mine).toMatchObject({ pending: 1, failing: 0, sent: 1 });
    await updateWebhook(site, webhook.id, { active: false });
  });

  it('keeps the last answer while newer deliveries wait', async () => {
    const webhook = await createWebhook(site, receiver.url, { events: ['contact.created'] });
    await send(site, 'contact.created');
    await waitFor(async () => (await health(webhook.id)).mine.sent === 1);
    receiver.respond({ hang: true });
    await send(site, 'contact.created');
    await receiver.waitFor(2);
    const { mine } = await waitFor(async () => {
      const found = await health(webhook.id);
      return found.mine.pending === 1 ? found : undefined;
    });
    expect(mine.last).toMatchObject({ status: 'sent', tries: 1, error: null });
  });
});
