import { describeEach, databases } from '../support/databases';
import type { Receiver } from '../support/receiver';
import type { Site } from '../support/site';
import { createWebhook, send, sql, useSiteAndReceiver, waitForDelivery } from './delivery-support';

/** Deliveries that are not done, each with the token of its lease. */
const waiting = (site: Site) =>
  sql<{ document_id: string; owner: string | null; webhook_id: number }>(
    site,
    `SELECT d.document_id, d.webhook_id, q.owner FROM switchboard_deliveries d
     JOIN switchboard_delivery_queue q ON q.id = d.id`
  );

describeEach(databases(), 'a delivery of a process that sends', (database) => {
  let site: Site;
  let receiver: Receiver;
  useSiteAndReceiver({ database, webhooks: {} }, (s, r) => {
    [site, receiver] = [s, r];
  });

  it('is queued under its lease, but not for a webhook with an order or a rate', async () => {
    receiver.respond({ delayMs: 700 });
    const free = await createWebhook(site, `${receiver.url}free`);
    const ordered = await createWebhook(site, `${receiver.url}a`, { ordering: 'by_record' });
    const rated = await createWebhook(site, `${receiver.url}b`, { rate_per_second: 50 });
    await send(site, 'order.placed', { n: 1 });
    await receiver.waitFor(3);
    const rows = await waiting(site);
    const leasedAtBirth = rows.filter(({ document_id: id, owner }) => owner === id);
    expect(rows).toHaveLength(3);
    expect(leasedAtBirth.map(({ webhook_id: id }) => Number(id))).toEqual([free.id]);
    for (const { id } of [free, ordered, rated])
      await waitForDelivery(site, id, ({ status }) => status === 'sent');
    expect(receiver.requests).toHaveLength(3);
  });

  it('that is rolled back takes no room from the next one', async () => {
    receiver.respond({ status: 200 });
    const { id } = await createWebhook(site, receiver.url);
    await site.evaluate(async ({ strapi }) => {
      const publish = (n: number) =>
        strapi.hook('service_crm_webhook').call({ event: 'order.placed', data: { n } });
      for (let n = 0; n < 300; n += 1) {
        const undone = strapi.db.transaction(async () => {
          await publish(n);
          throw new Error('undone');
        });
        await undone.catch(() => {});
      }
    });
    receiver.respond({ delayMs: 700 });
    await send(site, 'order.placed', { n: 'kept' });
    await receiver.waitFor(1);
    const [row, ...others] = await waiting(site);
    expect(others).toEqual([]);
    expect(row?.owner).toBe(row?.document_id);
    await waitForDelivery(site, id, ({ status }) => status === 'sent');
    expect(receiver.requests).toHaveLength(1);
  });

  it('needs nothing of its webhook that its write has not read', async () => {
    await createWebhook(site, receiver.url);
    const asked = await site.evaluate(async ({ strapi }) => {
      // What a write has read is used for a quarter of a second; on a busy machine it may take longer itself.
      const goodForMs = 250;
      let questions = 0;
      let began = 0;
      const note = (query: string) => {
        const isEarly = performance.now() - began < goodForMs;
        if (isEarly && /AS modules\s+FROM\s+\S*switchboard_webhooks/i.test(query)) questions += 1;
      };
      const { connection } = strapi.db;
      const hear = ({ sql: query }: { sql: string }) => note(query);
      connection.on('query', hear);
      // SQLite's driver is given some statements without the query builder.
      const held = await connection.client.acquireConnection();
      const prototype = held.prepare ? Object.getPrototypeOf(held.prepare('SELECT 1')) : {};
      await connection.client.releaseConnection(held);
      const { all } = prototype;
      prototype.all = function (...given: unknown[]) {
        note(this.source);
        return all.apply(this, given);
      };
      for (let n = 0; n < 4; n += 1) {
        // Longer than anything that was read may be used.
        await new Promise((resolve) => setTimeout(resolve, 600));
        began = performance.now();
        await strapi.service('plugin::switchboard.events').send('order.placed', { n });
      }
      await new Promise((resolve) => setTimeout(resolve, 300));
      prototype.all = all;
      connection.removeListener('query', hear);
      return questions;
    });
    expect(receiver.requests).toHaveLength(4);
    expect(asked).toBe(0);
  });

  it('goes out when its process has let the lease end before its commit', async () => {
    const { id } = await createWebhook(site, receiver.url);
    await site.evaluate(({ strapi }) =>
      strapi.db.transaction(async () => {
        await strapi.hook('service_crm_webhook').call({ event: 'order.placed', data: {} });
        await new Promise((resolve) => setTimeout(resolve, 5000));
      })
    );
    await waitForDelivery(site, id, ({ status }) => status === 'sent');
    expect(receiver.requests).toHaveLength(1);
  }, 60_000);
});
