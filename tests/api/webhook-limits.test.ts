import type { WebhookWithSecret } from '../../shared/contracts/webhooks';
import { anyDatabase, describeEach, serverDatabases } from '../support/databases';
import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import {
  countRows,
  createWebhook,
  getWebhook,
  insertDeliveries,
  removeWebhook,
  send,
  updateWebhook,
  useSiteAndReceiver,
} from './delivery-support';

// Caps have their statements in limited-queue.test.ts, rates theirs below.
describeEach(anyDatabase(), 'what a webhook is limited to', (database) => {
  let site: Site;
  let receiver: Receiver;
  useSiteAndReceiver({ database, webhooks: { pollSeconds: 1 } }, (s, r) => {
    [site, receiver] = [s, r];
  });

  const kick = () =>
    site.evaluate(({ strapi }) =>
      strapi.cron.jobs
        .find(({ name }: { name: string }) => name === 'switchboardDeliveries')
        .job.invoke()
    );

  it('is a rate, also where much is due at once', async () => {
    const { id } = await createWebhook(site, receiver.url, { rate_per_second: 20 });
    // The first post of a process is a slow one, and those after it would seem to follow too fast.
    await insertDeliveries(site, id, 1);
    await kick();
    await receiver.waitFor(1);
    receiver.clear();
    await insertDeliveries(site, id, 60);
    await kick();
    const posts = await receiver.waitFor(60, 60_000);
    const at = posts.map((one) => one.at).sort((a, b) => a - b);
    expect((at[59] ?? 0) - (at[0] ?? 0)).toBeGreaterThan(2400);
    await updateWebhook(site, id, { rate_per_second: 0.01 });
    await insertDeliveries(site, id, 3);
    await kick();
    await receiver.settle(1500);
    expect(receiver.requests.length).toBeLessThanOrEqual(61);
    // Taken away, it holds nothing back any more.
    await updateWebhook(site, id, { rate_per_second: null });
    await receiver.waitFor(63, 30_000);
  }, 90_000);

  it('is kept, shown and taken away again', async () => {
    const limits = { rate_per_second: 2.5, concurrency: 3, ordering: 'by_record' };
    const plain = { rate_per_second: null, concurrency: null, ordering: 'none' };
    const webhook = await createWebhook(site, receiver.url);
    expect(webhook).toMatchObject(plain);
    await updateWebhook(site, webhook.id, limits);
    expect(await getWebhook(site, webhook.id)).toMatchObject(limits);
    await updateWebhook(site, webhook.id, { name: 'other' });
    expect(await getWebhook(site, webhook.id)).toMatchObject(limits);
    await updateWebhook(site, webhook.id, plain);
    expect(await getWebhook(site, webhook.id)).toMatchObject(plain);
    expect(await createWebhook(site, receiver.url, limits)).toMatchObject(limits);
  });

  it.each([
    ['rate_per_second', [0, -1, 0.001, 10_001, '5', true]],
    ['concurrency', [0, 257, 1.5, '3', -1]],
    ['ordering', ['by_name', null, 1]],
  ])('is refused where %s is none', async (field, values) => {
    const { id } = await createWebhook(site, receiver.url);
    for (const value of values) {
      const answer = await site.request('PATCH', `/api/fw-crm/v1/webhooks/${id}`, {
        body: { [field]: value },
      });
      expect([value, answer.status]).toEqual([value, 400]);
      expect(JSON.stringify(answer.body)).toContain(field);
    }
  });

  it('is its own number of simultaneous attempts, below and above the site’s', async () => {
    let underWay = 0;
    let most = 0;
    receiver.respond(async () => {
      underWay += 1;
      most = Math.max(most, underWay);
      await new Promise((done) => setTimeout(done, 300));
      underWay -= 1;
      return {};
    });
    for (const [concurrency, count] of [
      [2, 8],
      [32, 96],
    ] as const) {
      most = 0;
      receiver.clear();
      const { id } = await createWebhook(site, receiver.url, { concurrency });
      await insertDeliveries(site, id, count);
      await kick();
      await receiver.waitFor(count, 60_000);
      expect(most).toBeLessThanOrEqual(concurrency);
      // The site's own is 16.
      if (concurrency > 16) expect(most).toBeGreaterThan(16);
      await waitFor(async () => (await countRows(site, "status = 'pending'")) === 0);
    }
  }, 90_000);

  it('is a raised rate at once, and not when the old one would have allowed more', async () => {
    const { id } = await createWebhook(site, receiver.url, { rate_per_second: 0.01 });
    await send(site, 'shop.one');
    await receiver.waitFor(1);
    for (const event of ['shop.two', 'shop.three', 'shop.four']) await send(site, event);
    await receiver.settle(500);
    expect(receiver.requests).toHaveLength(1);
    await updateWebhook(site, id, { rate_per_second: 5 });
    await receiver.waitFor(4, 20_000);
  });
});

describeEach(serverDatabases(), 'a rate over two processes', (database) => {
  let one: Site;
  let other: Site;
  let receiver: Receiver;
  beforeAll(async () => {
    receiver = await startReceiver();
    one = await startSite({ database, options: { webhooks: { pollSeconds: 1 } } });
    other = await one.sibling();
  }, 120_000);
  afterAll(async () => {
    await other?.stop();
    await one?.stop();
    await receiver?.close();
  }, 60_000);

  it.each([5, 100])(
    'is %i a second at the receiver, in each second',
    async (rate) => {
      receiver.clear();
      const webhook: WebhookWithSecret = await createWebhook(one, receiver.url, {
        rate_per_second: rate,
      });
      const count = rate * 5;
      await insertDeliveries(one, webhook.id, count);
      const posts = await receiver.waitFor(count, 60_000);
      const at = posts.map((post) => post.at).sort((a, b) => a - b);
      const took = (at.at(-1) ?? 0) - (at[0] ?? 0);
      // A tenth of a second's worth may go at once; what is late by less than that catches up.
      expect(took).toBeGreaterThan(4000);
      for (const [nth, from] of at.entries()) {
        const within = at.slice(nth).filter((time) => time < from + 3000).length;
        expect(within).toBeLessThanOrEqual(rate * 4);
      }
      await removeWebhook(one, webhook.id);
    },
    90_000
  );
});
