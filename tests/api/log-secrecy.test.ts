import { describeEach, anyDatabase } from '../support/databases';
import type { Receiver } from '../support/receiver';
import type { Site } from '../support/site';
import { waitFor } from '../support/wait';
import {
  createWebhook,
  listDeliveries,
  logSoFar,
  send,
  testWebhook,
  useSiteAndReceiver,
} from './delivery-support';

const CANARY = 'canary-4711';

const rename = (site: Site, from: string, to: string) =>
  site.control('sql', { statement: `ALTER TABLE ${from} RENAME TO ${to}` });

describeEach(anyDatabase(), 'the log of a site whose database refuses', (database) => {
  let site: Site;
  let receiver: Receiver;
  useSiteAndReceiver({ database, webhooks: { pollSeconds: 1 } }, (s, r) => {
    [site, receiver] = [s, r];
  });

  /** What the site printed while a table was away. */
  const logWithout = async (table: string, work: () => Promise<void>): Promise<string> => {
    const before = site.log().length;
    await rename(site, table, `${table}_away`);
    try {
      await work();
    } finally {
      await rename(site, `${table}_away`, table);
    }
    return (await logSoFar(site)).slice(before);
  };

  it('holds no payload of a write whose delivery could not be stored', async () => {
    const { id, secret } = await createWebhook(site, receiver.url);
    const log = await logWithout('switchboard_deliveries', async () => {
      const rest = await site.request('POST', '/api/fw-crm/v1/contacts', {
        body: { first_name: CANARY, email: `${CANARY}@example.test` },
      });
      expect(rest.status).toBe(500);
      expect(rest.text).not.toContain(CANARY);
      const admin = await site.request(
        'POST',
        '/content-manager/collection-types/plugin::switchboard.contact',
        { body: { first_name: CANARY, email: `${CANARY}2@example.test` } }
      );
      expect(admin.status).toBe(500);
      await expect(send(site, 'order.placed', { note: CANARY })).rejects.toThrow();
    });
    // Something was logged, and it says what is wrong.
    expect(log).toMatch(/switchboard_deliveries|42P01|ER_NO_SUCH_TABLE/);
    expect(log).not.toContain(CANARY);
    expect(log).not.toContain(secret);
    expect(log).not.toMatch(/insert into/i);
    await site.request('DELETE', `/api/fw-crm/v1/webhooks/${id}`);
  });

  it('holds no input of a route whose statement failed', async () => {
    const log = await logWithout('switchboard_webhooks', async () => {
      const answer = await site.request('POST', '/api/fw-crm/v1/webhooks', {
        body: { name: CANARY, url: `${receiver.url}${CANARY}`, events: ['*'] },
      });
      expect(answer.status).toBe(500);
    });
    expect(log).not.toContain(CANARY);
    expect(log).not.toMatch(/insert into/i);
  });

  it('holds no answer of a receiver whose outcome could not be recorded', async () => {
    const { id } = await createWebhook(site, receiver.url);
    receiver.respond({ body: CANARY, delayMs: 700 });
    receiver.clear();
    await send(site, 'order.placed', { note: CANARY });
    await receiver.waitFor(1);
    const log = await logWithout('switchboard_deliveries', async () => {
      const before = site.log().length;
      await waitFor(() => /could not be recorded/.test(site.log().slice(before)), 15_000);
    });
    expect(log).not.toContain(CANARY);
    receiver.respond({});
    await site.request('DELETE', `/api/fw-crm/v1/webhooks/${id}`);
  });

  it('shows no credential of a request’s headers, nor of its answer’s', async () => {
    await site.evaluate(({ strapi }) => {
      // eslint-disable-next-line @typescript-eslint/no-explicit-any -- the hook's own type is not here
      strapi.hook('service_crm_webhook_request_args').register((value: any) => ({
        ...value,
        args: {
          ...value.args,
          headers: {
            ...value.args.headers,
            'X-Auth': 'hunter2',
            'X-Custom': 'Bearer hunter2',
            'X-Callback': 'https://a.example/?n=1&token=hunter2',
          },
        },
      }));
    });
    receiver.respond({ headers: { 'set-cookie': 'sid=hunter2', location: '/?api_key=hunter2' } });
    receiver.clear();
    const { id } = await createWebhook(site, `${receiver.url}?shown=as-sent`);
    await testWebhook(site, id);
    const [post] = await receiver.waitFor(1);
    expect(post?.headers['x-auth']).toBe('hunter2');
    const [delivery] = await listDeliveries(site, id);
    expect(JSON.stringify(delivery)).not.toContain('hunter2');
    expect(delivery?.request.url).toContain('?shown=as-sent');
    expect(delivery?.request.headers).toMatchObject({ 'X-Auth': '***', 'X-Custom': '***' });
  });
});
