import { describeEach, anyDatabase } from '../support/databases';
import { type Receiver, startReceiver } from '../support/receiver';
import type { Site } from '../support/site';
import { waitFor } from '../support/wait';
import {
  createWebhook,
  getWebhook,
  retryDelivery,
  send,
  updateWebhook,
  useSiteAndReceiver,
  waitForDelivery,
} from './delivery-support';

describeEach(anyDatabase(), 'being told of a webhook', (database) => {
  let site: Site;
  let alerts: Receiver;
  let shop: Receiver;
  useSiteAndReceiver(
    {
      database,
      webhooks: {
        ...{ retryScheduleSeconds: [3600, 3600], pollSeconds: 1, disableAfterFailures: 2 },
        notifyEmail: 'owner@example.com',
      },
    },
    (s, r) => {
      [site, alerts] = [s, r];
    }
  );
  beforeAll(async () => {
    shop = await startReceiver();
    await site.evaluate(({ strapi, state }) => {
      state.mails = [];
      strapi.plugin('email').service('email').send = async (mail: unknown) => {
        state.mails.push(mail);
      };
    });
  });
  afterAll(() => shop?.close());
  beforeEach(async () => {
    shop.clear();
    shop.respond({});
    await site.evaluate(({ state }) => void (state.mails = []));
  });

  const mails = () => site.control<{ subject: string }[]>('state', { key: 'mails' });

  it('is offered by its events', async () => {
    const { body } = await site.request<{ data: { event: string }[] }>(
      'GET',
      '/api/fw-crm/v1/webhooks/events'
    );
    expect(body.data.map(({ event }) => event)).toEqual(
      expect.arrayContaining(['webhook.failing', 'webhook.recovered', 'webhook.disabled'])
    );
  });

  it('says once that it fails and once that it does not any more, to others alone', async () => {
    await createWebhook(site, alerts.url, { events: ['webhook.failing', 'webhook.recovered'] });
    const { id, name, url } = await createWebhook(site, shop.url, { name: 'Shop' });
    shop.respond({ status: 500 });
    await send(site, 'shop.one');
    await alerts.waitFor(1);
    await send(site, 'shop.two');
    await waitFor(async () => (await getWebhook(site, id)).health.failing === 2);
    shop.respond({});
    const failing = await waitForDelivery(site, id, ({ state }) => state === 'failing');
    await retryDelivery(site, failing.id);
    await alerts.waitFor(2);
    await alerts.settle();
    expect(alerts.events()).toEqual(['webhook.failing', 'webhook.recovered']);
    expect(alerts.requests.map(({ json }) => json.data)).toEqual([
      { webhook: { id, name, url }, reason: expect.stringContaining('http_500') },
      { webhook: { id, name, url }, reason: expect.any(String) },
    ]);
    expect(shop.events().filter((event) => event.startsWith('webhook.'))).toEqual([]);
    expect((await mails()).map(({ subject }) => subject)).toEqual([
      'The webhook "Shop" fails',
      'The webhook "Shop" works again',
    ]);
  });

  it('says that it was switched off, and why', async () => {
    await createWebhook(site, alerts.url, { events: ['webhook.disabled'] });
    const { id } = await createWebhook(site, shop.url);
    shop.respond({ status: 410 });
    await send(site, 'shop.one');
    const [told] = await alerts.waitFor(1);
    const { disabled_reason: reason } = await getWebhook(site, id);
    expect(told?.json).toMatchObject({
      event: 'webhook.disabled',
      data: { webhook: { id }, reason },
    });
    expect((await mails()).map(({ subject }) => subject)).toContain(
      'The webhook "receiver" was switched off'
    );
    await updateWebhook(site, id, { active: false });
  });

  it('ends where those who are told fail, too', async () => {
    const one = await createWebhook(site, alerts.url, { name: 'one' });
    const other = await createWebhook(site, shop.url, { name: 'other' });
    alerts.respond(({ json }) => ({ status: json.event === 'webhook.recovered' ? 200 : 500 }));
    let nth = 0;
    shop.respond(() => {
      nth += 1;
      // Two in a row: of those that are recorded together the last one decides.
      return { status: nth <= 2 || nth % 2 ? 500 : 200 };
    });
    await send(site, 'shop.one');
    const told = () =>
      [...alerts.events(), ...shop.events()].filter((e) => e === 'webhook.failing');
    await waitFor(() => told().length >= 2);
    await alerts.settle();
    await shop.settle();
    expect(told()).toHaveLength(2);
    for (const { id } of [one, other]) expect((await getWebhook(site, id)).active).toBe(true);
  });
});
