import { describeEach, anyDatabase } from '../support/databases';
import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import { logSoFar } from './delivery-support';
import { admin, createItem, createTill, levelOf, settled } from './pos-till';

interface Heard {
  event: string;
  data: Record<string, unknown>;
  inTransaction: boolean;
}

const contact = (email: string) => ({
  uid: 'plugin::switchboard.contact',
  method: 'create',
  params: { data: { email } },
});

describeEach(anyDatabase(), 'handlers of service_crm_webhook', (database) => {
  let site: Site;
  let receiver: Receiver;

  beforeAll(async () => {
    receiver = await startReceiver();
    site = await startSite({ database, options: { webhooks: { pollSeconds: 1 } } });
    await site.control('run', { file: require.resolve('../support/handlers/listeners.js') });
  }, 120_000);
  afterAll(async () => {
    await receiver?.close();
    await site?.stop();
  }, 60_000);

  const heard = async (): Promise<Heard[]> =>
    ((await site.control('state', { key: 'heard' })) as Heard[] | undefined) ?? [];
  const forget = () => site.evaluate(({ state }) => void (state.heard.length = 0));
  const hears = (event: string, data: object, times = 1) =>
    waitFor(
      async () => {
        const found = (await heard()).filter((one) => one.event === event);
        expect(found).toHaveLength(times);
        expect(found[0]!.data).toMatchObject(data);
        return found;
      },
      30_000,
      `a handler to hear ${event}`
    );

  it('hear the CRM’s events although no webhook asked, outside of the write’s transaction', async () => {
    await forget();
    await site.control('documents', contact('heard@example.test'));
    const [one] = await hears('contact.created', { email: 'heard@example.test' });
    expect(one!.inTransaction).toBe(false);
    expect(await logSoFar(site)).toContain(
      'a handler of service_crm_webhook (breaking) failed: Error broke'
    );
  });

  it('hear nothing of a write that is rolled back', async () => {
    await forget();
    await site
      .control('transaction', {
        steps: [{ op: 'documents', args: contact('never@example.test') }],
        throw: 'no',
      })
      .catch(() => undefined);
    await site.control('documents', contact('after@example.test'));
    await hears('contact.created', { email: 'after@example.test' });
    const all = JSON.stringify(await heard());
    expect(all).not.toContain('never@example.test');
  });

  it('hear events of the point of sale, each once, beside webhooks', async () => {
    await forget();
    const created = await site.request('POST', '/api/fw-crm/v1/webhooks', {
      body: { name: 'r', url: receiver.url, events: ['stock.changed'] },
    });
    expect(created.status).toBe(201);
    const till = await createTill(site);
    await createItem(site, 'HEARD', 5);
    const { body } = await till.sale([['HEARD', 2]]);
    await settled(site, body.event_id, 'applied');
    await hears('stock.changed', { quantity: 3 });
    await hears('pos.sale', { event_id: body.event_id });
    const [post] = await receiver.waitFor(1);
    expect(post!.json).toMatchObject({ event: 'stock.changed', data: { quantity: 3 } });
    await site.request('DELETE', `/api/fw-crm/v1/webhooks/${created.body.id}`);
  });

  it.each([
    ['one value', [{ event: 'loyalty.earned', data: { points: 5 } }]],
    ['a name and its data', ['loyalty.earned', { points: 5 }]],
  ])('hear what a plugin calls the hook with, as %s, and so do webhooks', async (_how, given) => {
    await forget();
    receiver.requests.length = 0;
    const created = await site.request('POST', '/api/fw-crm/v1/webhooks', {
      body: { name: 'r', url: receiver.url, events: ['*'] },
    });
    await site.evaluate(
      ({ strapi }, args: unknown[]) => strapi.hook('service_crm_webhook').call(...args),
      given as unknown[]
    );
    await hears('loyalty.earned', { points: 5 });
    const [post] = await receiver.waitFor(1);
    expect(post!.json).toMatchObject({ event: 'loyalty.earned', data: { points: 5 } });
    await receiver.settle(300);
    expect(receiver.requests).toHaveLength(1);
    await site.request('DELETE', `/api/fw-crm/v1/webhooks/${created.body.id}`);
  });

  it('hear nothing while the module is off', async () => {
    await admin(site, 'PUT', '/modules', { webhooks: false }, 200);
    await forget();
    await site.control('documents', contact('off@example.test'));
    await admin(site, 'PUT', '/modules', { webhooks: true }, 200);
    await site.control('documents', contact('on@example.test'));
    await hears('contact.created', { email: 'on@example.test' });
    expect(JSON.stringify(await heard())).not.toContain('off@example.test');
  });

  it.each([
    ['a list', [1]],
    ['a string', 'x'],
    ['a number', 5],
    ['null', null],
    ['a boolean', true],
  ])('data that is %s is refused by send, and logged by the hook', async (kind, data) => {
    await forget();
    const refusal = await site.control('send', { event: 'loyalty.earned', data }).then(
      () => 'sent',
      (error: Error) => error.message
    );
    expect(refusal).toMatch(/The data of "loyalty.earned" must be an object/);
    const call = site.evaluate(
      ({ strapi }, given: unknown) =>
        strapi.db.transaction(async () => {
          await strapi.hook('service_crm_webhook').call('loyalty.wrong', given);
          await strapi
            .documents('plugin::switchboard.tag')
            .create({ data: { name: 'kept', slug: `kept-${Date.now()}` } });
        }),
      data
    );
    await call.catch((error: Error) => {
      throw new Error(`${kind} broke the write: ${error.message}`);
    });
    expect(await logSoFar(site)).toContain(
      'the event "loyalty.wrong" of another plugin was not sent'
    );
    expect((await heard()).filter(({ event }) => event === 'loyalty.wrong')).toEqual([]);
  });

  it('a delivery that cannot be stored costs a plugin’s write nothing', async () => {
    const created = await site.request('POST', '/api/fw-crm/v1/webhooks', {
      body: { name: 'r', url: receiver.url, events: ['loyalty.earned'] },
    });
    const rename = (from: string, to: string) =>
      site.control('sql', { statement: `ALTER TABLE ${from} RENAME TO ${to}`, bindings: [] });
    await rename('switchboard_deliveries', 'sb_away');
    try {
      await site.evaluate(({ strapi }) =>
        strapi.db.transaction(async () => {
          await strapi.hook('service_crm_webhook').call('loyalty.earned', { points: 1 });
          await strapi
            .documents('plugin::switchboard.tag')
            .create({ data: { name: 'written', slug: 'written' } });
        })
      );
    } finally {
      await rename('sb_away', 'switchboard_deliveries');
    }
    const found = await site.control('documents', {
      uid: 'plugin::switchboard.tag',
      method: 'findMany',
      params: { filters: { name: 'written' } },
    });
    expect(found).toHaveLength(1);
    await site.request('DELETE', `/api/fw-crm/v1/webhooks/${created.body.id}`);
  });

  it('a sale is not applied without its events', async () => {
    receiver.requests.length = 0;
    const created = await site.request('POST', '/api/fw-crm/v1/webhooks', {
      body: { name: 'r', url: receiver.url, events: ['stock.changed', 'pos.sale'] },
    });
    const till = await createTill(site);
    await createItem(site, 'OUTBOX', 5);
    const rename = (from: string, to: string) =>
      site.control('sql', { statement: `ALTER TABLE ${from} RENAME TO ${to}`, bindings: [] });
    await rename('switchboard_deliveries', 'sb_away');
    let id = 0;
    try {
      const { body } = await till.sale([['OUTBOX', 2]]);
      id = body.event_id;
      await waitFor(() => site.log().includes(`the POS event ${id} could not be applied`), 20_000);
      expect((await admin(site, 'GET', `/pos-events/${id}`)).state).toBe('pending');
      expect(await levelOf(site, 'OUTBOX')).toBe(5);
    } finally {
      await rename('sb_away', 'switchboard_deliveries');
    }
    await settled(site, id, 'applied', 30_000);
    const posts = await receiver.waitFor(2);
    expect(posts.map(({ json }) => (json as { event: string }).event).sort()).toEqual([
      'pos.sale',
      'stock.changed',
    ]);
    expect(await levelOf(site, 'OUTBOX')).toBe(3);
    await site.request('DELETE', `/api/fw-crm/v1/webhooks/${created.body.id}`);
  }, 60_000);

  it('that were taken off hear nothing more', async () => {
    await site.evaluate(({ strapi, state }) => {
      for (const handler of state.listeners) strapi.hook('service_crm_webhook').delete(handler);
    });
    await forget();
    await site.control('documents', contact('later@example.test'));
    await receiver.settle(300);
    expect(await heard()).toEqual([]);
  });
});
