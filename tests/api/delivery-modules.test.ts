import { anyDatabase, describeEach, databases, itOnce } from '../support/databases';
import { startReceiver, type Receiver } from '../support/receiver';
import { startSite, type Site } from '../support/site';
import { waitFor } from '../support/wait';

/** Events of a module are offered and sent only while it is on; docs/contract-webhooks.md#events. */

jest.setTimeout(300_000);

const BASE = '/api/fw-crm/v1';
const SERVE_ONLY = { webhooks: { dispatch: false } };
const SEND = { webhooks: { pollSeconds: 1, retryScheduleSeconds: [3, 3, 3, 3, 3, 3] } };

describeEach(databases(), 'a module that is switched off', (database) => {
  let site: Site;
  let receiver: Receiver;

  beforeAll(async () => {
    receiver = await startReceiver();
    site = await startSite({ database, options: SERVE_ONLY });
  });

  afterAll(async () => {
    await receiver?.close();
    await site?.stop();
  });

  const switchModules = async (changes: Record<string, boolean>, on: Site = site) => {
    const answer = await on.request('PUT', '/switchboard/modules', { body: changes });
    expect(answer.status).toBe(200);
  };

  const webhookFor = async (name: string, events: string[]): Promise<number> => {
    const body = { name, url: `${receiver.url}${name}`, events };
    const answer = await site.request('POST', `${BASE}/webhooks`, { body });
    expect(answer.status).toBe(201);
    return answer.body.id;
  };

  const make = async (path: string, body: unknown) => {
    const answer = await site.request('POST', `${BASE}${path}`, { body });
    expect(answer.status).toBe(201);
  };

  const log = async (webhook: number) => {
    const answer = await site.request('GET', `${BASE}/webhooks/${webhook}/deliveries`);
    expect(answer.status).toBe(200);
    return answer.body.data as {
      id: number;
      event: string;
      status: string;
      tries: number;
      next_attempt_at: string | null;
      attempts: { at: string }[];
    }[];
  };

  const heldBack = async (): Promise<number> => {
    const [row] = await site.control<{ n: number | string }[]>('sql', {
      statement: 'select count(*) as n from switchboard_delivery_queue where state = 2',
    });
    return Number(row!.n);
  };

  const postsTo = (name: string) => receiver.requests.filter(({ path }) => path === `/${name}`);

  it('keeps what waits of its events until it is on again, and queues nothing new', async () => {
    const webhook = await webhookFor('deals', ['deal.created', 'contact.created']);
    await make('/deals', { title: 'waits' });
    const [before] = await log(webhook);
    await switchModules({ sales_pipeline: false });
    await site.restart({ options: SEND });
    await waitFor(async () => (await heldBack()) === 1, 30_000, 'the delivery to be held back');
    await make('/contacts', { email: 'a@example.test' });
    await waitFor(async () => postsTo('deals').length > 0, 30_000, 'the event of another module');

    const waiting = (await log(webhook)).find(({ event }) => event === 'deal.created')!;
    expect(waiting).toEqual(before);
    expect(waiting).toMatchObject({ status: 'pending', tries: 0, attempts: [] });
    expect(waiting.next_attempt_at).not.toBeNull();
    const again = await site.request('POST', `${BASE}/webhook-deliveries/${waiting.id}/retry`);
    expect(again.status).toBe(409);
    expect(again.text).toContain('Sales pipeline');
    await site.evaluate(({ strapi }) =>
      strapi
        .documents('plugin::switchboard.deal')
        .create({ data: { title: 'unheard of while it is off' } })
    );
    expect(await log(webhook)).toHaveLength(2);

    const on = Date.now();
    await switchModules({ sales_pipeline: true });
    await waitFor(async () => postsTo('deals').length > 1, 30_000, 'the delivery that waited');
    const sent = await waitFor(
      async () =>
        (await log(webhook)).find((row) => row.id === waiting.id && row.status === 'sent'),
      30_000,
      'its outcome'
    );
    expect(sent.tries).toBe(1);
    expect(Date.parse(sent.attempts[0]!.at)).toBeGreaterThanOrEqual(on);
    expect(await heldBack()).toBe(0);
  });

  itOnce(database)(
    'lets thousands go that waited, each once, also where the switching node died',
    async () => {
      const webhook = await webhookFor('many', ['deal.won']);
      await site.restart({ options: SERVE_ONLY });
      await site.evaluate(async ({ strapi }, count) => {
        const events = Array.from({ length: count }, () => ({ event: 'deal.won', data: {} }));
        await strapi.service('plugin::switchboard.publisher').publish(events);
      }, 1200);
      // As a node left them that held them back, switched the module on and died.
      await site.control('sql', {
        statement: `update switchboard_delivery_queue set state = 2 where group_id = ${webhook}`,
      });
      expect(await heldBack()).toBe(1200);
      await site.restart({ options: SEND });
      await waitFor(async () => postsTo('many').length >= 1200, 60_000, 'all that waited');
      await waitFor(async () => (await heldBack()) === 0, 30_000, 'nothing to be held back');
      const ids = new Set(postsTo('many').map(({ headers }) => headers['x-service-delivery']));
      expect(ids.size).toBe(1200);
      expect(postsTo('many')).toHaveLength(1200);
    }
  );

  // What follows has no statement that is not in the above.
  if (!anyDatabase().includes(database)) return;

  it('keeps a retry that is due, too, and another node may switch it on', async () => {
    receiver.enqueue({ status: 500 });
    const webhook = await webhookFor('companies', ['company.created']);
    await make('/companies', { name: 'c' });
    await waitFor(async () => (await log(webhook))[0]?.tries === 1, 30_000, 'the first try');
    await switchModules({ companies: false });
    await waitFor(async () => (await heldBack()) === 1, 30_000, 'the retry to be held back');
    expect((await log(webhook))[0]).toMatchObject({ status: 'pending', tries: 1 });
    expect(postsTo('companies')).toHaveLength(1);

    const other = await site.sibling({ options: SERVE_ONLY });
    try {
      await switchModules({ companies: true }, other);
    } finally {
      await other.stop();
    }
    await waitFor(
      async () => (await log(webhook))[0]?.status === 'sent',
      30_000,
      'the delivery that waited'
    );
  });

  it('is Webhooks itself: nothing is sent, and the routes say why', async () => {
    const webhook = await webhookFor('nothing', ['task.created']);
    await site.restart({ options: SERVE_ONLY });
    await make('/tasks', { title: 't' });
    await switchModules({ webhooks: false });
    await site.restart({ options: SEND });
    const refused = await site.request('GET', `${BASE}/webhooks/${webhook}`);
    expect(refused.status).toBe(404);
    expect(refused.body.error.message).toContain('The module Webhooks is switched off');
    // Two polls of a node that sends.
    await new Promise((resolve) => setTimeout(resolve, 2500));
    expect(postsTo('nothing')).toEqual([]);
    const on = Date.now();
    await switchModules({ webhooks: true });
    await waitFor(async () => postsTo('nothing').length > 0, 30_000, 'the delivery that waited');
    const sent = await waitFor(
      async () => (await log(webhook)).find(({ status }) => status === 'sent'),
      30_000,
      'its outcome'
    );
    expect(Date.parse(sent.attempts[0]!.at)).toBeGreaterThanOrEqual(on);
  });

  it('refuses webhooks for its events, keeps those that are there, and tests none', async () => {
    const kept = await webhookFor('kept', ['deal.won']);
    await switchModules({ sales_pipeline: false });
    const body = { name: 'n', url: receiver.url, events: ['contact.created', 'deal.won'] };
    const routes: [string, string, string[]][] = [
      ['POST', `${BASE}/webhooks`, ['events']],
      ['POST', '/switchboard/webhooks', ['events']],
      ['PATCH', `${BASE}/webhooks/${await webhookFor('other', ['*'])}`, ['events']],
    ];
    for (const [method, path] of routes) {
      const answer = await site.request(method, path, { body });
      expect(answer.status).toBe(400);
      expect(answer.body.error.details.errors).toHaveLength(1);
      expect(answer.body.error.details.errors[0].path).toEqual(['events']);
      expect(answer.body.error.message).toContain('deal.won');
      expect(answer.body.error.message).toContain('Sales pipeline');
    }
    const update = await site.request('PUT', `${BASE}/webhooks/${kept}`, { body });
    expect(update.status).toBe(200);
    const test = await site.request('POST', `${BASE}/webhooks/${kept}/test`, {
      body: { event: 'deal.won' },
    });
    expect(test.status).toBe(400);
    expect(test.body.error.message).toContain('Sales pipeline');
    await switchModules({ sales_pipeline: true });
    expect((await site.request('POST', `${BASE}/webhooks`, { body })).status).toBe(201);
  });
});
