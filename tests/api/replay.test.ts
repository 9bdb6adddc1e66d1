import type { Recovery } from '../../shared/contracts/webhooks';
import { describeEach, databases, itOnce } from '../support/databases';
import { endLeases } from '../support/leases';
import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import {
  createWebhook,
  listDeliveries,
  removeWebhooks,
  send,
  sql,
  updateWebhook,
} from './delivery-support';

const API = '/api/fw-crm/v1';
const HOUR_MS = 3_600_000;

/** An hour around now. */
const range = () => ({
  from: new Date(Date.now() - HOUR_MS).toISOString(),
  to: new Date(Date.now() + HOUR_MS).toISOString(),
});

const ask = (site: Site, id: number, changes: Record<string, unknown> = {}) =>
  site.request('POST', `${API}/webhooks/${id}/replay`, { body: { ...range(), ...changes } });

const matching = async (site: Site, id: number, changes: Record<string, unknown> = {}) => {
  const answer = await ask(site, id, { ...changes, dry_run: true });
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  expect(Object.keys(answer.body)).toEqual(['matching']);
  return answer.body.matching as number;
};

const start = async (site: Site, id: number, changes: Record<string, unknown> = {}) => {
  const answer = await ask(site, id, changes);
  expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
  return answer.body as Recovery;
};

const ended = (site: Site, { id }: Recovery): Promise<Recovery> =>
  waitFor(async () => {
    const { body } = await site.request<Recovery>('GET', `${API}/webhook-recoveries/${id}`);
    return body.state === 'done' ? body : null;
  }, 60_000);

const numbersOf = (receiver: Receiver): unknown[] =>
  receiver.requests.map(({ body }) => (JSON.parse(String(body)) as { data: { n: number } }).data.n);

describeEach(databases(), 'replaying the journal', (database) => {
  let site: Site;
  let receiver: Receiver;
  beforeAll(async () => {
    receiver = await startReceiver();
    site = await startSite({ database, options: { webhooks: { journalDays: 3 } } });
  }, 120_000);
  afterAll(async () => {
    await receiver?.close();
    await site?.stop();
  }, 60_000);
  beforeEach(async () => {
    await removeWebhooks(site);
    await sql(site, 'DELETE FROM switchboard_journal');
    receiver.clear();
    receiver.respond({});
  });

  it('sends a new webhook what was published before it, once, in its order, and marked', async () => {
    for (let n = 1; n <= 5; n += 1) await send(site, 'loyalty.earned', { n });
    const { id } = await createWebhook(site, receiver.url);
    expect(await matching(site, id)).toBe(5);
    expect(await listDeliveries(site, id)).toEqual([]);
    const recovery = await start(site, id);
    expect(recovery).toMatchObject({ state: 'running', matching: 5, queued: 0, sent: 0 });
    expect(await ended(site, recovery)).toMatchObject({ matching: 5, queued: 5, sent: 5 });
    expect(numbersOf(receiver).sort()).toEqual([1, 2, 3, 4, 5]);
    const deliveries = await listDeliveries(site, id);
    for (const { headers, body } of receiver.requests) {
      expect(headers['x-service-replayed']).toBe('1');
      const envelope = JSON.parse(String(body)) as { id: string; created_at: string };
      expect(headers['x-service-delivery']).toBe(envelope.id);
      const delivery = deliveries.find(({ delivery_id: one }) => one === envelope.id);
      expect(delivery).toMatchObject({ replayed: true, state: 'sent', event: 'loyalty.earned' });
      expect(delivery?.request.headers['X-Service-Replayed']).toBe('1');
      expect(Date.parse(envelope.created_at)).toBeLessThanOrEqual(Date.parse(delivery!.created_at));
    }
    expect(await matching(site, id)).toBe(0);
    expect(await ended(site, await start(site, id))).toMatchObject({ matching: 0, queued: 0 });
    expect(receiver.requests).toHaveLength(5);
    const log = await site.request('GET', `${API}/webhook-deliveries?recovery=${recovery.id}`);
    expect(log.body.data).toHaveLength(5);
  });

  itOnce(database)(
    'leaves out what a webhook had, and sends what it missed while it was off',
    async () => {
      const { id } = await createWebhook(site, receiver.url);
      await send(site, 'loyalty.earned', { n: 1 });
      await receiver.waitFor(1);
      expect(receiver.requests[0]?.headers).not.toHaveProperty('x-service-replayed');
      await updateWebhook(site, id, { active: false });
      await send(site, 'loyalty.earned', { n: 2 });
      await updateWebhook(site, id, { active: true });
      await send(site, 'loyalty.earned', { n: 3 });
      await receiver.waitFor(2);
      expect(await matching(site, id)).toBe(1);
      await ended(site, await start(site, id));
      expect(numbersOf(receiver)).toEqual([1, 3, 2]);
      expect((await listDeliveries(site, id)).map(({ replayed }) => replayed).sort()).toEqual([
        false,
        false,
        true,
      ]);
    }
  );

  it('sends each event once where several ask at the same time', async () => {
    for (let n = 0; n < 40; n += 1) await send(site, 'loyalty.earned', { n });
    const { id } = await createWebhook(site, receiver.url);
    const started = await Promise.all([1, 2, 3].map(() => start(site, id)));
    const all = await Promise.all(started.map((one) => ended(site, one)));
    expect(all.reduce((sum, { queued }) => sum + queued, 0)).toBe(40);
    expect(numbersOf(receiver).sort((a, b) => Number(a) - Number(b))).toEqual(
      Array.from({ length: 40 }, (_one, n) => n)
    );
  }, 120_000);

  itOnce(database)(
    'keeps to the events, the filter and the payload of the webhook, and to those asked for',
    async () => {
      await send(site, 'loyalty.earned', { n: 1, customer_id: 5, note: 'x' });
      await send(site, 'loyalty.earned', { n: 2 });
      await site.request('POST', `${API}/contacts`, { body: { email: 'r@example.test' } });
      await site.request('POST', `${API}/companies`, { body: { name: 'Replayed' } });
      const filter = { required: ['customer_id'] };
      const thin = await createWebhook(site, receiver.url, { filter, payload: 'thin' });
      expect(await matching(site, thin.id)).toBe(1);
      await ended(site, await start(site, thin.id));
      const [post] = await receiver.waitFor(1);
      expect((JSON.parse(String(post!.body)) as { data: unknown }).data).toEqual({
        customer_id: 5,
      });
      const company = await createWebhook(site, receiver.url, { events: ['company.created'] });
      expect(await matching(site, company.id)).toBe(1);
      expect(await matching(site, company.id, { events: ['contact.created'] })).toBe(0);
      const all = await createWebhook(site, receiver.url);
      expect(await matching(site, all.id)).toBe(4);
      expect(await matching(site, all.id, { events: ['company.created', 'contact.created'] })).toBe(
        2
      );
      expect(await matching(site, all.id, { events: ['*'] })).toBe(4);
    }
  );

  it('keeps to the time that is asked for, whose end is not in it', async () => {
    const { id } = await createWebhook(site, receiver.url, { active: false });
    await send(site, 'loyalty.earned', { n: 1 });
    const noon = Date.UTC(2030, 0, 1, 12);
    await sql(site, 'UPDATE switchboard_journal SET created_at = ?', [noon]);
    const of = (from: number, to: number) =>
      matching(site, id, {
        from: new Date(from).toISOString(),
        to: new Date(to).toISOString(),
      });
    expect(await of(noon, noon + 1)).toBe(1);
    expect(await of(noon - 1000, noon)).toBe(0);
    expect(await of(noon + 1, noon + 1000)).toBe(0);
  });

  itOnce(database)('keeps its deliveries to the schedule, and marks each try', async () => {
    await send(site, 'loyalty.earned', { n: 1 });
    const { id } = await createWebhook(site, receiver.url);
    receiver.respond({ status: 500 });
    expect(await ended(site, await start(site, id))).toMatchObject({ sent: 0, failed: 1 });
    const [delivery] = await listDeliveries(site, id);
    expect(delivery).toMatchObject({ state: 'failing', tries: 1, replayed: true });
    receiver.respond({});
    const again = await site.request('POST', `${API}/webhook-deliveries/${delivery!.id}/retry`);
    expect(again.body).toMatchObject({ state: 'sent', replayed: true });
    const [first, second] = receiver.requests;
    expect(second?.headers['x-service-replayed']).toBe('1');
    expect(second?.body).toEqual(first?.body);
    // It had it, though it failed at first.
    expect(await matching(site, id)).toBe(0);
  });

  itOnce(database)(
    'goes on after a kill, and neither loses nor doubles an event',
    async () => {
      for (let n = 0; n < 150; n += 1) await send(site, 'loyalty.earned', { n });
      const { id } = await createWebhook(site, receiver.url);
      receiver.respond({ delayMs: 20 });
      const recovery = await start(site, id);
      await receiver.waitFor(20);
      await site.kill();
      await endLeases(site);
      await site.restart();
      expect(await ended(site, recovery)).toMatchObject({ matching: 150, queued: 150, sent: 150 });
      const deliveries = new Set(
        receiver.requests.map(({ headers }) => headers['x-service-delivery'])
      );
      expect(deliveries.size).toBe(150);
      expect(new Set(numbersOf(receiver)).size).toBe(150);
    },
    180_000
  );

  itOnce(database)('refuses what is no range and no event, and an unknown webhook', async () => {
    const { id } = await createWebhook(site, receiver.url);
    const now = new Date().toISOString();
    for (const [changes, field] of [
      [{ from: undefined }, 'from'],
      [{ from: 'yesterday' }, 'from'],
      [{ from: 5 }, 'from'],
      [{ to: undefined }, 'to'],
      [{ to: '2030-01-01' }, 'to'],
      [{ from: now, to: now }, 'to'],
      [{ events: [] }, 'events'],
      [{ events: 'contact.created' }, 'events'],
      [{ events: ['no.such'] }, 'events'],
      [{ dry_run: 'yes' }, 'dry_run'],
    ] as const) {
      const { status, body } = await ask(site, id, changes);
      expect([changes, status]).toEqual([changes, 400]);
      expect(body.error.details.errors[0].path[0]).toBe(field);
    }
    expect((await ask(site, 999_999)).status).toBe(404);
    const admin = await site.request('POST', `/switchboard/webhooks/${id}/replay`, {
      body: { ...range(), dry_run: true },
    });
    expect([admin.status, admin.body]).toEqual([200, { data: { matching: 0 } }]);
  });

  itOnce(database)('answers 409 where there is no journal', async () => {
    const { id } = await createWebhook(site, receiver.url);
    await site.restart({ options: {} });
    const { status, body } = await ask(site, id, { dry_run: true });
    expect(status).toBe(409);
    expect(body.error.message).toMatch(/webhooks\.journalDays/);
    expect((await ask(site, id)).status).toBe(409);
  });
});
