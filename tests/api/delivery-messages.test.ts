import { databases, describeEach, itOnce } from '../support/databases';
import type { Receiver } from '../support/receiver';
import type { Site } from '../support/site';
import { waitFor } from '../support/wait';
import { verifyPost } from '../unit/webhooks/support/verify-post';
import {
  createWebhook,
  getWebhook,
  listDeliveries,
  removeWebhook,
  send,
  sql,
  updateWebhook,
  useSiteAndReceiver,
  waitForDelivery,
} from './delivery-support';

const webhooks = { pollSeconds: 1, retryScheduleSeconds: [2, 2, 2] };
const points = { points: 7, note: 'Zoë «”\\ \u2028' };

describeEach(databases(), 'what several webhooks are sent', (database) => {
  let site: Site;
  let receiver: Receiver;
  useSiteAndReceiver({ database, webhooks }, (started, receiving) => {
    site = started;
    receiver = receiving;
  });

  const three = async (changes: Record<string, unknown> = {}) => [
    await createWebhook(site, `${receiver.url}a`, changes),
    await createWebhook(site, `${receiver.url}b`, changes),
    await createWebhook(site, `${receiver.url}c`, changes),
  ];
  /** What is asked about here, without what they are told of each other. */
  const posts = () => receiver.requests.filter(({ json }) => json.event === 'loyalty.earned');
  const messages = () =>
    sql<{ id: number; deliveries: number; data: string }>(
      site,
      'SELECT id, deliveries, data FROM switchboard_messages ORDER BY id'
    );
  const stored = () =>
    sql<{ body: string | null; message_id: number | null }>(
      site,
      'SELECT body, message_id FROM switchboard_deliveries ORDER BY id'
    );

  it('is stored once, and each is sent all of it', async () => {
    const made = await three();
    expect(await send(site, 'loyalty.earned', points)).toBe(3);
    const posts = await receiver.waitFor(3);
    const [message, ...others] = await messages();
    expect([Number(message?.deliveries), others]).toEqual([3, []]);
    expect(JSON.parse(message?.data ?? '')).toEqual(points);
    expect(await stored()).toEqual(made.map(() => ({ body: null, message_id: message?.id })));
    for (const { id, secret } of made) {
      const delivery = await waitForDelivery(site, id, ({ status }) => status === 'sent');
      const post = posts.find(({ headers }) => headers['webhook-id'] === delivery.delivery_id);
      expect(post?.json).toEqual({
        id: delivery.delivery_id,
        event: 'loyalty.earned',
        created_at: expect.any(String),
        site: expect.any(String),
        data: points,
      });
      expect(post?.body).toBe(delivery.request.body);
      const now = Date.now() / 1000;
      expect(verifyPost(String(secret), post!.headers, post!.raw, now)).toBe(true);
    }
  });

  it('is in the delivery itself where there is one alone', async () => {
    const { id } = await createWebhook(site, receiver.url);
    await send(site, 'loyalty.earned', points);
    const delivery = await waitForDelivery(site, id, ({ status }) => status === 'sent');
    expect(await stored()).toEqual([{ body: delivery.request.body, message_id: null }]);
    expect(await messages()).toEqual([]);
  });

  itOnce(database)(
    'is the same on every try, also after the process was started again',
    async () => {
      receiver.respond({ status: 500 });
      await three();
      await send(site, 'loyalty.earned', points);
      await receiver.waitFor(3);
      await site.restart();
      receiver.respond({});
      await waitFor(() => posts().length >= 6, 20_000);
      const bodies = new Map<string, Set<string>>();
      for (const { headers, body } of posts()) {
        const id = String(headers['webhook-id']);
        bodies.set(id, (bodies.get(id) ?? new Set()).add(body));
      }
      expect([...bodies.values()].map(({ size }) => size)).toEqual([1, 1, 1]);
      // Recording that they succeed again tells the others of it, who are gone in the next test.
      const waiting = `SELECT id FROM switchboard_deliveries WHERE status = 'pending'`;
      await waitFor(async () => (await sql(site, waiting)).length === 0);
    },
    120_000
  );

  itOnce(database)(
    'goes by the filters of version 0.2, or switches off with a reason those that cannot be said any more',
    async () => {
      const [simple, other, later] = await three();
      const keep = (id: number, filter: object) =>
        sql(site, 'UPDATE switchboard_webhooks SET filter = ? WHERE id = ?', [
          JSON.stringify(filter),
          id,
        ]);
      const noted = (pattern: string) => ({
        properties: { note: { pattern } },
        required: ['note'],
      });
      await keep(simple!.id, noted('^Zoë\\.'));
      await keep(other!.id, noted('^Z(o|a)'));
      await site.restart();
      expect(await getWebhook(site, simple!.id)).toMatchObject({
        active: true,
        filter: { properties: { note: { startsWith: 'Zoë.' } }, required: ['note'] },
      });
      const off = {
        active: false,
        disabled_reason: expect.stringMatching(/^Its filter may not be used: pattern may not/),
        disabled_because: { code: 'filter', values: {} },
      };
      expect(await getWebhook(site, other!.id)).toMatchObject(off);
      const on = await updateWebhook(site, other!.id, { active: true, waiting: 'discard' });
      expect(on.status).toBe(400);
      expect(on.body.error.details.errors).toEqual([
        expect.objectContaining({
          path: ['filter'],
          code: 'filter_pattern',
          message: expect.stringContaining('pattern may not be used'),
        }),
      ]);
      expect(await getWebhook(site, other!.id)).toMatchObject(off);
      // A node of 0.2 beside this one takes it still.
      await keep(later!.id, { dependencies: { note: { required: ['points'] } } });
      await send(site, 'loyalty.earned', { note: 'Zoë!' });
      await waitFor(async () => !(await getWebhook(site, later!.id)).active);
      expect(await getWebhook(site, later!.id)).toMatchObject({
        ...off,
        disabled_reason: 'Its filter may not be used: dependencies may not be used.',
      });
      expect(await send(site, 'loyalty.earned', { note: 'Zoë.' })).toBe(1);
      await waitFor(() => posts().length > 0);
      expect(posts().map(({ json }) => json.data)).toEqual([{ note: 'Zoë.' }]);
      const [stored] = await sql<{ filter: string }>(
        site,
        'SELECT filter FROM switchboard_webhooks WHERE id = ?',
        [simple!.id]
      );
      expect(JSON.parse(stored!.filter)).toEqual(noted('^Zoë\\.'));
    },
    120_000
  );

  it('has a version of its own where a handler changes it for one', async () => {
    const made = await three();
    await site.evaluate(({ strapi, state }, changed) => {
      const handler = ({ payload, webhook }: { payload: object; webhook: { id: number } }) =>
        ({ payload: webhook.id === changed ? { ...payload, points: 8 } : payload }) as never;
      const hook = strapi.hook('service_crm_webhook_payload' as never) as never as {
        register(one: unknown): void;
        delete(one: unknown): void;
      };
      hook.register(handler);
      state.unregister = () => hook.delete(handler);
    }, made[1]?.id);
    await send(site, 'loyalty.earned', points);
    await site.evaluate(({ state }) => (state.unregister as () => void)());
    const posts = await receiver.waitFor(3);
    const sent = new Map(posts.map(({ path, json }) => [path, json.data.points]));
    expect(Object.fromEntries(sent)).toEqual({ '/a': 7, '/b': 8, '/c': 7 });
    expect((await messages()).map(({ deliveries }) => Number(deliveries))).toEqual([2]);
  });

  it('is not stored by a write that is rolled back', async () => {
    await three();
    await site.evaluate(async ({ strapi }) => {
      const events = strapi.service('plugin::switchboard.events') as unknown as {
        send(event: string, data: object): Promise<number>;
      };
      await strapi.db
        .transaction(async () => {
          await events.send('loyalty.earned', { points: 1 });
          throw new Error('changed my mind');
        })
        .catch(() => undefined);
    });
    expect(await messages()).toEqual([]);
  });

  it('goes with the last webhook that needs it', async () => {
    const made = await three();
    await send(site, 'loyalty.earned', points);
    await send(site, 'loyalty.earned', { points: 8 });
    await receiver.waitFor(6);
    const counts = async () => (await messages()).map(({ deliveries }) => Number(deliveries));
    expect(await counts()).toEqual([3, 3]);
    await removeWebhook(site, Number(made[0]?.id));
    await removeWebhook(site, Number(made[2]?.id));
    expect(await counts()).toEqual([1, 1]);
    const [kept] = await listDeliveries(site, Number(made[1]?.id));
    expect(JSON.parse(String(kept?.request.body)).data).toEqual({ points: 8 });
    await removeWebhook(site, Number(made[1]?.id));
    expect(await messages()).toEqual([]);
  });

  itOnce(database)(
    'that somebody deleted is said to be missing, and holds nothing up',
    async () => {
      const made = await three({ active: false });
      await sql(site, 'UPDATE switchboard_webhooks SET active = ?', [true]);
      receiver.respond({ status: 500 });
      await send(site, 'loyalty.earned', points);
      await receiver.waitFor(3);
      await site.restart({ options: { webhooks: { ...webhooks, dispatch: false } } });
      await sql(site, 'DELETE FROM switchboard_messages');
      receiver.respond({});
      receiver.clear();
      await site.restart({ options: { webhooks } });
      await send(site, 'loyalty.earned', { points: 8 });
      await waitFor(() => posts().length >= 3);
      for (const { id } of made) {
        await waitForDelivery(site, id, ({ error }) => error === 'body_missing', 20_000);
      }
      await waitFor(() => site.log().includes('the message of these deliveries is gone'));
      expect(posts().map(({ json }) => json.data)).toEqual(made.map(() => ({ points: 8 })));
    },
    120_000
  );
});
