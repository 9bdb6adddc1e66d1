import http from 'node:http';
import { randomUUID } from 'node:crypto';
import { describeEach, anyDatabase } from '../support/databases';
import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import { sleep, waitFor } from '../support/wait';
import { createWebhook, insertDeliveries, send, sql } from './delivery-support';
import { BASE, createTill, saleBody, type Till } from './pos-till';
import { signBody } from '../support/till-signature';

const LATE = require.resolve('../support/handlers/late-plugin.js');

interface Post {
  path: string;
  headers: Record<string, string>;
  body: string;
}

/** Posts over one open connection until the site is gone; resolves with the answers' statuses. */
const postUntilGone = async (site: Site, next: () => Post, statuses: number[]): Promise<void> => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const one = ({ path, headers, body }: Post) =>
    new Promise<number>((resolve, reject) => {
      const request = http.request(
        `${site.url}${path}`,
        {
          method: 'POST',
          agent,
          headers: {
            'content-type': 'application/json',
            'content-length': Buffer.byteLength(body),
            ...headers,
          },
        },
        (response) => {
          response.resume();
          response.on('error', reject);
          response.on('end', () => resolve(response.statusCode ?? 0));
        }
      );
      request.on('error', reject);
      request.end(body);
    });
  for (let failures = 0; failures < 3;) {
    try {
      statuses.push(await one(next()));
      failures = 0;
    } catch {
      failures += 1;
    }
  }
  agent.destroy();
};

const contactPost = (site: Site) => (): Post => ({
  path: '/api/fw-crm/v1/contacts',
  headers: { authorization: `Bearer ${site.apiToken}` },
  body: JSON.stringify({ email: `${randomUUID()}@example.test` }),
});

const inquiryPost = (site: Site) => (): Post => ({
  path: '/api/inquiries',
  headers: { authorization: `Bearer ${site.apiToken}` },
  body: JSON.stringify({ data: { mail: `${randomUUID()}@example.test` } }),
});

const salePost = (till: Till) => (): Post => {
  const body = JSON.stringify(saleBody([['SKU-1', 1]]));
  const timestamp = String(Math.floor(Date.now() / 1000));
  return {
    path: `${BASE}/sale`,
    headers: {
      'x-pos-key': till.key,
      'x-pos-timestamp': timestamp,
      'x-pos-signature': signBody(till.secret, timestamp, Buffer.from(body)),
    },
    body,
  };
};

/** Writes of the site's own code, outside of any request, until the database is closed. */
const writeUntilGone = (site: Site): Promise<unknown> =>
  site
    .evaluate(async ({ strapi, require }) => {
      const { randomUUID: unique } = require('node:crypto');
      for (;;) {
        await strapi.db
          .query('plugin::switchboard.contact')
          .create({ data: { email: `code-${unique()}@example.test` } });
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    })
    .catch(() => {});

const FORMS = [
  { contentType: 'api::inquiry.inquiry', title: 'Inquiry', fields: { email: 'mail' } },
];

describeEach(anyDatabase(), 'a site that is stopped while requests keep coming', (database) => {
  let site: Site;
  let receiver: Receiver;
  beforeAll(async () => {
    receiver = await startReceiver();
    site = await startSite({
      database,
      setupFiles: [LATE],
      options: { forms: FORMS, pos: { ratePerMinute: 1_000_000 } },
    });
  }, 120_000);
  afterAll(async () => {
    await receiver?.close();
    await site?.stop();
  }, 60_000);

  it.each(['SIGTERM', 'SIGINT'] as const)(
    'has an event for everything that it committed (%s)',
    async (signal) => {
      await createWebhook(site, receiver.url);
      const till = await createTill(site);
      const written: number[] = [];
      const sold: number[] = [];
      const lanes = [
        ...Array.from({ length: 5 }, () => postUntilGone(site, contactPost(site), written)),
        ...Array.from({ length: 2 }, () => postUntilGone(site, inquiryPost(site), written)),
        ...Array.from({ length: 2 }, () => postUntilGone(site, salePost(till), sold)),
      ];
      void writeUntilGone(site);
      await waitFor(() => written.length >= 30 && sold.length >= 3, 60_000, 'answers');
      const stoppedAt = Date.now();
      await site.kill(signal);
      // Bounded by the 10 s that requests and attempts under way are given.
      expect(Date.now() - stoppedAt).toBeLessThan(28_000);
      await Promise.all(lanes);
      const created = written.filter((status) => status === 201).length;
      const accepted = sold.filter((status) => status === 202).length;

      await site.restart();
      const contacts = await sql<{ email: string }>(
        site,
        'SELECT email FROM switchboard_contacts ORDER BY email'
      );
      const inquiries = await sql<{ document_id: string }>(
        site,
        'SELECT document_id FROM inquiries ORDER BY document_id'
      );
      const told = await sql<{ event: string; body: string }>(
        site,
        "SELECT event, body FROM switchboard_deliveries WHERE event IN ('contact.created', 'form.submitted')"
      );
      const dataOf = (event: string) =>
        told.filter((row) => row.event === event).map((row) => JSON.parse(row.body).data);
      const emails = dataOf('contact.created').map((contact) => contact.email);
      expect(contacts.map(({ email }) => email).filter((one) => !emails.includes(one))).toEqual([]);
      const entries = dataOf('form.submitted').map((data) => data.entry_id);
      expect(inquiries.map((row) => row.document_id).filter((id) => !entries.includes(id))).toEqual(
        []
      );
      expect(contacts.length + inquiries.length).toBeGreaterThanOrEqual(created);
      expect(emails).toContain('plugin-destroy@example.test');
      expect(emails).toContain('site-destroy@example.test');
      expect(emails).toContain('closing@example.test');
      const [records] = await sql<{ n: number }>(
        site,
        'SELECT COUNT(*) AS n FROM switchboard_pos_events'
      );
      expect(Number(records?.n)).toBeGreaterThanOrEqual(accepted);
      await sql(
        site,
        "DELETE FROM switchboard_contacts WHERE email IN ('plugin-destroy@example.test', 'site-destroy@example.test', 'closing@example.test')"
      );
      await sql(site, 'UPDATE switchboard_webhooks SET active = ?', [false]);
    },
    240_000
  );
});

describeEach(['sqlite'], 'a request that is under way when the site is stopped', (database) => {
  let site: Site;
  let receiver: Receiver;
  let hanging: Receiver;
  beforeAll(async () => {
    receiver = await startReceiver();
    hanging = await startReceiver({ hang: true });
    site = await startSite({ database });
  }, 120_000);
  afterAll(async () => {
    await receiver?.close();
    await hanging?.close();
    await site?.stop();
  }, 60_000);

  it('is answered; idle connections and receivers that hang do not hold the stop up', async () => {
    receiver.respond({ delayMs: 4000 });
    const slow = await createWebhook(site, receiver.url, { name: 'slow' });
    await createWebhook(site, hanging.url, { name: 'hangs' });
    const idle = new http.Agent({ keepAlive: true });
    await new Promise((resolve) => {
      http.get(`${site.url}/_health`, { agent: idle }, (response) => {
        response.resume();
        response.on('end', resolve);
      });
    });
    await send(site, 'order.placed', { n: 1 });
    await hanging.waitFor(1);
    receiver.clear();
    const test = site.request('POST', `/api/fw-crm/v1/webhooks/${slow.id}/test`);
    await receiver.waitFor(1);
    const stoppedAt = Date.now();
    const gone = site.kill('SIGTERM');
    let isAnswered = false;
    void test.finally(() => (isAnswered = true));
    await waitFor(async () => {
      const late = site.request('GET', '/_health', { as: 'nobody' });
      return (await late.catch((error: { code: string }) => error.code)) === 'ECONNREFUSED';
    });
    expect(isAnswered).toBe(false);
    expect(await test).toMatchObject({ status: 200, body: { ok: true, response_code: 200 } });
    await gone;
    expect(Date.now() - stoppedAt).toBeLessThan(28_000);
    idle.destroy();
    await site.restart();
    expect(
      await sql(site, "SELECT status FROM switchboard_deliveries WHERE event = 'ping'")
    ).toEqual([{ status: 'sent' }]);
  }, 240_000);

  it('holds the stop for ten seconds and no more where it never ends', async () => {
    const endless = http.request(`${site.url}/api/fw-crm/v1/contacts`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'transfer-encoding': 'chunked',
        authorization: `Bearer ${site.apiToken}`,
      },
    });
    endless.on('error', () => {});
    endless.write('{"email":"');
    const drip = setInterval(() => endless.write('a'), 50);
    await sleep(300);
    const stoppedAt = Date.now();
    await site.kill('SIGTERM');
    clearInterval(drip);
    endless.destroy();
    expect(Date.now() - stoppedAt).toBeLessThan(28_000);
  }, 240_000);
});

describeEach(anyDatabase(), 'what is due when a site starts', (database) => {
  let site: Site;
  let receiver: Receiver;
  beforeAll(async () => {
    receiver = await startReceiver();
    site = await startSite({
      database,
      options: { webhooks: { dispatch: false }, pos: { process: false } },
    });
  }, 120_000);
  afterAll(async () => {
    await receiver?.close();
    await site?.stop();
  }, 60_000);

  it('waits until every plugin and the site itself have started', async () => {
    const { id } = await createWebhook(site, receiver.url);
    const till = await createTill(site);
    await insertDeliveries(site, id, 100);
    expect((await till.sale([['SKU-1', 1]])).status).toBe(202);
    await site.restart({
      options: { webhooks: { pollSeconds: 1 } },
      setupFiles: [LATE],
    });
    await receiver.waitFor(100, 30_000, ({ json }) => json.event === 'load.test');
    const sold = await receiver.waitFor(1, 30_000, ({ json }) => json.event === 'pos.sale');
    expect(sold).toHaveLength(1);
    const bare = receiver.requests.filter(
      ({ headers }) => headers['x-late-plugin'] !== 'yes' || headers['x-late-site'] !== 'yes'
    );
    expect(bare).toHaveLength(0);
  }, 240_000);
});
