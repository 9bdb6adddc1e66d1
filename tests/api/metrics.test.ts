import { createAdminUser, createApiToken } from '../support/accounts';
import { anyDatabase, describeEach, databases, itOnce } from '../support/databases';
import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import { createTill } from './pos-till';
import {
  createWebhook,
  insertDeliveries,
  removeWebhook,
  send,
  sql,
  waitForDelivery,
} from './delivery-support';

const METRICS = '/api/fw-crm/v1/metrics';

/** Samples by name and labels, as they stand in the text. */
type Samples = Readonly<Record<string, number>>;

const parse = (text: string): Samples =>
  Object.fromEntries(
    text
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => {
        const [, name = '', value] = /^(\S+(?:\{.*\})?) (\S+)$/.exec(line) ?? [];
        return [name, Number(value)];
      })
  );

const read = async (site: Site): Promise<Samples> => {
  const answer = await site.request('GET', METRICS);
  expect(answer.status).toBe(200);
  return parse(answer.text);
};

const attempts = (samples: Samples): [number | undefined, number | undefined] => [
  samples['switchboard_delivery_attempts_total{outcome="sent"}'],
  samples['switchboard_delivery_attempts_total{outcome="failed"}'],
];

describeEach(databases(), 'the metrics', (database) => {
  let site: Site;
  let receiver: Receiver;
  beforeAll(async () => {
    receiver = await startReceiver();
    site = await startSite({ database, options: { webhooks: { logDays: 1 } } });
  }, 120_000);
  afterAll(async () => {
    await receiver?.close();
    await site?.stop();
  }, 60_000);
  afterEach(() => receiver.respond({}));

  itOnce(database)('are text that Prometheus reads, of every metric with its type', async () => {
    const { headers, text } = await site.request('GET', METRICS);
    expect(headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [
      name,
      type,
    ]);
    expect(Object.fromEntries(types)).toEqual({
      switchboard_delivery_attempts_total: 'counter',
      switchboard_deliveries_ended_total: 'counter',
      switchboard_delivery_answer_seconds: 'histogram',
      switchboard_deliveries_waiting: 'gauge',
      switchboard_deliveries_failing: 'gauge',
      switchboard_delivery_oldest_waiting_seconds: 'gauge',
      switchboard_webhooks: 'gauge',
      switchboard_pos_records_waiting: 'gauge',
      switchboard_pos_record_oldest_waiting_seconds: 'gauge',
      switchboard_pos_records_stuck: 'gauge',
    });
    expect(Object.values(parse(text)).every((value) => value === 0)).toBe(true);
  });

  it('count attempts, what waits and what fails, the same on each node', async () => {
    const { id } = await createWebhook(site, receiver.url);
    await send(site, 'loyalty.earned', {});
    await waitForDelivery(site, id, ({ state }) => state === 'sent');
    receiver.respond({ status: 500 });
    await send(site, 'loyalty.earned', {});
    await waitForDelivery(site, id, ({ state }) => state === 'failing');
    const off = await createWebhook(site, receiver.url);
    // Every five minutes it would release what is parked below, whose module is on.
    await site.evaluate(({ strapi }) => void strapi.cron.remove('switchboardHeldBack'));
    await insertDeliveries(site, off.id, 1, { created_at: Date.now() - 60_000 }, { state: 2 });
    const samples = await read(site);
    expect(attempts(samples)).toEqual([1, 1]);
    expect(samples).toMatchObject({
      'switchboard_deliveries_ended_total{outcome="sent"}': 1,
      'switchboard_deliveries_ended_total{outcome="failed"}': 0,
      'switchboard_delivery_answer_seconds_bucket{le="+Inf"}': 2,
      switchboard_delivery_answer_seconds_count: 2,
      switchboard_deliveries_waiting: 1,
      switchboard_deliveries_failing: 1,
      'switchboard_webhooks{state="failing"}': 1,
      'switchboard_webhooks{state="new"}': 1,
      'switchboard_webhooks{state="healthy"}': 0,
    });
    expect(samples.switchboard_delivery_oldest_waiting_seconds).toBeGreaterThanOrEqual(59);
    if (anyDatabase().includes(database)) {
      const sibling = await site.sibling({ options: { webhooks: { dispatch: false } } });
      try {
        expect(attempts(await read(sibling))).toEqual([1, 1]);
      } finally {
        await sibling.stop();
      }
    }
    await sql(site, 'DELETE FROM switchboard_delivery_queue WHERE group_id = ?', [off.id]);
    await removeWebhook(site, off.id);
  }, 120_000);

  it('never fall: neither with a webhook that goes, nor with hours that are too old', async () => {
    const before = await read(site);
    expect(attempts(before)).toEqual([1, 1]);
    const long = Date.now() - 40 * 86_400_000;
    await sql(
      site,
      'INSERT INTO switchboard_delivery_rollups (webhook_id, hour, sent, failed) VALUES (9001, ?, 5, 7), (9002, ?, 1, 0)',
      [long - (long % 3_600_000), long - (long % 3_600_000)]
    );
    expect(attempts(await read(site))).toEqual([7, 8]);
    await site.evaluate(async ({ strapi }) => {
      await strapi.cron.jobs
        .find(({ name }: { name: string }) => name === 'switchboardDeliveryRetention')
        .job.invoke();
    });
    const [left] = await sql<{ n: number }>(
      site,
      'SELECT COUNT(*) AS n FROM switchboard_delivery_rollups WHERE webhook_id > 9000'
    );
    expect(Number(left?.n)).toBe(0);
    expect(attempts(await read(site))).toEqual([7, 8]);
    const { body } = await site.request('GET', '/api/fw-crm/v1/webhooks');
    for (const { id } of body.data as { id: number }[]) await removeWebhook(site, id);
    const [none] = await sql<{ n: number }>(
      site,
      'SELECT COUNT(*) AS n FROM switchboard_delivery_rollups'
    );
    expect(Number(none?.n)).toBe(0);
    expect(attempts(await read(site))).toEqual([7, 8]);
    expect((await read(site)).switchboard_delivery_answer_seconds_count).toBe(2);
  });

  it('count records of tills that wait, or are stuck', async () => {
    const till = await createTill(site);
    expect((await till.sale([['NOBODY-KNOWS', 1]])).status).toBe(202);
    await waitFor(
      async () => (await read(site))['switchboard_pos_records_stuck{state="needs_mapping"}'] === 1,
      30_000
    );
    expect(await read(site)).toMatchObject({
      switchboard_pos_records_waiting: 0,
      switchboard_pos_record_oldest_waiting_seconds: 0,
    });
  });

  itOnce(database)('need a permission of their own, in both APIs', async () => {
    const who = (...permissions: string[]) => createApiToken(site, { type: 'custom', permissions });
    const reader = await who('plugin::switchboard.metrics.find');
    const other = await who('plugin::switchboard.webhooks.find');
    const asked = async (path: string, token: string) =>
      (await site.request('GET', path, { as: { token } })).status;
    expect(await asked(METRICS, reader)).toBe(200);
    expect(await asked(METRICS, other)).toBe(403);
    const manager = await createAdminUser(site, { role: 'CRM Manager' });
    const editor = await createAdminUser(site, { role: 'Editor' });
    expect(await asked('/switchboard/metrics', manager.token)).toBe(200);
    expect(await asked('/switchboard/metrics', editor.token)).toBe(403);
    const shown = await site.request('GET', '/switchboard/metrics', { as: manager });
    expect(attempts(parse(shown.text))).toEqual([7, 8]);
  });
});

describeEach(anyDatabase(), 'traces', (database) => {
  let site: Site;
  let receiver: Receiver;
  beforeAll(async () => {
    receiver = await startReceiver();
    site = await startSite({ database });
  }, 120_000);
  afterAll(async () => {
    await receiver?.close();
    await site?.stop();
  }, 60_000);

  it('have a span for what is published, tried, taken in and applied', async () => {
    await site.evaluate(({ state, require }) => {
      const api = require('@opentelemetry/api');
      state.spans = [];
      const start = (name: string, options: { attributes: Record<string, unknown> }) => {
        const span = { name, attributes: { ...options.attributes }, status: 0, ended: false };
        state.spans.push(span);
        return {
          setAttribute: (key: string, value: unknown) => void (span.attributes[key] = value),
          setStatus: ({ code }: { code: number }) => void (span.status = code),
          end: () => void (span.ended = true),
        };
      };
      const tracer = {
        startSpan: start,
        startActiveSpan: (name: string, options: never, work: (span: object) => unknown) =>
          work(start(name, options)),
      };
      api.trace.setGlobalTracerProvider({ getTracer: () => tracer });
    });
    receiver.respond({ status: 503 });
    const { id } = await createWebhook(site, receiver.url);
    await send(site, 'loyalty.earned', { secret: 'not for traces' });
    await waitForDelivery(site, id, ({ state }) => state === 'failing');
    const till = await createTill(site);
    expect((await till.sale([['TEA', 1]])).status).toBe(202);
    const spans = await waitFor(async () => {
      const found = await site.control<{ name: string }[]>('state', { key: 'spans' });
      if (found.some(({ name }) => name === 'switchboard.apply')) return found;
      throw new Error(`no switchboard.apply among ${found.map(({ name }) => name).join()}`);
    }, 40_000);
    const of = (name: string) => spans.find((one) => one.name === name);
    expect(of('switchboard.publish')).toMatchObject({
      attributes: { 'switchboard.events': ['loyalty.earned'], 'switchboard.deliveries': 1 },
      status: 0,
      ended: true,
    });
    expect(of('switchboard.attempt')).toMatchObject({
      attributes: {
        'switchboard.webhook_id': id,
        'switchboard.event': 'loyalty.earned',
        'http.response.status_code': 503,
        'error.type': 'http_503',
      },
      status: 2,
    });
    expect(of('switchboard.intake')).toMatchObject({ attributes: { 'switchboard.kind': 'sale' } });
    expect(of('switchboard.apply')).toMatchObject({ attributes: { 'switchboard.records': 1 } });
    expect(JSON.stringify(spans)).not.toContain('not for traces');
  });
});
