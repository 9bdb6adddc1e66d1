import type { HealthReport } from '../../shared/contracts/overview';
import type {
  CursorPage,
  Delivery,
  DeliverySummary,
  FailureCauses,
  ListedWebhook,
  Page,
  WebhookSummary,
} from '../../shared/contracts/webhooks';
import { anyDatabase, describeEach } from '../support/databases';
import type { Receiver } from '../support/receiver';
import type { Site } from '../support/site';
import { waitFor } from '../support/wait';
import {
  copyWebhook,
  createWebhook,
  insertDeliveries,
  send,
  sql,
  useSiteAndReceiver,
} from './delivery-support';

const WEBHOOKS = 5000;
const DELIVERIES = 20_000;
const LARGEST = 15_000;

describeEach(anyDatabase(), 'the lists of the panel', (database) => {
  let site: Site;
  let receiver: Receiver;
  let first: number;
  useSiteAndReceiver({ database, webhooks: { retryScheduleSeconds: [3600] } }, (s, r) => {
    site = s;
    receiver = r;
  });

  const get = async <T>(path: string): Promise<{ body: T; bytes: number }> => {
    const { body, status, text } = await site.request<T>('GET', `/switchboard/${path}`);
    expect(status).toBe(200);
    return { body, bytes: Buffer.byteLength(text) };
  };

  /** Thousands of webhooks, each with deliveries that failed for reasons of its own. */
  const fill = async () => {
    receiver.respond({ status: 500 });
    const { id } = await createWebhook(site, receiver.url, {
      name: 'The mirror of the CRM',
      events: ['contact.created', 'deal.won', 'deal.lost', 'contact.tagged'],
    });
    first = id;
    await send(site, 'contact.created');
    await waitFor(async () => {
      const { body } = await get<{ data: HealthReport }>(`webhooks-health?webhook=${id}`);
      return body.data.totals.failing === 1;
    });
    await sql(site, 'UPDATE switchboard_webhooks SET events = \'["deal.won"]\' WHERE id = ?', [id]);
    await copyWebhook(site, id, WEBHOOKS);
    await insertDeliveries(site, id, DELIVERIES, { status: 'failed', tries: 8, error: 'http_503' });
    await sql(
      site,
      'UPDATE switchboard_deliveries SET webhook_id = webhook_id + id % 1000 WHERE webhook_id = ?',
      [id]
    );
  };

  it('stay light with thousands of webhooks, and say what is true of each', async () => {
    await fill();
    try {
      const webhooks = await get<Page<WebhookSummary>>('webhooks?view=summary&per_page=50');
      expect(webhooks.bytes).toBeLessThan(LARGEST);
      expect(webhooks.body.data).toHaveLength(50);
      const last = await get<Page<WebhookSummary>>('webhooks?view=summary&sort=id:desc');
      expect(last.body.data[0]!.id).toBeGreaterThan(first + WEBHOOKS - 1);
      const mine = webhooks.body.data.find(({ id }) => id === first)!;
      expect(mine.last).toMatchObject({ state: 'failed', error: 'http_503' });
      expect(mine.health.state).toBe('failing');

      const log = await get<CursorPage<DeliverySummary>>('webhook-deliveries?view=summary');
      expect(log.bytes).toBeLessThan(LARGEST);
      expect(log.body.data).toHaveLength(50);
      for (const { webhook_name: name } of log.body.data)
        expect(name).toBe('The mirror of the CRM');

      const causes = await get<FailureCauses>('webhook-deliveries/causes?by=cause');
      expect(causes.bytes).toBeLessThan(1000);
      expect(causes.body.data).toEqual([
        expect.objectContaining({ cause: 'http_503', count: DELIVERIES }),
        expect.objectContaining({ cause: 'http_500', count: 1 }),
      ]);
      for (const row of causes.body.data) expect(row).not.toHaveProperty('webhook_id');

      const health = await get<{ data: HealthReport }>('webhooks-health');
      expect(health.bytes).toBeLessThan(LARGEST);
      expect(health.body.data.webhooks).toHaveLength(20);
      expect(health.body.data.needing_attention).toBe(WEBHOOKS + 1);
    } finally {
      await sql(site, 'DELETE FROM switchboard_webhooks WHERE document_id LIKE ?', ['many%']);
      await sql(site, 'DELETE FROM switchboard_deliveries WHERE webhook_id > ?', [first]);
    }
  }, 120_000);

  it('answer 304 to who has the answer already, until it changes', async () => {
    const { id } = await createWebhook(site, receiver.url, { name: 'Quiet' });
    const path = '/switchboard/webhooks?view=summary';
    const before = await site.request('GET', path);
    const etag = before.headers.etag!;
    expect(before.headers['cache-control']).toBe('private, no-cache');
    const again = () => site.request('GET', path, { headers: { 'If-None-Match': etag } });
    const same = await again();
    expect([same.status, same.text]).toEqual([304, '']);
    await site.request('PUT', `/switchboard/webhooks/${id}`, { body: { name: 'Loud' } });
    expect((await again()).status).toBe(200);
    const secret = await site.request('GET', `/switchboard/webhooks/${id}/secret`);
    expect(secret.headers['cache-control']).toBe('no-store');
    expect(secret.headers).not.toHaveProperty('etag');
  });

  it('are whole unless the summary is asked for', async () => {
    const { id } = await createWebhook(site, receiver.url, { name: 'Named' });
    receiver.respond({});
    await send(site, 'contact.created');
    const { body } = await waitFor(async () => {
      const found = await get<Page<ListedWebhook>>('webhooks');
      return found.body.data.some(({ last }) => last !== null) ? found : undefined;
    });
    const listed = body.data.find((one) => one.id === id)!;
    expect(listed).toMatchObject({ payload: 'full', last: { status: 'sent', tries: 1 } });
    const log = await get<CursorPage<Delivery>>(`webhook-deliveries?webhook=${id}`);
    expect(log.body.data[0]).toMatchObject({ webhook_id: id, webhook_name: 'Named' });
    expect(log.body.data[0]!.request.body).toContain('contact.created');
  });
});
