import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import type { Delivery } from '../../shared/contracts/webhooks';
import { send } from '../support/http';
import { type Playground, startPlayground } from '../support/playground';
import { waitFor } from '../support/wait';

interface Arrival {
  id: string;
  event: string;
  body: string;
  refused: string | null;
  duplicate: boolean;
  answered: number;
}

const NEW = [1, 2, 3, 4, 5].map((n) => `new-${n}@example.test`);

let playground: Playground;

const arrivals = async (): Promise<Arrival[]> =>
  (await send<Arrival[]>({ method: 'GET', url: `${playground.receiverPage}arrivals.json` })).body;

const crm = (method: string, route: string, body?: unknown) =>
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  send<any>({
    method,
    url: `${playground.siteUrl}/api/fw-crm/v1${route}`,
    headers: { authorization: `Bearer ${playground.apiToken}` },
    body,
  });

/** As the owner sees it in the admin panel; the route's `data`. */
const asOwner = async <T>(route: string): Promise<T> => {
  const login = await send<{ data: { token: string } }>({
    method: 'POST',
    url: `${playground.siteUrl}/admin/login`,
    body: playground.login,
  });
  const headers = { authorization: `Bearer ${login.body.data.token}` };
  const url = `${playground.siteUrl}/switchboard${route}`;
  return (await send<{ data: T }>({ method: 'GET', url, headers })).body.data;
};

/** Sales of the seven days before today; the till that goes on selling has no part in them. */
const lastWeek = () => {
  const now = new Date();
  const day = (ago: number) => {
    const at = new Date(now.getFullYear(), now.getMonth(), now.getDate() - ago, 12);
    return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 10);
  };
  return asOwner<{ day: string; sales: { count: number } }[]>(
    `/sales-days?from=${day(7)}&to=${day(1)}`
  );
};

let week: Awaited<ReturnType<typeof lastWeek>>;

const sign = (secret: string, timestamp: number, body: string) =>
  `sha256=${crypto.createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex')}`;

/** Processes on this machine whose command line names this playground's site or receiver. */
const processesWith = (environment: string): string[] =>
  fs
    .readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return fs.readFileSync(`/proc/${pid}/environ`, 'utf8').includes(environment);
      } catch {
        return false;
      }
    });

beforeAll(async () => {
  playground = await startPlayground({ PLAYGROUND_SHOP: 'week' });
}, 600_000);
afterAll(() => playground?.stop(), 60_000);

describe('npm start, for somebody who never saw the project', () => {
  it('prints the login and has sent the first events, all of them verified', async () => {
    expect(playground.log()).toContain(playground.login.password);
    expect(playground.log()).not.toMatch(/error/i);
    const first = await waitFor(async () => {
      const list = await arrivals();
      return list.length >= 20 ? list : undefined;
    });
    expect(first.every((arrival) => arrival.refused === null)).toBe(true);
    expect(first.map((arrival) => arrival.event)).toEqual(
      expect.arrayContaining(['contact.created', 'contact.tagged'])
    );
  });

  it('has a shop with two tills that has sold for a week', async () => {
    week = await lastWeek();
    expect(week).toHaveLength(7);
    for (const { sales } of week) expect(sales.count).toBeGreaterThan(8);
    const tills = await asOwner<{ name: string }[]>('/connections');
    expect(tills.map(({ name }) => name)).toEqual(['Front counter', 'Market stall']);
    const inbox = await asOwner<{ value: string }[]>('/mapping-inbox');
    expect(inbox.map(({ value }) => value)).toEqual(['SCARF-GREY']);
  });

  it('shows a new contact at the receiver within a second', async () => {
    const delays: number[] = [];
    // Most of them: a machine that is busy with something else is late now and then.
    for (const email of NEW) {
      const startedAt = Date.now();
      const created = await crm('POST', '/contacts', { email });
      expect(created.status).toBe(201);
      const arrival = await waitFor(async () =>
        (await arrivals()).find((item) => item.body.includes(email))
      );
      delays.push(Date.now() - startedAt);
      expect(arrival).toMatchObject({ event: 'contact.created', refused: null, answered: 200 });
    }
    expect(delays.sort((a, b) => a - b)[2]).toBeLessThan(1000);
  });

  it('sends the demo plugin’s event as each of its hooks left it', async () => {
    const headers = { authorization: `Bearer ${playground.apiToken}` };
    const url = `${playground.siteUrl}/api/hooks-demo/wave`;
    await send({ method: 'POST', url, headers, body: { name: 'nobody' } });
    await send({ method: 'POST', url, headers, body: { name: 'Grace' } });
    const waved = await waitFor(async () =>
      (await arrivals()).find((item) => item.event === 'hooks_demo.waved')
    );
    expect(JSON.parse(waved.body).data).toMatchObject({ greeting: 'Hello, Grace' });
    const events = await crm('GET', '/webhooks/events');
    expect(JSON.stringify(events.body)).toContain('hooks_demo.waved');
    const [webhook] = (await crm('GET', '/webhooks')).body.data;
    // The receiver has the post before the site has written down what became of it.
    const latest = await waitFor(async () => {
      const log = await crm('GET', `/webhooks/${webhook.id}/deliveries?per_page=100`);
      const row = (log.body.data as Delivery[]).find(({ event }) => event === 'hooks_demo.waved');
      return row?.request.headers['x-sent-by'] === undefined ? undefined : row;
    });
    expect(latest.request.headers['x-sent-by']).toBe('playground');
  });
});

describe('the playground’s receiver', () => {
  it('refuses a forged and an old post, and knows one that comes again', async () => {
    const [webhook] = (await crm('GET', '/webhooks')).body.data;
    const { secret } = (await crm('GET', `/webhooks/${webhook.id}`)).body;
    const now = Math.floor(Date.now() / 1000);
    const body = JSON.stringify({ id: 'x', event: 'ping', data: {} });
    const post = (timestamp: number, signature: string) =>
      send({
        method: 'POST',
        url: playground.receiverUrl,
        headers: {
          'x-service-event': 'ping',
          'x-service-delivery': 'x',
          'x-service-timestamp': String(timestamp),
          'x-service-signature': signature,
        },
        body,
      });
    expect((await post(now, sign('whsec_guess', now, body))).text).toBe('wrong signature');
    expect((await post(now - 302, sign(secret, now - 302, body))).text).toBe('too old');
    expect((await post(now, sign(secret, now, body))).text).toBe('stored');
    expect((await post(now, sign(secret, now, body))).text).toBe('known');
  });
});

describe('a playground that is stopped', () => {
  it('lets the delivery that is under way finish, and leaves no process behind', async () => {
    await send({
      method: 'POST',
      url: `${playground.receiverPage}configure`,
      headers: { 'x-receiver': '1' },
      body: { mode: 'slow' },
    });
    await crm('POST', '/contacts', { email: 'slow@example.test' });
    await waitFor(async () => (await arrivals()).some((i) => i.body.includes('slow@example.test')));
    expect(await playground.interrupt('SIGTERM')).toBe(0);
    const traces = processesWith(path.join(playground.dataFolder, 'data.db'));
    expect(traces).toEqual([]);

    playground = await playground.again();
    const [webhook] = (await crm('GET', '/webhooks')).body.data;
    const log = (await crm('GET', `/webhooks/${webhook.id}/deliveries?per_page=100`)).body.data;
    // The till, started again as well, has sent events of its own since.
    const slow = (log as Delivery[]).find((row) => row.request.body.includes('slow@example.test'));
    expect(slow).toMatchObject({ status: 'pending', tries: 1, error: 'timeout' });
  }, 120_000);

  it('starts again with the same data and login, and seeds nothing twice', async () => {
    const { body } = await crm('GET', '/contacts?per_page=100');
    const emails = (body.data as { email: string }[]).map((contact) => contact.email).sort();
    expect(emails).toEqual([
      ...['ada', 'alan', 'amelie', 'grace', 'jonas', 'mei'].map((one) => `${one}@example.test`),
      ...NEW,
      'omar@example.test',
      'slow@example.test',
    ]);
    expect(await lastWeek()).toEqual(week);
    expect(await asOwner('/connections')).toHaveLength(2);
    const login = await send({
      method: 'POST',
      url: `${playground.siteUrl}/admin/login`,
      body: playground.login,
    });
    expect(login.status).toBe(200);
  });
});
