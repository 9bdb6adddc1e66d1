import { setTimeout as pause } from 'node:timers/promises';
import { verifyPost } from '../unit/webhooks/support/verify-post';
import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import {
  countRows,
  createWebhook,
  insertDeliveries,
  removeWebhooks,
  send,
  sql,
  waitForDelivery,
} from './delivery-support';

interface Seen {
  name: string;
  value: Record<string, unknown> & { webhook?: { id: number } };
}

describe('the seven extension hooks', () => {
  let site: Site;
  let receiver: Receiver;
  let other: Receiver;

  beforeAll(async () => {
    receiver = await startReceiver();
    other = await startReceiver();
    site = await startSite({
      options: { webhooks: { pollSeconds: 1, timeoutMs: 1000, retryScheduleSeconds: [1] } },
      setupFiles: [require.resolve('../support/handlers/loyalty.js')],
    });
  }, 120_000);
  afterAll(async () => {
    await receiver?.close();
    await other?.close();
    await site?.stop();
  }, 60_000);
  beforeEach(async () => {
    receiver.clear();
    other.clear();
    receiver.respond({});
    await site.evaluate(({ state }) => {
      state.seen = [];
      state.mode = {};
    });
  });
  afterEach(() => removeWebhooks(site));

  const setMode = (mode: Record<string, unknown>) =>
    site.evaluate(({ state }, next) => {
      state.mode = next;
    }, mode);
  const seen = async (name: string): Promise<Seen['value'][]> =>
    (await site.control<Seen[]>('state', { key: 'seen' }))
      .filter((one) => one.name === name)
      .map(({ value }) => value);

  it('events: an entry is offered, may be chosen, and an unknown one may not', async () => {
    const { body } = await site.request('GET', '/api/fw-crm/v1/webhooks/events');
    expect(body.data).toContainEqual(
      expect.objectContaining({ event: 'loyalty.earned', label: 'Points earned', group: 'Loyalty' })
    );
    await createWebhook(site, receiver.url, { events: ['loyalty.earned'] });
    const refused = await site.request('POST', '/api/fw-crm/v1/webhooks', {
      body: { name: 'x', url: receiver.url, events: ['loyalty.spent'] },
    });
    expect(refused.status).toBe(400);
    expect(refused.text).toContain('loyalty.spent');
  });

  it('service_crm_webhook sends an event to who asked, and to nobody else', async () => {
    await createWebhook(site, receiver.url, { events: ['loyalty.earned'] });
    await createWebhook(site, other.url, { events: ['contact.created'] });
    await site.control('hook', {
      name: 'service_crm_webhook',
      argument: { event: 'loyalty.earned', data: { points: 5 } },
    });
    const [post] = await receiver.waitFor(1);
    expect(post!.json).toMatchObject({ event: 'loyalty.earned', data: { points: 5 } });
    await other.settle(300);
    expect(other.requests).toEqual([]);
  });

  it('payload: changes one webhook’s payload before it is frozen, or skips that webhook', async () => {
    const changed = await createWebhook(site, `${receiver.url}changed`, { name: 'changed' });
    await createWebhook(site, `${receiver.url}plain`);
    const skipped = await createWebhook(site, other.url, { name: 'skipped' });
    expect(await send(site, 'loyalty.earned', { points: 5 })).toBe(2);
    await receiver.waitFor(2);
    const byPath = new Map(receiver.requests.map((post) => [post.path, post]));
    expect(byPath.get('/changed')!.json.data).toEqual({ points: 5, extra: 'changed' });
    expect(byPath.get('/plain')!.json.data).toEqual({ points: 5 });
    const now = Math.floor(Date.now() / 1000);
    const post = byPath.get('/changed')!;
    expect(verifyPost(changed.secret!, post.headers, post.raw, now)).toBe(true);
    expect(await countRows(site, 'webhook_id = ?', [skipped.id])).toBe(0);
  });

  it('request_args: adds headers, and can touch neither body, signature, framing nor host', async () => {
    const webhook = await createWebhook(site, receiver.url);
    await setMode({ forge: true });
    await send(site, 'loyalty.earned', { points: 5 });
    const [post] = await receiver.waitFor(1);
    expect(post!.headers).toMatchObject({
      'x-shop': 'north',
      authorization: 'Bearer of-the-receiver',
      host: `127.0.0.1:${receiver.port}`,
      'content-type': 'application/json',
      'content-length': String(post!.raw.length),
      'x-service-event': 'loyalty.earned',
    });
    expect(post!.json.data).toEqual({ points: 5 });
    expect(verifyPost(webhook.secret!, post!.headers, post!.raw, Date.now() / 1000)).toBe(true);
    const delivery = await waitForDelivery(site, webhook.id, ({ status }) => status === 'sent');
    expect(delivery.request.headers).toMatchObject({ Authorization: '***', 'X-Shop': 'north' });
    expect(JSON.stringify(delivery)).not.toContain('of-the-receiver');
  });

  it('delivered: runs after every attempt, with how it went', async () => {
    const { id } = await createWebhook(site, receiver.url);
    receiver.enqueue({ status: 500 });
    await send(site, 'loyalty.earned', {});
    await waitForDelivery(site, id, ({ status }) => status === 'sent');
    const told = await waitFor(async () => {
      const values = await seen('service_crm_webhook_delivered');
      return values.length === 2 ? values : undefined;
    });
    const deliveryId = receiver.requests[0]!.json.id;
    expect(told).toMatchObject([
      {
        delivery_id: deliveryId,
        result: {
          ok: false,
          event: 'loyalty.earned',
          status: 'pending',
          tries: 1,
          response_code: 500,
          error: 'http_500',
        },
        webhook: { id },
      },
      {
        delivery_id: deliveryId,
        result: {
          ok: true,
          status: 'sent',
          tries: 2,
          response_code: 200,
          error: null,
          next_attempt_at: null,
        },
      },
    ]);
  });

  it('never hand a webhook’s secret to a handler', async () => {
    const { secret, id } = await createWebhook(site, receiver.url);
    await send(site, 'loyalty.earned', {});
    await waitForDelivery(site, id, ({ status }) => status === 'sent');
    await waitFor(async () => (await seen('service_crm_webhook_delivered')).length > 0);
    const all = await site.control<Seen[]>('state', { key: 'seen' });
    expect(new Set(all.map(({ name }) => name))).toEqual(
      new Set([
        'service_crm_webhook_payload',
        'service_crm_webhook_request_args',
        'service_crm_webhook_delivered',
      ])
    );
    expect(JSON.stringify(all)).not.toContain(secret);
    expect(JSON.stringify(all)).not.toMatch(/"secret"|whsec_/);
  });

  it('that throw harm no write and no delivery, and the log names them', async () => {
    const { id } = await createWebhook(site, receiver.url);
    await setMode({ throw: true });
    expect(await send(site, 'loyalty.earned', { points: 7 })).toBe(1);
    const delivery = await waitForDelivery(site, id, ({ status }) => status === 'sent');
    expect(JSON.parse(delivery.request.body).data).toEqual({ points: 7 });
    for (const name of ['payload', 'request_args', 'delivered']) {
      await waitFor(() => site.log().includes(`a handler of service_crm_webhook_${name} (loyalty`));
    }
  });

  it.each(['payload', 'events'])(
    '%s: a handler that hangs inside a write costs one deadline',
    async (kind) => {
      const name = `service_crm_webhook_${kind}`;
      for (const path of ['a', 'b', 'c']) await createWebhook(site, `${receiver.url}${path}`);
      // Which event is of which module matters only where one is off.
      const switchCompanies = async (companies: boolean) => {
        const answer = await site.request('PUT', '/switchboard/modules', {
          body: { companies },
          as: 'admin',
        });
        expect(answer).toMatchObject({ status: 200 });
      };
      await switchCompanies(false);
      await site.evaluate(({ strapi, state }, hook) => {
        state.hanging = () => new Promise(() => {});
        strapi.hook(hook).register(state.hanging);
      }, name);
      // What was read before is used for half a second.
      await pause(600);
      const started = performance.now();
      for (let nth = 0; nth < 4; nth += 1) {
        await site.control('documents', {
          uid: 'plugin::switchboard.contact',
          method: 'create',
          params: { data: { email: `hanging-${kind}-${nth}@example.test` } },
        });
      }
      // Without leaving it out: a deadline of 5 s for each write, or for each write and webhook.
      expect(performance.now() - started).toBeLessThan(15_000);
      await receiver.waitFor(12);
      await site.evaluate(
        ({ strapi, state }, hook) => strapi.hook(hook).delete(state.hanging),
        name
      );
      const lines = () => site.log().match(new RegExp(`${name} .*no answer within`, 'g'));
      await waitFor(() => lines());
      expect(lines()).toHaveLength(1);
      await switchCompanies(true);
    },
    90_000
  );

  it('delivered: a handler that hangs holds up neither the log nor other deliveries', async () => {
    const { id } = await createWebhook(site, receiver.url);
    await setMode({ hang: true });
    await insertDeliveries(site, id, 300);
    await site.control('hook', {
      name: 'service_crm_webhook',
      argument: { event: 'loyalty.earned' },
    });
    await waitFor(
      async () => (await countRows(site, 'webhook_id = ? AND status = ?', [id, 'sent'])) === 301,
      // One after another, or a slot's worth at a time, their deadlines of 5 s would add up to more.
      15_000,
      'all to be recorded'
    );
    expect(new Set(receiver.requests.map(({ headers }) => headers['webhook-id'])).size).toBe(301);
    // As many as are recorded. On a slow machine one may end at its limit of a second, perhaps unsent, and is repeated.
    const [recorded] = await sql<Record<'all_of_them' | 'timed_out', number | string>>(
      site,
      `SELECT COUNT(*) AS all_of_them, COUNT(CASE WHEN error = 'timeout' THEN 1 END) AS timed_out
        FROM switchboard_attempts WHERE delivery_id IN
        (SELECT id FROM switchboard_deliveries WHERE webhook_id = ?)`,
      [id]
    );
    const unsent = Number(recorded?.all_of_them) - receiver.requests.length;
    expect(unsent).toBeGreaterThanOrEqual(0);
    expect(unsent).toBeLessThanOrEqual(Number(recorded?.timed_out));
    await setMode({});
  }, 60_000);

  it('log_days: decides how long finished deliveries stay', async () => {
    const { id } = await createWebhook(site, receiver.url, { active: false });
    const daysAgo = (days: number) => Date.now() - days * 86_400_000;
    await insertDeliveries(site, id, 3, {
      ...{ status: 'sent', created_at: daysAgo(6), finished_at: daysAgo(6) },
    });
    await insertDeliveries(site, id, 3, {
      ...{ status: 'sent', created_at: daysAgo(6), finished_at: daysAgo(4) },
    });
    await setMode({ logDays: 5 });
    await site.evaluate(async ({ strapi }) => {
      const job = strapi.cron.jobs.find(
        ({ name }: { name: string }) => name === 'switchboardDeliveryRetention'
      );
      await job.job.invoke(new Date());
    });
    await waitFor(async () => (await countRows(site, 'webhook_id = ?', [id])) === 3);
    expect(await countRows(site, 'webhook_id = ? AND finished_at > ?', [id, daysAgo(5)])).toBe(3);
  });
});
