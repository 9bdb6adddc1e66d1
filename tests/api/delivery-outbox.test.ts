import { Webhook as StandardWebhook } from 'standardwebhooks';
import { anyDatabase, databases, describeEach, itOnce } from '../support/databases';
import type { Receiver } from '../support/receiver';
import type { Site } from '../support/site';
import { sleep, waitFor } from '../support/wait';
import {
  arrivals,
  countRows,
  createWebhook,
  listDeliveries,
  logSoFar,
  removeWebhook,
  retryDelivery,
  send,
  signedWith,
  sql,
  updateWebhook,
  useSiteAndReceiver,
  waitForDelivery,
} from './delivery-support';

/** A write of the site's own, to be committed or rolled back together with its event. */
const addLabel = (name: string) => ({
  op: 'query',
  args: { uid: 'api::label.label', method: 'create', params: { data: { title: name } } },
});
const sendStep = (n: number) => ({ op: 'send', args: { event: 'order.placed', data: { n } } });

describeEach(databases(), 'an event on its way out', (database) => {
  let site: Site;
  let receiver: Receiver;
  useSiteAndReceiver(
    { database, webhooks: { pollSeconds: 1, retryScheduleSeconds: [1, 1] } },
    (...started) => {
      [site, receiver] = started;
    }
  );

  it('arrives as the envelope and headers of the contract', async () => {
    const webhook = await createWebhook(site, receiver.url);
    const before = Date.now();
    expect(await send(site, 'order.placed', { n: 1, name: 'Żółć 👋' })).toBe(1);
    const [post] = await receiver.waitFor(1);
    expect(post!.method).toBe('POST');
    expect(post!.json).toEqual({
      id: expect.stringMatching(
        /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
      ),
      event: 'order.placed',
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?\+00:00$/),
      site: site.url,
      data: { n: 1, name: 'Żółć 👋' },
    });
    expect(Object.keys(post!.json)).toEqual(['id', 'event', 'created_at', 'site', 'data']);
    const createdAt = Date.parse(post!.json.created_at);
    expect(createdAt).toBeGreaterThan(before - 2000);
    expect(createdAt).toBeLessThan(post!.at + 2000);
    expect(post!.headers).toMatchObject({
      'content-type': 'application/json',
      'content-length': String(post!.raw.length),
      'x-service-event': 'order.placed',
      'x-service-delivery': post!.json.id,
      'x-service-timestamp': expect.stringMatching(/^\d{10}$/),
      'x-service-signature': expect.stringMatching(/^sha256=[0-9a-f]{64}$/),
      'webhook-id': post!.json.id,
    });
    const delivery = await waitForDelivery(site, webhook.id, ({ status }) => status === 'sent');
    expect(delivery).toMatchObject({
      delivery_id: post!.json.id,
      tries: 1,
      next_attempt_at: null,
      error: null,
      request: { url: receiver.url, body: post!.body },
      answer: { status: 200, body: 'ok', truncated: false },
    });
  });

  it('is rolled back with the write by a throw after both, however deep', async () => {
    const webhook = await createWebhook(site, receiver.url);
    const nested = { op: 'transaction', args: { steps: [addLabel('gone'), sendStep(6)] } };
    for (const steps of [
      [addLabel('gone'), sendStep(5)],
      [nested, sendStep(7)],
    ]) {
      await expect(
        site.control('transaction', { steps, throw: 'after the write' })
      ).rejects.toThrow('after the write');
    }
    expect(await countRows(site, 'webhook_id = ?', [webhook.id])).toBe(0);
    const labels = await site.control<unknown[]>('query', {
      uid: 'api::label.label',
      method: 'findMany',
      params: { where: { title: 'gone' } },
    });
    expect(labels).toEqual([]);
    await receiver.settle(300);
    expect(receiver.requests).toEqual([]);
  });

  it('leaves with the commit of its write, and not before', async () => {
    await createWebhook(site, receiver.url);
    const held = site.evaluate(async ({ strapi }) => {
      await strapi.db.transaction(async () => {
        await strapi.service('plugin::switchboard.events').send('order.placed', { n: 8 });
        await new Promise((resolve) => setTimeout(resolve, 700));
      });
      return Date.now();
    });
    const committedAt = await held;
    const [post] = await receiver.waitFor(1);
    expect(post!.at).toBeGreaterThanOrEqual(committedAt - 100);
  });

  itOnce(database)('is kept for later where the process dies between commit and wake', async () => {
    await createWebhook(site, receiver.url);
    // Committed and killed in one go: the dispatcher is woken a macrotask after the commit.
    await site
      .evaluate(async ({ strapi }) => {
        await strapi.service('plugin::switchboard.events').send('order.placed', { n: 9 });
        process.kill(process.pid, 'SIGKILL');
      })
      .catch(() => {});
    await site.restart();
    const [post] = await receiver.waitFor(1);
    expect(post!.json.data).toEqual({ n: 9 });
  });

  itOnce(database)('goes to each webhook that asked, under an id of its own', async () => {
    for (let index = 0; index < 3; index += 1) {
      await createWebhook(site, `${receiver.url}${index}`);
    }
    expect(await send(site, 'order.placed', { n: 10 })).toBe(3);
    await receiver.waitFor(3);
    expect(receiver.requests.map(({ path }) => path).sort()).toEqual(['/0', '/1', '/2']);
    expect(arrivals(receiver).size).toBe(3);
  });

  itOnce(database)(
    'cannot fail the write by data that JSON cannot hold; the log says so',
    async () => {
      await createWebhook(site, receiver.url);
      const queued = await site.evaluate(async ({ strapi }) => {
        const events = strapi.service('plugin::switchboard.events');
        const round: Record<string, unknown> = {};
        round.self = round;
        return [await events.send('order.placed', round), await events.send('not a name', {})];
      });
      expect(queued).toEqual([0, 0]);
      const log = await logSoFar(site);
      expect(log).toContain('the event order.placed could not be written');
      expect(log).toContain('is not a valid event name');
    }
  );

  it('takes its log with it when the webhook is deleted', async () => {
    const webhook = await createWebhook(site, receiver.url);
    await send(site, 'order.placed', {});
    await waitForDelivery(site, webhook.id, ({ status }) => status === 'sent');
    expect((await removeWebhook(site, webhook.id)).status).toBe(204);
    expect(await countRows(site, 'webhook_id = ?', [webhook.id])).toBe(0);
  });

  it('reads the log in pages, newest first, by status', async () => {
    const webhook = await createWebhook(site, receiver.url);
    for (let n = 0; n < 5; n += 1) await send(site, 'order.placed', { n });
    await waitFor(
      async () => (await listDeliveries(site, webhook.id, '?status=sent')).length === 5
    );
    const page = await listDeliveries(site, webhook.id, '?page=2&per_page=2');
    expect(page.map(({ request }) => JSON.parse(request.body).data.n)).toEqual([2, 1]);
    expect(await listDeliveries(site, webhook.id, '?status=failed')).toEqual([]);
  });

  // What follows is of what is sent, and when, whatever it is that keeps its rows.
  if (!anyDatabase().includes(database)) return;

  it('arrives within a second', async () => {
    await createWebhook(site, receiver.url);
    const delays: number[] = [];
    // Most of them: a machine that is busy with something else is late now and then.
    for (let n = 0; n < 5; n += 1) {
      const sentAt = Date.now();
      await send(site, 'order.placed', { n });
      const posts = await receiver.waitFor(n + 1);
      delays.push(posts[n]!.at - sentAt);
    }
    expect(delays.sort((a, b) => a - b)[2]).toBeLessThan(1000);
  });

  it('is verified by standardwebhooks, by svix, and by a receiver made from the contract', async () => {
    const { Webhook: SvixWebhook } = await import('svix');
    const webhook = await createWebhook(site, receiver.url);
    await send(site, 'order.placed', { n: 2 });
    const [post] = await receiver.waitFor(1);
    const { headers, body } = post!;
    expect(signedWith(webhook.secret!, post!)).toBe(true);
    expect(new StandardWebhook(webhook.secret!).verify(body, headers)).toEqual(post!.json);
    expect(() => new SvixWebhook(webhook.secret!).verify(body, headers)).not.toThrow();
  });

  it('keeps id and body on a retry, with a new time and signature', async () => {
    const webhook = await createWebhook(site, receiver.url);
    receiver.enqueue({ status: 500 }, { status: 503 });
    await send(site, 'order.placed', { n: 3 });
    const posts = await receiver.waitFor(3);
    expect(new Set(posts.map(({ body }) => body)).size).toBe(1);
    expect(new Set(posts.map(({ headers }) => headers['x-service-delivery'])).size).toBe(1);
    const stamps = posts.map(({ headers }) => Number(headers['x-service-timestamp']));
    expect(stamps[1]).toBeGreaterThan(stamps[0]!);
    expect(stamps[2]).toBeGreaterThan(stamps[1]!);
    for (const post of posts) expect(signedWith(webhook.secret!, post)).toBe(true);
    const delivery = await waitForDelivery(site, webhook.id, ({ status }) => status === 'sent');
    expect(delivery.attempts.map(({ error }) => error)).toEqual(['http_500', 'http_503', null]);
  });

  it('is signed with the new secret from the moment of rotation, queued deliveries too', async () => {
    const webhook = await createWebhook(site, receiver.url);
    receiver.enqueue({ status: 500 });
    await send(site, 'order.placed', { n: 4 });
    await receiver.waitFor(1);
    const rotated = await site.request('POST', `/api/fw-crm/v1/webhooks/${webhook.id}/secret`);
    expect(rotated.body).toEqual({ secret: expect.stringMatching(/^whsec_/) });
    expect(rotated.body.secret).not.toBe(webhook.secret);
    const [first, second] = await receiver.waitFor(2);
    expect(signedWith(webhook.secret!, first!)).toBe(true);
    expect(signedWith(webhook.secret!, second!)).toBe(false);
    expect(signedWith(rotated.body.secret, second!)).toBe(true);
  });

  it('is not queued where nobody asked, or who asked is switched off', async () => {
    const other = await createWebhook(site, receiver.url, { active: false });
    expect(await send(site, 'order.placed', {})).toBe(0);
    expect(await countRows(site, 'webhook_id = ?', [other.id])).toBe(0);
  });

  it('fails as secret_unavailable where the secret no longer decrypts, and sends nothing', async () => {
    const webhook = await createWebhook(site, receiver.url);
    await sql(site, 'UPDATE switchboard_webhooks SET secret = ? WHERE id = ?', [
      'junk',
      webhook.id,
    ]);
    await send(site, 'order.placed', {});
    const delivery = await waitForDelivery(site, webhook.id, ({ tries }) => tries > 0);
    expect(delivery).toMatchObject({ error: 'secret_unavailable', answer: null });
    expect(receiver.requests).toEqual([]);
  });

  it('ends failed after the last try, and Send again now makes one more each time', async () => {
    const webhook = await createWebhook(site, receiver.url);
    receiver.respond({ status: 500, body: 'no' });
    await send(site, 'order.placed', {});
    const failed = await waitForDelivery(site, webhook.id, ({ status }) => status === 'failed');
    expect(failed).toMatchObject({ tries: 3, next_attempt_at: null, error: 'http_500' });
    expect(failed.finished_at).not.toBeNull();

    const again = await retryDelivery(site, failed.id);
    expect(again.body).toMatchObject({ status: 'failed', tries: 4, next_attempt_at: null });
    receiver.respond({});
    const mended = await retryDelivery(site, failed.id);
    expect(mended.body).toMatchObject({ status: 'sent', tries: 5, error: null });
    expect(arrivals(receiver).size).toBe(1);
    await sleep(1500);
    expect(receiver.requests).toHaveLength(5);
  });

  it('waits while its webhook is off and goes out when it is switched on again', async () => {
    const webhook = await createWebhook(site, receiver.url);
    receiver.respond({ status: 500 });
    await send(site, 'order.placed', { n: 11 });
    await waitForDelivery(site, webhook.id, ({ tries }) => tries === 1);
    await updateWebhook(site, webhook.id, { active: false });
    const seen = receiver.requests.length;
    receiver.respond({});
    await sleep(2500);
    expect(receiver.requests).toHaveLength(seen);
    expect((await listDeliveries(site, webhook.id))[0]).toMatchObject({ status: 'pending' });
    await updateWebhook(site, webhook.id, { active: true });
    await waitForDelivery(site, webhook.id, ({ status }) => status === 'sent', 3000);
    expect(arrivals(receiver).size).toBe(1);
  });
});
