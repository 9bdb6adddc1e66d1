import { describeEach, anyDatabase } from '../support/databases';
import type { Receiver } from '../support/receiver';
import type { Site } from '../support/site';
import { waitFor } from '../support/wait';
import {
  createWebhook,
  getWebhook,
  listDeliveries,
  retryDelivery,
  send,
  sql,
  testWebhook,
  updateWebhook,
  useSiteAndReceiver,
  waitForDelivery,
} from './delivery-support';

const HOUR_MS = 3_600_000;

describeEach(anyDatabase(), 'what a receiver asks for', (database) => {
  let site: Site;
  let receiver: Receiver;
  useSiteAndReceiver(
    { database, webhooks: { retryScheduleSeconds: [3600, 3600], pollSeconds: 1 } },
    (s, r) => {
      [site, receiver] = [s, r];
    }
  );

  const isPaused = (id: number) =>
    waitFor(async () => (await getWebhook(site, id)).health.state === 'paused');

  describe('a pause, by Retry-After', () => {
    it.each([429, 503])(
      'of %s holds back all of the webhook, and counts no attempt',
      async (status) => {
        receiver.respond({ status, headers: { 'retry-after': '5' } });
        const { id } = await createWebhook(site, receiver.url);
        await send(site, 'shop.one');
        await isPaused(id);
        const { health } = await getWebhook(site, id);
        expect(health).toMatchObject({ failing_since: null, waiting: 1, failing: 0 });
        const left = Date.parse(health.paused_until ?? '') - Date.now();
        expect(left).toBeLessThanOrEqual(5000);
        const [first] = await listDeliveries(site, id);
        expect(first).toMatchObject({
          ...{ state: 'waiting', status: 'pending', tries: 0, error: null },
          next_attempt_at: health.paused_until,
        });
        expect(first?.attempts.map(({ error }) => error)).toEqual([`http_${status}`]);

        receiver.respond({});
        await send(site, 'shop.two');
        const posts = await receiver.waitFor(3);
        const [asked, ...later] = posts.map(({ at }) => at);
        for (const at of later) expect(at - (asked ?? 0)).toBeGreaterThan(4500);
        await waitFor(async () =>
          (await listDeliveries(site, id)).every(
            ({ state, tries }) => state === 'sent' && tries === 1
          )
        );
        const after = await getWebhook(site, id);
        expect(after.health).toMatchObject({ state: 'healthy', paused_until: null });
      }
    );

    it('keeps a delivery that fails where it was, with its cause and its place in the schedule', async () => {
      receiver.enqueue({ status: 500 }, { status: 429, headers: { 'retry-after': '1' } });
      const { id } = await createWebhook(site, receiver.url);
      await send(site, 'shop.one');
      const failing = await waitForDelivery(site, id, ({ tries }) => tries === 1);
      const { body } = await retryDelivery(site, failing.id);
      expect(body).toMatchObject({
        ...{ state: 'failing', tries: 1, error: 'http_500' },
        next_attempt_at: failing.next_attempt_at,
      });
      expect(body.attempts).toHaveLength(2);
    });

    it.each(['0', 'soon', '-5', '1.5', 'Mon, 09 Mar 2020 14:31:00 GMT'])(
      'is none where it says %p: the attempt counts',
      async (value) => {
        receiver.respond({ status: 503, headers: { 'retry-after': value } });
        const { id } = await createWebhook(site, receiver.url);
        await send(site, 'shop.one');
        const failing = await waitForDelivery(site, id, ({ tries }) => tries === 1);
        expect(failing).toMatchObject({ state: 'failing', error: 'http_503' });
        expect((await getWebhook(site, id)).health).toMatchObject({
          ...{ state: 'failing', paused_until: null },
        });
      }
    );

    it('is none with another status', async () => {
      receiver.respond({ status: 500, headers: { 'retry-after': '60' } });
      const { id } = await createWebhook(site, receiver.url);
      await send(site, 'shop.one');
      await waitForDelivery(site, id, ({ tries }) => tries === 1);
      expect((await getWebhook(site, id)).health.state).toBe('failing');
    });

    it('is cut at a day, and ends where somebody changes the address', async () => {
      receiver.respond({ status: 429, headers: { 'retry-after': '999999999' } });
      const { id } = await createWebhook(site, receiver.url);
      await send(site, 'shop.one');
      await isPaused(id);
      const until = Date.parse((await getWebhook(site, id)).health.paused_until ?? '');
      expect(Math.abs(until - Date.now() - 24 * HOUR_MS)).toBeLessThan(60_000);
      receiver.respond({});
      await updateWebhook(site, id, { url: `${receiver.url}moved` });
      expect((await getWebhook(site, id)).health).toMatchObject({
        state: 'new',
        paused_until: null,
      });
      await send(site, 'shop.two');
      await receiver.waitFor(1, undefined, ({ path }) => path === '/moved');
    });

    it('has nothing claimed of the webhook while it lasts', async () => {
      receiver.respond({ status: 429, headers: { 'retry-after': '3600' } });
      const { id } = await createWebhook(site, receiver.url);
      await send(site, 'shop.one');
      await isPaused(id);
      await site.evaluate(async ({ strapi, state }) => {
        state.claims = [];
        state.listen = ({ sql: statement }: { sql: string }) => {
          if (/update .*switchboard_delivery_queue.* set .*owner/is.test(statement)) {
            state.claims.push(statement);
          }
        };
        const { connection, dialect } = strapi.db;
        connection.on('query', state.listen);
        if (dialect.client !== 'sqlite') return;
        // Statements that are prepared once do not pass knex, which says so of others alone.
        const raw = await connection.client.acquireConnection();
        const statements = Object.getPrototypeOf(raw.prepare('SELECT 1'));
        await connection.client.releaseConnection(raw);
        for (const method of ['all', 'run']) {
          const original = statements[method];
          statements[method] = function heard(this: { source: string }, ...values: unknown[]) {
            state.listen({ sql: this.source });
            return original.apply(this, values);
          };
        }
      });
      for (let nth = 0; nth < 5; nth += 1) {
        await send(site, 'shop.more');
        await receiver.settle(300);
      }
      expect(await site.control('state', { key: 'claims' })).toEqual([]);
      expect(receiver.requests).toHaveLength(1);
      receiver.respond({});
      await updateWebhook(site, id, { url: `${receiver.url}moved` });
      await receiver.waitFor(5, undefined, ({ path }) => path === '/moved');
      const claims = await site.control<string[]>('state', { key: 'claims' });
      expect(claims.length).toBeGreaterThan(0);
      await site.evaluate(({ strapi, state }) => {
        strapi.db.connection.off('query', state.listen);
      });
    });

    it('keeps no more attempts than any other delivery has', async () => {
      receiver.respond({ status: 429, headers: { 'retry-after': '3600' } });
      const { id } = await createWebhook(site, receiver.url);
      await send(site, 'shop.one');
      await isPaused(id);
      const [first] = await listDeliveries(site, id);
      await site.evaluate(async ({ strapi }, delivery) => {
        const { connection } = strapi.db;
        const attempt = await connection('switchboard_attempts')
          .where({ delivery_id: delivery })
          .first();
        const { id: _id, ...columns } = attempt;
        const rows = Array.from({ length: 30 }, (_none, nth) => ({ ...columns, duration_ms: nth }));
        await connection.batchInsert('switchboard_attempts', rows, 10);
      }, first?.id as number);
      const shown = (await listDeliveries(site, id))[0]?.attempts ?? [];
      expect(shown).toHaveLength(20);
      const took = shown.slice(1, 8).map(({ duration_ms: milliseconds }) => milliseconds);
      expect(took).toEqual([0, 1, 2, 3, 4, 5, 17]);
      await sql(site, 'UPDATE switchboard_webhooks SET paused_until = NULL');
      await sql(site, 'UPDATE switchboard_delivery_queue SET due_at = 1');
      await receiver.waitFor(2);
      await isPaused(id);
      const [count] = await sql<{ n: number | string }>(
        site,
        'SELECT COUNT(*) AS n FROM switchboard_attempts WHERE delivery_id = ?',
        [first?.id]
      );
      expect(Number(count?.n)).toBe(20);
    });

    it('counts as an attempt once it has put a delivery off for three days', async () => {
      receiver.enqueue({ status: 429, headers: { 'retry-after': '4' } });
      receiver.respond({ status: 429, headers: { 'retry-after': '3600' } });
      const { id } = await createWebhook(site, receiver.url);
      await send(site, 'shop.one');
      await isPaused(id);
      await sql(site, 'UPDATE switchboard_deliveries SET paused_ms = ? WHERE webhook_id = ?', [
        72 * HOUR_MS - 60_000,
        id,
      ]);
      const counted = await waitForDelivery(site, id, ({ tries }) => tries === 1);
      expect(counted).toMatchObject({ state: 'failing', error: 'http_429' });
      expect((await getWebhook(site, id)).health.state).toBe('paused');
    });

    it('that answers a test pauses nothing', async () => {
      receiver.respond({ status: 429, headers: { 'retry-after': '60' } });
      const { id } = await createWebhook(site, receiver.url);
      await testWebhook(site, id);
      expect((await getWebhook(site, id)).health).toMatchObject({
        state: 'new',
        paused_until: null,
      });
    });
  });

  describe('to be left alone for good, by 410', () => {
    it('is switched off with that reason, and the delivery is given up', async () => {
      receiver.respond({ status: 410 });
      const { id } = await createWebhook(site, receiver.url);
      await send(site, 'shop.one');
      const failed = await waitForDelivery(site, id, ({ status }) => status === 'failed');
      expect(failed).toMatchObject({ tries: 1, error: 'http_410', next_attempt_at: null });
      const webhook = await getWebhook(site, id);
      expect(webhook).toMatchObject({ active: false, health: { state: 'off' } });
      expect(webhook.disabled_reason).toMatch(/410/);
    });

    it('is not by a test', async () => {
      receiver.respond({ status: 410 });
      const { id } = await createWebhook(site, receiver.url);
      await testWebhook(site, id);
      expect((await getWebhook(site, id)).active).toBe(true);
    });
  });

  describe('of a webhook that was changed meanwhile', () => {
    const ASKS = [
      ['by a 410', { status: 410 }],
      ['by a pause', { status: 429, headers: { 'retry-after': '86400' } }],
      ['by a failure', { status: 500 }],
    ] as const;
    const moved = (id: number) => updateWebhook(site, id, { url: `${receiver.url}moved` });
    const turned = async (id: number) => {
      await updateWebhook(site, id, { active: false });
      await updateWebhook(site, id, { active: true });
    };
    const CHANGES = [
      ['has another address', moved],
      ['was switched off and on', turned],
    ] as const;

    it.each(
      CHANGES.flatMap(([what, change]) =>
        ASKS.map(([how, script]) => [how, what, script, change] as const)
      )
    )('is not told %s, where it %s', async (...[, , script, change]) => {
      let answer = () => {};
      const answered = new Promise<void>((resolve) => {
        answer = resolve;
      });
      receiver.respond(async () => {
        await answered;
        return script;
      });
      const { id } = await createWebhook(site, receiver.url);
      await send(site, 'shop.one');
      await receiver.waitFor(1);
      await change(id);
      answer();
      const [delivery] = await waitFor(async () => {
        const listed = await listDeliveries(site, id);
        return listed[0]?.tries === 1 && listed[0].attempts.length === 1 ? listed : undefined;
      });
      expect(delivery?.attempts[0]?.answer?.status).toBe(script.status);
      // It goes on by its schedule, whose first pause is shorter than what the old address asked for.
      expect(delivery?.status).toBe('pending');
      expect(Date.parse(String(delivery?.next_attempt_at))).toBeLessThan(Date.now() + 2 * HOUR_MS);
      expect(await getWebhook(site, id)).toMatchObject({
        ...{ active: true, disabled_reason: null, consecutive_failures: 0 },
        health: { state: 'new', failing_since: null, paused_until: null },
      });
      const [row] = await sql(site, 'SELECT * FROM switchboard_webhooks WHERE id = ?', [id]);
      expect(row).toMatchObject({ failing_since: null, unwell_since: null });
      receiver.respond({});
      await send(site, 'shop.two');
      await receiver.waitFor(2);
    });

    it('ends no pause where the address is the one that it has', async () => {
      receiver.respond({ status: 429, headers: { 'retry-after': '3600' } });
      const { id } = await createWebhook(site, receiver.url);
      await send(site, 'shop.one');
      await isPaused(id);
      await updateWebhook(site, id, { url: receiver.url, name: 'renamed', active: true });
      expect(await getWebhook(site, id)).toMatchObject({
        ...{ name: 'renamed', health: { state: 'paused' } },
      });
    });
  });
});
