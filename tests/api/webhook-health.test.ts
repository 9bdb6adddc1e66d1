import type { HealthReport } from '../../shared/contracts/overview';
import type { Health, ManagedWebhook } from '../../shared/contracts/webhooks';
import { describeEach, anyDatabase } from '../support/databases';
import type { Receiver } from '../support/receiver';
import type { Site } from '../support/site';
import { waitFor } from '../support/wait';
import {
  copyWebhook,
  createWebhook,
  getWebhook,
  insertDeliveries,
  send,
  sql,
  testWebhook,
  updateWebhook,
  useSiteAndReceiver,
  waitForDelivery,
} from './delivery-support';

const HOUR_MS = 3_600_000;
const NEW: Health = {
  state: 'new',
  failing_since: null,
  paused_until: null,
  waiting: 0,
  failing: 0,
};

describeEach(anyDatabase(), 'the health of a webhook', (database) => {
  let site: Site;
  let receiver: Receiver;
  useSiteAndReceiver({ database, webhooks: { retryScheduleSeconds: [3600] } }, (s, r) => {
    site = s;
    receiver = r;
  });

  const healthOf = async (id: number): Promise<Health> => (await getWebhook(site, id)).health;
  const waitForHealth = (id: number, expected: Partial<Health>): Promise<Health> =>
    waitFor(
      async () => {
        const health = await healthOf(id);
        expect(health).toMatchObject(expected);
        return health;
      },
      30_000,
      'that health'
    );
  const listed = async (): Promise<Map<number, Health>> => {
    const answer = await site.request<{ data: ManagedWebhook[] }>(
      'GET',
      '/api/fw-crm/v1/webhooks?per_page=100'
    );
    return new Map(answer.body.data.map(({ id, health }) => [id, health]));
  };

  it('is new until an attempt of a real delivery, whatever a test did', async () => {
    const made = await createWebhook(site, receiver.url);
    expect(made.health).toEqual(NEW);
    receiver.respond({ status: 500 });
    await testWebhook(site, made.id);
    expect(await healthOf(made.id)).toEqual(NEW);
    receiver.respond({});
    await send(site, 'contact.created');
    expect(await waitForHealth(made.id, { state: 'healthy' })).toEqual({
      ...NEW,
      state: 'healthy',
    });
    receiver.respond({ status: 500 });
    await testWebhook(site, made.id);
    expect(await healthOf(made.id)).toMatchObject({ state: 'healthy', failing: 0 });
    expect((await listed()).get(made.id)).toEqual(await healthOf(made.id));
  });

  it('fails since the first failure after the last success, and is well with the next success', async () => {
    const { id } = await createWebhook(site, receiver.url);
    await send(site, 'contact.created');
    await waitForHealth(id, { state: 'healthy' });
    receiver.respond({ status: 500 });
    await send(site, 'contact.created', { n: 1 });
    const first = await waitForHealth(id, { state: 'failing', failing: 1 });
    await send(site, 'contact.created', { n: 2 });
    const second = await waitForHealth(id, { state: 'failing', failing: 2, waiting: 0 });
    expect(first.failing_since).not.toBeNull();
    expect(second.failing_since).toBe(first.failing_since);
    receiver.respond({});
    await send(site, 'contact.created', { n: 3 });
    expect(await waitForHealth(id, { state: 'healthy' })).toMatchObject({
      failing_since: null,
      failing: 2,
    });
  });

  it('goes on failing when it is switched off and on, which is no attempt', async () => {
    const { id } = await createWebhook(site, receiver.url);
    receiver.respond({ status: 500 });
    await send(site, 'contact.created');
    const { failing_since: since } = await waitForHealth(id, { state: 'failing' });
    await updateWebhook(site, id, { active: false });
    expect(await healthOf(id)).toMatchObject({ state: 'off', failing_since: since, failing: 1 });
    await updateWebhook(site, id, { active: true });
    expect(await healthOf(id)).toMatchObject({ state: 'failing', failing_since: since });
  });

  it('says what waits for one that is off, and when it is switched on', async () => {
    const { id } = await createWebhook(site, receiver.url, { events: ['contact.created'] });
    const off = await updateWebhook(site, id, { active: false });
    const nothing = { waiting_since: null, oldest_at: null };
    expect(off.body.health).toEqual({ ...NEW, state: 'off', ...nothing });
    const at = Date.now() - 50 * HOUR_MS;
    await insertDeliveries(site, id, 1, { tries: 2, created_at: at - HOUR_MS });
    await insertDeliveries(site, id, 3, { created_at: at });
    await insertDeliveries(site, id, 2);
    await insertDeliveries(site, id, 1, { status: 'sent', tries: 1 });
    await insertDeliveries(site, id, 1, { is_test: true });
    const waiting = {
      ...{ waiting: 5, failing: 1 },
      waiting_since: new Date(at).toISOString(),
      oldest_at: new Date(at - HOUR_MS).toISOString(),
    };
    const seen = async (): Promise<Health> => {
      const health = await healthOf(id);
      return {
        ...health,
        waiting_since: new Date(health.waiting_since!).toISOString(),
        oldest_at: new Date(health.oldest_at!).toISOString(),
      };
    };
    expect(await seen()).toMatchObject({ state: 'off', ...waiting });
    expect((await listed()).get(id)).not.toHaveProperty('waiting_since');
    const on = await updateWebhook(site, id, { active: true });
    expect(on.body.health).toMatchObject({ state: 'new', waiting: 5, failing: 1 });
    expect(Date.parse(on.body.health.waiting_since)).toBe(at);
    const { health } = await getWebhook(site, id);
    expect(health).not.toHaveProperty('waiting_since');
    await waitForHealth(id, { state: 'healthy', waiting: 0, failing: 0 });
  });

  it('is written only when it changes', async () => {
    const { id } = await createWebhook(site, receiver.url);
    await send(site, 'contact.created');
    await waitForHealth(id, { state: 'healthy' });
    // Whatever writes that the webhook is well takes this away.
    await sql(site, 'UPDATE switchboard_webhooks SET failing_since = 5 WHERE id = ?', [id]);
    for (let n = 0; n < 3; n += 1) await send(site, 'contact.created', { n });
    await waitForDelivery(site, id, ({ request, status }) =>
      Boolean(status === 'sent' && request.body.includes('"n":2'))
    );
    const [row] = await sql(site, 'SELECT failing_since FROM switchboard_webhooks WHERE id = ?', [
      id,
    ]);
    expect(Number(row?.failing_since)).toBe(5);
  });

  it('stops counting at 10,000 of a webhook', async () => {
    const { id } = await createWebhook(site, receiver.url, { active: false });
    await insertDeliveries(site, id, 10_050, { created_at: Date.now() - 1000 });
    expect(await healthOf(id)).toMatchObject({ waiting: 10_000, failing: 0 });
  }, 90_000);

  it('is in the report of all webhooks, which counts all there are', async () => {
    const one = await createWebhook(site, receiver.url, { events: ['contact.created'] });
    receiver.respond({ status: 500 });
    await send(site, 'contact.created');
    await waitForHealth(one.id, { state: 'failing' });
    const well = await createWebhook(site, receiver.url, { events: ['contact.updated'] });
    await copyWebhook(site, well.id, 120);
    const quiet = await createWebhook(site, receiver.url, { events: ['contact.updated'] });
    await updateWebhook(site, quiet.id, { active: false });
    await insertDeliveries(site, quiet.id, 4);
    const report = async (query = '') => {
      const path = `/switchboard/webhooks-health${query}`;
      const { body } = await site.request<{ data: HealthReport }>('GET', path);
      return body.data;
    };
    const data = await waitFor(async () => {
      const found = await report();
      return found.totals.pending === 5 ? found : undefined;
    });
    const of = (id: number) => data.webhooks.find((row) => row.webhook_id === id)!;
    expect(data.webhooks).toHaveLength(20);
    expect(data.webhooks.slice(0, 2).map(({ webhook_id: id }) => id)).toEqual([one.id, quiet.id]);
    expect(data.needing_attention).toBe(2);
    expect(data.totals).toEqual({ pending: 5, failing: 1, sent: 0, failed: 0 });
    expect(of(one.id).health).toMatchObject({ state: 'failing', failing: 1, waiting: 0 });
    expect(of(quiet.id)).toMatchObject({ pending: 4, health: { state: 'off', waiting: 4 } });
    const own = await report(`?webhook=${quiet.id}`);
    expect(own.totals).toEqual({ pending: 4, failing: 0, sent: 0, failed: 0 });
    expect(own.webhooks.map(({ webhook_id: id }) => id)).toEqual([quiet.id]);
    await sql(site, 'DELETE FROM switchboard_webhooks WHERE document_id LIKE ?', ['many%']);
  });
});
