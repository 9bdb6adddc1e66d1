import type { DeliveryFigures, RecordTypes } from '../../shared/contracts/overview';
import type { Delivery, ManagedWebhook, Page } from '../../shared/contracts/webhooks';
import { describeEach, databases, itOnce } from '../support/databases';
import type { Receiver } from '../support/receiver';
import type { Site } from '../support/site';
import { waitFor } from '../support/wait';
import { createWebhook, send, useSiteAndReceiver } from './delivery-support';

const HOUR_MS = 3_600_000;

describeEach(databases(), 'what the overview is drawn from', (database) => {
  let site: Site;
  let receiver: Receiver;
  useSiteAndReceiver({ database, webhooks: { retryScheduleSeconds: [3600] } }, (s, r) => {
    site = s;
    receiver = r;
  });

  const figures = async (query = ''): Promise<DeliveryFigures> =>
    (await site.request<{ data: DeliveryFigures }>('GET', `/switchboard/delivery-figures${query}`))
      .body.data;
  const since = (hours: number) => new Date(Date.now() - hours * HOUR_MS).toISOString();
  const status = async (route: string) => (await site.request('GET', route)).status;

  it('counts attempts by outcome, of one webhook and of all, in spans that fit the time', async () => {
    const good = await createWebhook(site, receiver.url, { events: ['contact.created'] });
    await send(site, 'contact.created');
    await waitFor(async () => (await figures(`?webhook=${good.id}`)).total.sent === 1);
    receiver.respond({ status: 500 });
    const bad = await createWebhook(site, receiver.url, { events: ['contact.updated'] });
    await send(site, 'contact.updated');
    const mine = await waitFor(async () => {
      const found = await figures(`?webhook=${bad.id}`);
      return found.total.failed === 1 ? found : undefined;
    });
    expect(mine).toMatchObject({ step_hours: 1, total: { sent: 0, failed: 1 } });
    expect(mine.total.response?.median_ms).toBeGreaterThan(0);
    expect(mine.spans.reduce((sum, { failed }) => sum + failed, 0)).toBe(1);
    expect(mine.spans.length).toBeGreaterThanOrEqual(24);

    const all = await figures();
    expect(all.total.sent).toBeGreaterThanOrEqual(1);
    expect(all.total.failed).toBeGreaterThanOrEqual(1);
    for (const [hours, step] of [
      [7 * 24, 6],
      [30 * 24, 24],
    ] as const) {
      const longer = await figures(`?from=${since(hours)}&to=${since(0)}`);
      expect(longer.step_hours).toBe(step);
      expect(longer.spans.length).toBeLessThanOrEqual(32);
    }
    expect((await figures(`?from=${since(48)}&to=${since(24)}`)).total).toEqual({
      sent: 0,
      failed: 0,
      response: null,
    });
  });

  itOnce(database)(
    'refuses times that are none, the wrong way round, or too far apart',
    async () => {
      const route = '/switchboard/delivery-figures';
      expect(await status(`${route}?from=yesterday`)).toBe(400);
      expect(await status(`${route}?webhook=x`)).toBe(400);
      expect(await status(`${route}?from=${since(1)}&to=${since(2)}`)).toBe(400);
      expect(await status(`${route}?from=${since(32 * 24)}`)).toBe(400);
    }
  );

  itOnce(database)('says where the records are that events are about', async () => {
    const { body } = await site.request<{ data: RecordTypes }>('GET', '/switchboard/record-types');
    expect(body.data.contact).toBe('plugin::switchboard.contact');
  });

  it('finds webhooks by a part of their name or address, in the order asked for', async () => {
    for (const name of ['Zebra 100%', 'aardvark 1000', 'Zebra 200']) {
      await createWebhook(site, receiver.url, { name, events: ['contact.created'] });
    }
    const names = async (query: string) =>
      (
        await site.request<Page<ManagedWebhook>>('GET', `/switchboard/webhooks?${query}`)
      ).body.data.map(({ name }) => name);
    expect(await names('q=zEBRA&sort=name:desc')).toEqual(['Zebra 200', 'Zebra 100%']);
    expect(await names('q=100%25')).toEqual(['Zebra 100%']);
    expect(await status('/switchboard/webhooks?sort=secret:asc')).toBe(400);
  });

  it('takes several states of deliveries, and no unknown one', async () => {
    const webhook = await createWebhook(site, receiver.url, { events: ['contact.deleted'] });
    await site.request('POST', `/switchboard/webhooks/${webhook.id}/test`, {});
    const log = `/switchboard/webhook-deliveries?webhook=${webhook.id}`;
    const found = async (states: string) =>
      (await site.request<{ data: Delivery[] }>('GET', `${log}&state=${states}`)).body.data.length;
    expect(await found('waiting,failing,failed,sent')).toBe(0);
    expect(await found('failed,test')).toBe(1);
    expect(await status(`${log}&state=failed,lost`)).toBe(400);
  });
});
