import { randomUUID } from 'node:crypto';
import type { Delivery, TestResult, WebhookWithSecret } from '../../shared/contracts/webhooks';
import type { DatabaseKind } from '../support/databases';
import { type Received, type Receiver, type Script, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import { verifyPost } from '../unit/webhooks/support/verify-post';

const API = '/api/fw-crm/v1';

export const signedWith = (secret: string, post: Received): boolean =>
  verifyPost(secret, post.headers, post.raw, Math.floor(Date.now() / 1000));

/**
 * A site and a receiver for all tests of the `describe` it is called in. Before each test the
 * receiver is empty and `answers` (200 by default); after it the site has no webhooks.
 * @param webhooks the plugin's options of that name
 * @param started is given both as soon as they run
 */
export const useSiteAndReceiver = (
  {
    database,
    webhooks,
    answers = {},
  }: { database: DatabaseKind; webhooks: Record<string, unknown>; answers?: Script },
  started: (site: Site, receiver: Receiver) => void
): void => {
  let site: Site;
  let receiver: Receiver;
  beforeAll(async () => {
    receiver = await startReceiver();
    site = await startSite({ database, options: { webhooks } });
    started(site, receiver);
  }, 120_000);
  afterAll(async () => {
    await receiver?.close();
    await site?.stop();
  }, 60_000);
  beforeEach(() => {
    receiver.clear();
    receiver.respond(answers);
  });
  afterEach(() => removeWebhooks(site));
};

/** Makes a webhook over the management routes; it asks for every event unless `changes` says else. */
export const createWebhook = async (
  site: Site,
  url: string,
  changes: Record<string, unknown> = {}
): Promise<WebhookWithSecret> => {
  const answer = await site.request<WebhookWithSecret>('POST', `${API}/webhooks`, {
    body: { name: 'receiver', url, events: ['*'], ...changes },
  });
  if (answer.status !== 201) throw new Error(`creating a webhook: ${answer.status} ${answer.text}`);
  return answer.body;
};

export const updateWebhook = (site: Site, id: number, changes: Record<string, unknown>) =>
  site.request('PATCH', `${API}/webhooks/${id}`, { body: changes });

export const removeWebhook = (site: Site, id: number) =>
  site.request('DELETE', `${API}/webhooks/${id}`);

export const removeWebhooks = async (site: Site): Promise<void> => {
  const { body } = await site.request<{ data: { id: number }[] }>('GET', `${API}/webhooks`);
  for (const { id } of body.data) await removeWebhook(site, id);
};

export const getWebhook = async (site: Site, id: number): Promise<WebhookWithSecret> =>
  (await site.request<WebhookWithSecret>('GET', `${API}/webhooks/${id}`)).body;

/** The latest deliveries of a webhook, newest first. */
export const listDeliveries = async (site: Site, id: number, query = ''): Promise<Delivery[]> =>
  (await site.request<{ data: Delivery[] }>('GET', `${API}/webhooks/${id}/deliveries${query}`)).body
    .data;

export const retryDelivery = (site: Site, id: number) =>
  site.request<Delivery>('POST', `${API}/webhook-deliveries/${id}/retry`);

export const testWebhook = (site: Site, id: number) =>
  site.request<TestResult>('POST', `${API}/webhooks/${id}/test`, { timeoutMs: 30_000 });

export const send = (site: Site, event: string, data: unknown = {}): Promise<number> =>
  site.control<number>('send', { event, data });

/** Waits for the newest delivery of a webhook to satisfy `probe`, and resolves with it. */
export const waitForDelivery = (
  site: Site,
  webhookId: number,
  probe: (delivery: Delivery) => boolean,
  timeout = 30_000
): Promise<Delivery> =>
  waitFor(
    async () => (await listDeliveries(site, webhookId)).find(probe),
    timeout,
    'a delivery in that state'
  );

/** Rows of a raw statement, the same on each database. */
export const sql = <T = Record<string, unknown>>(
  site: Site,
  statement: string,
  bindings: unknown[] = []
): Promise<T[]> => site.control<T[]>('sql', { statement, bindings });

export const countRows = async (
  site: Site,
  where = '1 = 1',
  bindings: unknown[] = []
): Promise<number> => {
  const [row] = await sql<{ n: number | string }>(
    site,
    `SELECT COUNT(*) AS n FROM switchboard_deliveries WHERE ${where}`,
    bindings
  );
  return Number(row?.n);
};

/**
 * Inserts many deliveries by SQL, and queues those that are not sent.
 * @param values what differs from one that is due and pending
 * @param place what differs in the queue; null: they are not in it
 */
export const insertDeliveries = (
  site: Site,
  webhookId: number,
  count: number,
  values: Record<string, unknown> = {},
  place: Record<string, unknown> | null = {}
): Promise<void> =>
  site.evaluate(
    async ({ strapi, require }, id, total, changes, queued) => {
      const { randomUUID } = require('node:crypto');
      const at = Date.now();
      const client = strapi.db.connection;
      const [{ last }] = await client('switchboard_deliveries').max({ last: 'id' });
      for (let start = 0; start < total; start += 1000) {
        const rows = Array.from({ length: Math.min(1000, total - start) }, (_one, index) => {
          const deliveryId = randomUUID();
          return {
            document_id: deliveryId,
            webhook_id: id,
            event: 'load.test',
            status: 'pending',
            tries: 0,
            is_test: false,
            next_attempt_at: at,
            created_at: at,
            finished_at: null,
            error: null,
            url: 'http://127.0.0.1/',
            body: JSON.stringify({ id: deliveryId, event: 'load.test', data: start + index }),
            ...changes,
          };
        });
        await client.batchInsert('switchboard_deliveries', rows, 50);
      }
      const { status = 'pending', is_test: isTest = false } = changes;
      const tries = Number(changes.tries ?? 0);
      if (queued === null || status === 'sent') return;
      const section = isTest
        ? status === 'failed'
          ? 4
          : 3
        : status === 'failed'
          ? 2
          : tries > 0
            ? 1
            : 0;
      const state = status === 'failed' ? 3 : 0;
      const made = await client('switchboard_deliveries')
        .where('id', '>', last ?? 0)
        .orderBy('id');
      await client.batchInsert(
        'switchboard_delivery_queue',
        made.map((row: Record<string, unknown>) => ({
          ...{ id: row.id, group_id: row.webhook_id, state, section },
          ...{ due_at: row.next_attempt_at ?? at, error: row.error, event: row.event },
          ...{ created_at: row.created_at, ...queued },
        })),
        50
      );
    },
    webhookId,
    count,
    values,
    place
  );

/** Makes that many more webhooks like one, quickly. */
export const copyWebhook = (site: Site, id: number, count: number): Promise<void> =>
  site.evaluate(
    async ({ strapi }, first, total) => {
      const knex = strapi.db.connection;
      const { id: _id, ...row } = await knex('switchboard_webhooks').where({ id: first }).first();
      const rows = Array.from({ length: total }, (_one, index) => ({
        ...row,
        document_id: `many${String(index).padStart(20, '0')}`,
      }));
      await knex.batchInsert('switchboard_webhooks', rows, 50);
      // For so long a node remembers who subscribed.
      await new Promise((resolve) => setTimeout(resolve, 500));
    },
    id,
    count
  );

/** How often each delivery id arrived. */
export const arrivals = (receiver: Receiver): Map<string, Received[]> => {
  const byId = new Map<string, Received[]>();
  for (const post of receiver.requests) {
    const id = post.headers['x-service-delivery'] ?? '';
    byId.set(id, [...(byId.get(id) ?? []), post]);
  }
  return byId;
};

/**
 * All that a site has printed until now. What it prints reaches this process by a pipe, which may be
 * behind what it answers.
 */
export const logSoFar = async (site: Site): Promise<string> => {
  const mark = `the log up to ${randomUUID()}`;
  await site.evaluate(({ strapi }, line) => void strapi.log.info(line), mark);
  await waitFor(() => site.log().includes(mark), 30_000, 'the end of the log');
  return site.log();
};
