import { adminActionId } from '../../shared/contracts/permissions';
import type { WebhookWithSecret } from '../../shared/contracts/webhooks';
import { createAdminRole, createAdminUser } from '../support/accounts';
import { anyDatabase, describeEach } from '../support/databases';
import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import {
  createWebhook,
  getWebhook,
  listDeliveries,
  logSoFar,
  removeWebhooks,
  retryDelivery,
  send,
  sql,
  testWebhook,
  updateWebhook,
  useSiteAndReceiver,
  waitForDelivery,
} from './delivery-support';

const API = '/api/fw-crm/v1';
const TOKEN = 'Bearer canary-token-4711';
const PLAIN = 'canary-plain-0815';
const OWN = { Authorization: TOKEN, 'X-Tenant': PLAIN };

describe.each(['got', 'node'])('posted with %s', (client) => {
  describeEach(anyDatabase(), 'headers of a webhook’s own', (database) => {
    let site: Site;
    let receiver: Receiver;

    useSiteAndReceiver(
      { database, webhooks: { client, pollSeconds: 1, retryScheduleSeconds: [1] } },
      (...started) => {
        [site, receiver] = started;
      }
    );

    it('are on each try, the same, and on a test', async () => {
      const { id } = await createWebhook(site, receiver.url, { headers: OWN });
      receiver.enqueue({ status: 500 });
      await send(site, 'shop.one', { id: 1 });
      await receiver.waitFor(2);
      await testWebhook(site, id);
      const posts = await receiver.waitFor(3);
      for (const { headers } of posts) {
        expect(headers).toMatchObject({
          authorization: TOKEN,
          'x-tenant': PLAIN,
          'content-type': 'application/json',
          'user-agent': expect.stringMatching(/^Switchboard/),
          'x-service-signature': expect.stringMatching(/^sha256=/),
        });
      }
    });

    it('are as they are now, for what waits too', async () => {
      const { id } = await createWebhook(site, receiver.url, { headers: OWN });
      receiver.respond({ status: 500 });
      await send(site, 'shop.one');
      const failed = await waitForDelivery(site, id, ({ status }) => status === 'failed');
      await updateWebhook(site, id, { headers: { 'X-Tenant': 'south', 'User-Agent': 'Shop' } });
      receiver.clear();
      receiver.respond({});
      expect((await retryDelivery(site, failed.id)).body.status).toBe('sent');
      const [post] = receiver.requests;
      expect(post?.headers).toMatchObject({ 'x-tenant': 'south', 'user-agent': 'Shop' });
      expect(post?.headers).not.toHaveProperty('authorization');
    });

    it('are *** in the log, also where a receiver answers what it was sent', async () => {
      const { id } = await createWebhook(site, receiver.url, { headers: OWN });
      receiver.respond({
        body: JSON.stringify({ you: { sent: TOKEN, token: TOKEN.slice(7), tenant: PLAIN } }),
        headers: { 'x-echo': PLAIN },
      });
      await testWebhook(site, id);
      await send(site, 'shop.one');
      await waitForDelivery(
        site,
        id,
        ({ event, status }) => event === 'shop.one' && status === 'sent'
      );
      const log = await listDeliveries(site, id);
      expect(log).toHaveLength(2);
      for (const { request, answer } of log) {
        expect(request.headers).toMatchObject({ Authorization: '***', 'X-Tenant': '***' });
        expect(answer?.body).toContain('***');
      }
      const rows = await sql(site, 'SELECT * FROM switchboard_attempts');
      expect(JSON.stringify([log, rows])).not.toMatch(/canary/);
      expect(await logSoFar(site)).not.toMatch(/canary/);
    });

    it('are not for hooks to see, which may give one of that name and the others stay', async () => {
      await createWebhook(site, receiver.url, { headers: OWN });
      await site.evaluate(({ strapi, state }) => {
        state.handed = [];
        const hook = strapi.hook('service_crm_webhook_request_args');
        // eslint-disable-next-line @typescript-eslint/no-explicit-any -- the hook's own type is not here
        hook.register(function once(value: any) {
          hook.delete(once);
          state.handed.push(structuredClone(value));
          return { ...value, args: { ...value.args, headers: { 'x-tenant': 'of the hook' } } };
        });
      });
      await send(site, 'shop.one');
      const [post] = await receiver.waitFor(1);
      expect(post?.headers).toMatchObject({ authorization: TOKEN, 'x-tenant': 'of the hook' });
      const handed = await site.control('state', { key: 'handed' });
      expect(handed).toHaveLength(1);
      expect(JSON.stringify(handed)).not.toMatch(/canary/);
    });

    it('are sealed in the database', async () => {
      await createWebhook(site, receiver.url, { headers: OWN });
      const [row] = await sql<{ headers: string }>(site, 'SELECT * FROM switchboard_webhooks');
      expect(Object.keys(JSON.parse(row!.headers))).toEqual(Object.keys(OWN));
      expect(JSON.stringify(row)).not.toMatch(/canary/);
    });
  });
});

describe('headers of a webhook’s own', () => {
  let site: Site;
  let receiver: Receiver;
  beforeAll(async () => {
    receiver = await startReceiver();
    site = await startSite({ options: { webhooks: { pollSeconds: 1 } } });
  }, 120_000);
  afterAll(async () => {
    await receiver?.close();
    await site?.stop();
  }, 60_000);
  afterEach(() => removeWebhooks(site));

  const create = (headers: unknown) =>
    site.request('POST', `${API}/webhooks`, {
      body: { name: 'w', url: receiver.url, events: ['*'], headers },
    });

  it('are shown where the secret is, their names everywhere, and their values nowhere else', async () => {
    const made = await createWebhook(site, receiver.url, { headers: OWN });
    expect(made).toMatchObject({ headers: OWN, header_names: Object.keys(OWN) });
    expect(await getWebhook(site, made.id)).toMatchObject({ headers: OWN });
    const list = await site.request('GET', `${API}/webhooks`);
    const changed = await updateWebhook(site, made.id, { name: 'renamed' });
    const reader = await createAdminUser(site, {
      role: await createAdminRole(site, [adminActionId('webhooks.read')]),
    });
    const as = { token: reader.token };
    const seen = await site.request('GET', `/switchboard/webhooks/${made.id}`, { as });
    for (const one of [list.body.data[0], changed.body, seen.body.data]) {
      expect(one).toMatchObject({ id: made.id, header_names: Object.keys(OWN) });
      expect(one).not.toHaveProperty('headers');
      expect(JSON.stringify(one)).not.toMatch(/canary/);
    }
    const admin = await site.request('GET', `/switchboard/webhooks/${made.id}`);
    expect(admin.body.data.headers).toEqual(OWN);
  });

  it('are none unless somebody gives them', async () => {
    const made = await createWebhook(site, receiver.url);
    expect([made.headers, made.header_names]).toEqual([{}, []]);
  });

  it('stay when something else is changed, and go with null or {}', async () => {
    for (const nothing of [null, {}]) {
      const { id } = await createWebhook(site, receiver.url, { headers: OWN });
      await updateWebhook(site, id, { url: `${receiver.url}elsewhere` });
      expect((await getWebhook(site, id)).headers).toEqual(OWN);
      expect((await updateWebhook(site, id, { headers: nothing })).body.header_names).toEqual([]);
      expect((await getWebhook(site, id)).headers).toEqual({});
    }
  });

  it('are replaced as a whole, but for values that are sent back as ***', async () => {
    const { id } = await createWebhook(site, receiver.url, { headers: OWN });
    const put = await site.request('PUT', `${API}/webhooks/${id}`, {
      body: { headers: { authorization: '***', 'X-New': 'new' } },
    });
    expect(put.status).toBe(200);
    expect((await getWebhook(site, id)).headers).toEqual({ authorization: TOKEN, 'X-New': 'new' });
    const unknown = await updateWebhook(site, id, { headers: { 'X-Unknown': '***' } });
    expect(unknown.status).toBe(400);
    expect(unknown.body.error.details.errors[0]).toMatchObject({
      path: ['headers'],
      code: 'header_unknown',
    });
    expect((await create({ 'X-A': '***' })).status).toBe(400);
  });

  it.each([
    ['Host'],
    ['content-type'],
    ['CONTENT-LENGTH'],
    ['x-service-event'],
    ['Webhook-Id'],
    ['Transfer-Encoding'],
  ])('are not %s', async (name) => {
    const answer = await create({ [name]: 'x' });
    expect(answer.status).toBe(400);
    expect(answer.body.error).toMatchObject({
      name: 'ValidationError',
      message: expect.stringContaining(`headers.${name}`),
    });
    expect(answer.body.error.details.errors).toEqual([
      expect.objectContaining({ path: ['headers', name], code: 'header_reserved' }),
    ]);
  });

  it.each([
    [{ 'X A': 'x' }],
    [{ 'X-A': 'a\r\nX-B: b' }],
    [{ 'X-A': 5 }],
    [{ 'X-A': null }],
    [['X-A: x']],
    ['X-A: x'],
    [Object.fromEntries(Array.from({ length: 21 }, (_one, at) => [`X-${at}`, 'x']))],
  ])('are not %j', async (headers) => {
    const answer = await create(headers);
    expect(answer.status).toBe(400);
    expect(answer.body.error.details.errors[0].path[0]).toBe('headers');
  });

  it('are not sent to another address, be it on the same host, by who may not reveal them', async () => {
    const { id } = await createWebhook(site, receiver.url, { headers: OWN });
    const actions = ['webhooks.read', 'webhooks.update'] as const;
    const editor = await createAdminUser(site, {
      role: await createAdminRole(site, actions.map(adminActionId)),
    });
    const put = (body: object) =>
      site.request('PUT', `/switchboard/webhooks/${id}`, { as: { token: editor.token }, body });
    const same = receiver.url.replace('http://', 'HTTP://');
    expect((await put({ url: same, name: 'renamed' })).status).toBe(200);
    const url = 'https://collector.example.com/';
    for (const moved of [url, `${receiver.url}path`, `${receiver.url}?to=other`]) {
      for (const body of [{ url: moved }, { url: moved, headers: { Authorization: '***' } }]) {
        const answer = await put({ ...body, active: true, waiting: 'discard' });
        expect(answer.status).toBe(400);
        expect(answer.body.error.details.errors).toEqual([
          expect.objectContaining({ path: ['headers'], code: 'headers_moved' }),
        ]);
      }
    }
    expect((await getWebhook(site, id)).url).toBe(same);
    expect((await put({ url, headers: { Authorization: 'new' } })).status).toBe(200);
    expect((await updateWebhook(site, id, { url: receiver.url })).status).toBe(200);
  });

  it('stay where they are, too, when they are given while the address is changed', async () => {
    const { id } = await createWebhook(site, receiver.url);
    const moved = await site.evaluate(
      async ({ strapi }, webhook, url) => {
        const webhooks = strapi.service('plugin::switchboard.webhooks');
        // Both look at it before either writes, and the first one writes first.
        const [, moving] = await Promise.allSettled([
          webhooks.update(webhook, { headers: { 'X-Own': 'value' } }, { mayMoveHeaders: true }),
          webhooks.update(webhook, { url }, { mayMoveHeaders: false }),
        ]);
        return moving.status === 'rejected' ? moving.reason.message : null;
      },
      id,
      `${receiver.url}path`
    );
    expect(moved).toMatch(/headers: must be given again/);
    expect((await getWebhook(site, id)).url).toBe(receiver.url);
  });

  it('fail a delivery whose values can no longer be read, and are given anew', async () => {
    const { id } = await createWebhook(site, receiver.url, { headers: OWN });
    const quiet = { webhooks: { pollSeconds: 1 } };
    await site.restart({ options: quiet, env: { ENCRYPTION_KEY: 'another-key' } });
    receiver.clear();
    await site.request('POST', `${API}/webhooks/${id}/secret`);
    expect((await testWebhook(site, id)).body).toMatchObject({
      ok: false,
      error: 'secret_unavailable',
    });
    expect(receiver.requests).toEqual([]);
    const shown = await site.request<WebhookWithSecret>('GET', `${API}/webhooks/${id}`);
    expect(shown.body.headers).toEqual({ Authorization: null, 'X-Tenant': null });
    await updateWebhook(site, id, { headers: { Authorization: 'new' } });
    expect((await testWebhook(site, id)).body).toMatchObject({ ok: true });
    expect(receiver.requests[0]?.headers).toMatchObject({ authorization: 'new' });
  }, 60_000);
});
