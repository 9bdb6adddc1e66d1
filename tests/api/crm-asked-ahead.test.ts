import { describeEach, anyDatabase, anyServer } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { CRM, inCode, names, openEventLog } from './crm-helpers';
import { copyWebhook, createWebhook } from './delivery-support';

const options = { webhooks: { dispatch: false } };

/** A site's own middleware around every write, such as one that asks another service first. */
const holdWrites = (site: Site): Promise<void> =>
  site.evaluate(async ({ strapi, state }) => {
    state.held = new Promise<void>((resolve) => {
      state.release = resolve;
    });
    state.unhold = strapi.documents.use(
      async (context: { uid: string; action: string }, next: () => unknown) => {
        const isContact = context.uid === 'plugin::switchboard.contact';
        if (isContact && context.action === 'create') await state.held;
        return next();
      }
    );
  });

const release = (site: Site): Promise<void> =>
  site.evaluate(async ({ state }) => {
    (state.release as () => void)();
    (state.unhold as () => void)();
  });

describeEach(anyDatabase(), 'who subscribed is asked before the transaction', (database) => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({ database, options });
  }, 120_000);
  afterAll(async () => {
    await site?.stop();
  }, 60_000);

  it('a webhook that is made while a write waits hears of it', async () => {
    await holdWrites(site);
    const created = inCode(site, 'contact').create({ email: 'held@example.test' });
    // Longer than an answer that was asked for ahead is good for.
    await new Promise((resolve) => setTimeout(resolve, 300));
    const log = await openEventLog(site, ['contact.created']);
    await release(site);
    await created;
    expect(names(await log.take())).toEqual(['contact.created']);
    await site.request('DELETE', `${CRM}/webhooks/${log.webhookId}`);
  });

  it('a webhook that the same call makes hears of it', async () => {
    const made = await site.evaluate(async ({ strapi }, url) => {
      const seen: unknown[] = [];
      const remove = strapi.documents.use(
        async (context: { uid: string; action: string }, next: () => unknown) => {
          if (context.uid === 'plugin::switchboard.contact' && context.action === 'create') {
            const webhooks = strapi.service('plugin::switchboard.webhooks') as unknown as {
              create(input: object): Promise<{ id: number }>;
            };
            seen.push(await webhooks.create({ name: 'log', url, events: ['*'], active: true }));
          }
          return next();
        }
      ) as unknown as () => void;
      await strapi
        .documents('plugin::switchboard.contact' as never)
        .create({ data: { email: 'same@example.test' } } as never);
      remove();
      return seen as { id: number }[];
    }, 'http://127.0.0.1:9/');
    const rows = await site.control('sql', {
      statement: `select event from switchboard_deliveries where webhook_id = ${made[0]?.id}`,
    });
    expect(rows).toEqual([{ event: 'contact.created' }]);
    await site.request('DELETE', `${CRM}/webhooks/${made[0]?.id}`);
  });

  it('a webhook that the same transaction makes hears of the writes that follow it', async () => {
    const id = await site.evaluate(
      ({ strapi }, url) =>
        strapi.db.transaction(async () => {
          const webhooks = strapi.service('plugin::switchboard.webhooks') as unknown as {
            create(input: object): Promise<{ id: number }>;
          };
          const contacts = strapi.documents('plugin::switchboard.contact' as never);
          await contacts.create({ data: { email: 'before@example.test' } } as never);
          const webhook = await webhooks.create({ name: 'log', url, events: ['*'], active: true });
          await contacts.create({ data: { email: 'after@example.test' } } as never);
          return webhook.id;
        }) as Promise<number>,
      'http://127.0.0.1:9/'
    );
    const rows = (await site.control('sql', {
      statement: `select body from switchboard_deliveries where webhook_id = ${id}`,
    })) as { body: string }[];
    expect(rows.map(({ body }) => JSON.parse(body).data.email)).toEqual(['after@example.test']);
    await site.request('DELETE', `${CRM}/webhooks/${id}`);
  });

  it('each of more webhooks than one statement reads hears of it, once', async () => {
    const { id } = await createWebhook(site, 'http://127.0.0.1:9/', {
      events: ['contact.created'],
    });
    await copyWebhook(site, id, 1200);
    await inCode(site, 'contact').create({ email: 'many@example.test' });
    const heard = await site.control('sql', {
      statement:
        'select count(distinct webhook_id) as n, count(*) as m from switchboard_deliveries where webhook_id >= ?',
      bindings: [id],
    });
    expect(heard.map(({ n, m }: Record<string, unknown>) => [Number(n), Number(m)])).toEqual([
      [1201, 1201],
    ]);
  });
});

describeEach(anyServer(), 'writes with a small pool of connections', (database) => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({ database, options, env: { DATABASE_POOL_MAX: '2' } });
  }, 120_000);
  afterAll(async () => {
    await site?.stop();
  }, 60_000);

  it('never wait for each other for ever', async () => {
    const log = await openEventLog(site, ['contact.created']);
    const made = await Promise.all(
      Array.from({ length: 60 }, (_none, at) =>
        inCode(site, 'contact').create({ email: `pool-${at}@example.test` })
      )
    );
    expect(made).toHaveLength(60);
    expect(await log.take()).toHaveLength(60);
  }, 50_000);

  it('a transaction asks by the time it takes, not by the records it writes', async () => {
    const { asked, took } = await site.evaluate(async ({ strapi }) => {
      let asked = 0;
      const hear = ({ sql }: { sql: string }) => {
        if (/^select .*switchboard_webhooks/is.test(sql)) asked += 1;
      };
      strapi.db.connection.on('query', hear);
      const from = performance.now();
      await strapi.db.transaction(async () => {
        const contacts = strapi.documents('plugin::switchboard.contact' as never);
        for (let at = 0; at < 30; at += 1)
          await contacts.create({ data: { email: `once-${at}@example.test` } } as never);
      });
      const took = performance.now() - from;
      strapi.db.connection.removeListener('query', hear);
      return { asked, took };
    });
    // What was heard holds for half a second, and is asked for once in a quarter of one beside the write.
    expect(asked).toBeLessThanOrEqual(1 + took / 250 + took / 500);
  });
});
