import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import {
  createWebhook,
  listDeliveries,
  removeWebhooks,
  retryDelivery,
  send,
  sql,
  testWebhook,
  updateWebhook,
  waitForDelivery,
} from './delivery-support';

const WEBHOOKS = '/api/fw-crm/v1/webhooks';
/** Never asked for anything, so any public address will do; documentation ranges are refused. */
const PUBLIC = 'https://93.184.216.34/hook';

/** Every way to write an address of this machine, of its network or of no public place. */
const REFUSED = [
  'http://127.0.0.1/',
  'http://127.1/',
  'http://2130706433/',
  'http://0x7f.0.0.1/',
  'http://0177.0.0.1/',
  'http://0/',
  'http://127.0.0.1.:8080/',
  'http://%31%32%37.0.0.1/',
  'http://①②⑦.0.0.1/',
  'http://10.1.2.3/',
  'http://192.168.1.1/',
  'http://172.16.0.1/',
  'http://100.64.0.1/',
  'http://169.254.169.254/latest/meta-data/',
  'http://168.63.129.16/',
  'http://[::1]/',
  'http://[::]/',
  'http://[::ffff:127.0.0.1]/',
  'http://[::ffff:7f00:1]/',
  'http://[64:ff9b::7f00:1]/',
  'http://[2002:7f00:1::]/',
  'http://[fe80::1]/',
  'http://[fd00::1]/',
  'http://[2001:db8::1]/',
  'http://localhost/',
  'http://localhost.:1337/',
];

/** What is no address to post to at all. */
const INVALID = [
  'ftp://example.com/',
  'file:///etc/passwd',
  'not a url',
  'https://user:pw@example.com/',
  '//x/',
];

const setNames = (site: Site, names: Record<string, string[]>): Promise<void> =>
  site.evaluate(({ require }, table) => {
    const dns = require('node:dns/promises');
    dns.names = table;
  }, names);

describe('the address guard of a live site', () => {
  let site: Site;
  let receiver: Receiver;

  beforeAll(async () => {
    receiver = await startReceiver();
    site = await startSite({
      nodeEnv: 'production',
      options: {
        webhooks: {
          allowPrivateNetworks: false,
          retryScheduleSeconds: [1],
          timeoutMs: 1000,
          pollSeconds: 1,
          // The test's names are those of the site's own thread.
          threads: 0,
        },
      },
      // A resolver of the test's: the names of the test, and none of the world's.
      setupFiles: [require.resolve('../support/handlers/fake-names.js')],
    });
  }, 120_000);
  afterAll(async () => {
    await receiver?.close();
    await site?.stop();
  }, 60_000);
  afterEach(async () => {
    await removeWebhooks(site);
    await site.evaluate(({ state }) => {
      state.allowLocal = false;
      state.rewriteTo = null;
    });
    expect(receiver.requests).toEqual([]);
  });

  it.each(REFUSED)('refuses to save %s: 400, and names the field', async (url) => {
    const answer = await site.request('POST', WEBHOOKS, {
      body: { name: 'x', url, events: ['*'] },
    });
    expect(answer.status).toBe(400);
    expect(answer.body.error.name).toBe('ValidationError');
    expect(answer.body.error.details.errors[0].path).toEqual(['url']);
  });

  it.each(INVALID)('refuses to save %s, which is no address to post to', async (url) => {
    const answer = await site.request('POST', WEBHOOKS, {
      body: { name: 'x', url, events: ['*'] },
    });
    expect(answer.status).toBe(400);
    expect(answer.body.error.details.errors[0].path).toEqual(['url']);
  });

  it('refuses a change to such an address too, and keeps the old one', async () => {
    const { id } = await createWebhook(site, PUBLIC);
    const answer = await updateWebhook(site, id, { url: 'http://10.0.0.1/' });
    expect(answer.status).toBe(400);
    expect((await site.request('GET', `${WEBHOOKS}/${id}`)).body.url).toBe(PUBLIC);
  });

  it('refuses a name with one bad address among good ones; accepts one that has none yet', async () => {
    await setNames(site, {
      'mixed.example.test': ['93.184.216.34', '10.0.0.1'],
      'good.example.test': ['93.184.216.34', '2606:2800:220:1::1'],
    });
    const save = (url: string) =>
      site.request('POST', WEBHOOKS, { body: { name: 'x', url, events: ['*'] } });
    expect((await save('https://mixed.example.test/')).status).toBe(400);
    expect((await save('https://good.example.test/')).status).toBe(201);
    expect((await save('https://not-yet.example.test/')).status).toBe(201);
  });

  it('does not say which address a refused name has', async () => {
    await setNames(site, { 'inner.example.test': ['10.20.30.40'] });
    const answer = await site.request('POST', WEBHOOKS, {
      body: { name: 'x', url: 'https://inner.example.test/', events: ['*'] },
    });
    expect(answer.status).toBe(400);
    expect(answer.text).not.toContain('10.20.30.40');
  });

  it('blocks at delivery a name that was good when it was saved', async () => {
    await setNames(site, { 'turns.example.test': ['93.184.216.34'] });
    const url = `http://turns.example.test:${receiver.port}/`;
    const { id } = await createWebhook(site, url);
    await setNames(site, { 'turns.example.test': ['127.0.0.1'] });
    await send(site, 'order.placed', {});
    const delivery = await waitForDelivery(site, id, ({ status }) => status === 'failed');
    expect(delivery).toMatchObject({ tries: 2, error: 'blocked_address', answer: null });
  });

  it('blocks at delivery an address that came into the database past the routes', async () => {
    const { id } = await createWebhook(site, PUBLIC);
    const open = `http://127.1:${receiver.port}/`;
    const shut = 'http://127.0.0.1:9/';
    const seen = [];
    for (const url of [open, shut]) {
      await sql(site, 'UPDATE switchboard_webhooks SET url = ? WHERE id = ?', [url, id]);
      await send(site, 'order.placed', {});
      const delivery = await waitForDelivery(
        site,
        id,
        (one) => one.tries > 0 && one.request.url === url
      );
      seen.push({ error: delivery.error, answer: delivery.answer });
    }
    // An open port and a closed one read the same.
    expect(seen[0]).toEqual({ error: 'blocked_address', answer: null });
    expect(seen[1]).toEqual(seen[0]);
  });

  it('blocks a test and a retry of such an address', async () => {
    const { id } = await createWebhook(site, PUBLIC, { active: false });
    await sql(site, 'UPDATE switchboard_webhooks SET url = ? WHERE id = ?', [receiver.url, id]);
    const tested = await testWebhook(site, id);
    expect(tested.body).toMatchObject({ ok: false, response_code: null, error: 'blocked_address' });
    const [logged] = await listDeliveries(site, id);
    expect((await retryDelivery(site, logged!.id)).body).toMatchObject({
      status: 'failed',
      error: 'blocked_address',
    });
  });

  it('judges the URL that a request-args handler made of it', async () => {
    const { id } = await createWebhook(site, PUBLIC);
    await site.evaluate(({ state }, url) => {
      state.rewriteTo = url;
    }, receiver.url);
    await send(site, 'order.placed', {});
    const delivery = await waitForDelivery(site, id, ({ tries }) => tries > 0);
    expect(delivery).toMatchObject({ error: 'blocked_address', answer: null });
    expect(delivery.request.url).toBe(receiver.url);
  });

  it('asks service_crm_webhook_allow_local each time: on and off at once, kept connections too', async () => {
    await site.evaluate(({ state }) => {
      state.allowLocal = true;
    });
    const { id } = await createWebhook(site, receiver.url);
    await send(site, 'order.placed', { n: 1 });
    await receiver.waitFor(1);
    await waitForDelivery(site, id, ({ status }) => status === 'sent');
    receiver.clear();
    await site.evaluate(({ state }) => {
      state.allowLocal = false;
    });
    await send(site, 'order.placed', { n: 2 });
    const delivery = await waitForDelivery(site, id, ({ error }) => error !== null);
    expect(delivery.error).toBe('blocked_address');
  });
});
