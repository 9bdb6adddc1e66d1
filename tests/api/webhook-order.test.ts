import type { Delivery } from '../../shared/contracts/webhooks';
import { databases, describeEach } from '../support/databases';
import type { Receiver } from '../support/receiver';
import type { Site } from '../support/site';
import { waitFor } from '../support/wait';
import {
  countRows,
  createWebhook,
  getWebhook,
  insertDeliveries,
  listDeliveries,
  retryDelivery,
  sql,
  updateWebhook,
  useSiteAndReceiver,
  waitForDelivery,
} from './delivery-support';

const API = '/api/fw-crm/v1';
const HELD_UNTIL = 253_402_300_798_999;

/** Publishes events that are about records, `contact:1#1` being the first about the contact 1. */
const publish = (site: Site, ...named: string[]) =>
  site.evaluate(async ({ strapi }, names) => {
    const events = names.map((name) => {
      const [subject = '', nth] = name.split('#');
      const [type, id] = subject.split(':');
      const data = { record: subject, nth: Number(nth) };
      const about = { type, id, label: subject };
      return { event: 'shop.changed', data, subject: id === undefined ? null : about };
    });
    await strapi.service('plugin::switchboard.publisher').publish(events);
  }, named);

const named = ({ record, nth }: { record: string; nth: number }): string => `${record}#${nth}`;

describeEach(databases(), 'the order of deliveries by record', (database) => {
  let site: Site;
  let receiver: Receiver;
  useSiteAndReceiver(
    { database, webhooks: { retryScheduleSeconds: [3600, 3600], pollSeconds: 1 } },
    (s, r) => {
      [site, receiver] = [s, r];
    }
  );

  const arrived = () => receiver.requests.map(({ json }) => named(json.data));
  const ordered = (changes: Record<string, unknown> = {}) =>
    createWebhook(site, receiver.url, { ordering: 'by_record', ...changes });
  const refuse = (...names: string[]) =>
    receiver.respond(({ json }) => ({ status: names.includes(named(json.data)) ? 500 : 200 }));
  const post = (path: string, as: 'api' | 'admin' = 'api') =>
    site.request<Delivery & { error?: { message: string } }>(
      'POST',
      as === 'api' ? `${API}${path}` : `/switchboard${path}`
    );
  const held = (id: number) => countRows(site, 'webhook_id = ? AND due_at = ?', [id, HELD_UNTIL]);
  const set = (id: number, columns: Record<string, unknown>) =>
    site.evaluate(
      async ({ strapi }, webhook, changes) => {
        await strapi.db.connection('switchboard_webhooks').where({ id: webhook }).update(changes);
      },
      id,
      columns
    );
  const ends = () =>
    sql<{ webhook_id: number; line: string }>(site, 'SELECT * FROM switchboard_line_ends');
  /** What is done every five minutes. */
  const sweep = () =>
    site.evaluate(({ strapi }) =>
      strapi.cron.jobs
        .find(({ name }: { name: string }) => name === 'switchboardHeldBack')
        .job.invoke()
    );
  const failing = (id: number) => waitForDelivery(site, id, ({ state }) => state === 'failing');

  it('lets a failing one hold the later ones of its record, and nothing else', async () => {
    const { id } = await ordered();
    refuse('contact:1#1');
    await publish(site, 'contact:1#1', 'contact:1#2', 'contact:2#1', 'contact:1#3', 'none#1');
    await publish(site, 'contact:2#2', 'deal:1#1', 'contact:1#4', 'none#2');
    await receiver.waitFor(6);
    await waitFor(async () => (await held(id)) === 3);
    expect(arrived().sort()).toEqual(
      ['contact:1#1', 'contact:2#1', 'contact:2#2', 'deal:1#1', 'none#1', 'none#2'].sort()
    );
    receiver.respond({});
    const { id: first } = await failing(id);
    expect((await retryDelivery(site, first)).body.state).toBe('sent');
    await receiver.waitFor(10);
    expect(arrived().filter((name) => name.startsWith('contact:1'))).toEqual([
      'contact:1#1',
      'contact:1#1',
      'contact:1#2',
      'contact:1#3',
      'contact:1#4',
    ]);
    await waitFor(async () => (await countRows(site, "status = 'pending'")) === 0);
    expect(await sql(site, 'SELECT id FROM switchboard_deliveries WHERE line IS NOT NULL')).toEqual(
      []
    );
  });

  it('sends what is queued for one record one after the other, whatever its receiver takes', async () => {
    const { id } = await ordered();
    let underWay = 0;
    let most = 0;
    receiver.respond(async () => {
      underWay += 1;
      most = Math.max(most, underWay);
      await new Promise((done) => setTimeout(done, 5));
      underWay -= 1;
      return {};
    });
    const names = Array.from({ length: 40 }, (_none, nth) => `contact:7#${nth}`);
    await publish(site, ...names.slice(0, 20));
    for (const name of names.slice(20)) await publish(site, name);
    await receiver.waitFor(40, 60_000);
    expect(arrived()).toEqual(names);
    expect(most).toBe(1);
    expect((await getWebhook(site, id)).ordering).toBe('by_record');
  }, 90_000);

  it('skips one by hand: it ends as failed, for which nothing counts, and the next one goes', async () => {
    const { id } = await ordered();
    refuse('contact:1#1');
    await publish(site, 'contact:1#1', 'contact:1#2');
    const first = await failing(id);
    const skipped = await post(`/webhook-deliveries/${first.id}/skip`);
    expect(skipped.status).toBe(200);
    expect(skipped.body).toMatchObject({
      ...{ id: first.id, state: 'failed', status: 'failed', error: 'skipped' },
      ...{ tries: 1, next_attempt_at: null },
    });
    await receiver.waitFor(2);
    expect(arrived()).toEqual(['contact:1#1', 'contact:1#2']);
    expect((await getWebhook(site, id)).consecutive_failures).toBe(0);
    const again = await post(`/webhook-deliveries/${first.id}/skip`);
    expect(again.status).toBe(409);
    expect((await post('/webhook-deliveries/99999999/skip')).status).toBe(404);
  });

  it('skips one that is held, too', async () => {
    const { id } = await ordered();
    refuse('contact:1#1');
    await publish(site, 'contact:1#1', 'contact:1#2', 'contact:1#3');
    const first = await failing(id);
    await waitFor(async () => (await held(id)) === 2);
    const rows = await listDeliveries(site, id);
    const second = rows.find(
      ({ request }) => named(JSON.parse(request.body).data) === 'contact:1#2'
    );
    expect(second).toMatchObject({ state: 'waiting', tries: 0 });
    expect((await post(`/webhook-deliveries/${second?.id}/skip`, 'admin')).body).toMatchObject({
      data: { id: second?.id, error: 'skipped' },
    });
    expect(arrived()).toEqual(['contact:1#1']);
    await post(`/webhook-deliveries/${first.id}/skip`);
    await receiver.waitFor(2);
    expect(arrived()).toEqual(['contact:1#1', 'contact:1#3']);
  });

  it('has later ones no longer wait for one that was released, whose schedule stays', async () => {
    const { id } = await ordered();
    refuse('contact:1#1');
    await publish(site, 'contact:1#1', 'contact:1#2', 'contact:1#3');
    const first = await failing(id);
    const released = await post(`/webhook-deliveries/${first.id}/release`, 'admin');
    expect(released.status).toBe(200);
    expect(released.body).toMatchObject({
      data: { id: first.id, state: 'failing', next_attempt_at: first.next_attempt_at },
    });
    await receiver.waitFor(3);
    expect(arrived()).toEqual(['contact:1#1', 'contact:1#2', 'contact:1#3']);
    receiver.respond({});
    expect((await retryDelivery(site, first.id)).body.state).toBe('sent');
    expect((await post(`/webhook-deliveries/${first.id}/release`)).status).toBe(409);
    expect((await post('/webhook-deliveries/99999999/release')).status).toBe(404);
  });

  it('refuses to skip or release one that is under way', async () => {
    const { id } = await ordered();
    let answer = (): void => {};
    const answered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    receiver.respond(async () => {
      await answered;
      return {};
    });
    await publish(site, 'contact:1#1');
    await receiver.waitFor(1);
    const [first] = await listDeliveries(site, id);
    expect((await post(`/webhook-deliveries/${first?.id}/skip`)).status).toBe(409);
    expect((await post(`/webhook-deliveries/${first?.id}/release`)).status).toBe(409);
    answer();
    await waitForDelivery(site, id, ({ state }) => state === 'sent');
  });

  it('holds what had been queued before the webhook had an order, and lets go once it has none', async () => {
    const { id } = await createWebhook(site, receiver.url, { active: true });
    refuse('contact:1#1', 'contact:1#2');
    await publish(site, 'contact:1#1');
    await failing(id);
    await updateWebhook(site, id, { active: false });
    await site.evaluate(({ strapi }, webhook) => {
      return strapi.db
        .connection('switchboard_webhooks')
        .where({ id: webhook })
        .update({ active: true });
    }, id);
    await updateWebhook(site, id, { ordering: 'by_record' });
    await publish(site, 'contact:1#2', 'contact:1#3');
    await waitFor(async () => (await held(id)) === 2);
    expect(arrived()).toEqual(['contact:1#1']);
    await updateWebhook(site, id, { ordering: 'none' });
    await receiver.waitFor(3);
    expect(arrived().sort()).toEqual(['contact:1#1', 'contact:1#2', 'contact:1#3']);
    expect(await held(id)).toBe(0);
  });

  describe.each([
    ['fails', 500, ['contact:1#1']],
    ['ends', 200, ['contact:1#1', 'contact:1#2']],
  ] as const)('one that is under way when its webhook is given an order', (what, status, sent) => {
    it(`has its place in the line when it ${what}`, async () => {
      const { id } = await createWebhook(site, receiver.url);
      let answer = (): void => {};
      const answered = new Promise<void>((resolve) => {
        answer = resolve;
      });
      receiver.respond(async ({ json }) => {
        if (named(json.data) !== 'contact:1#1') return {};
        await answered;
        return { status };
      });
      await publish(site, 'contact:1#1');
      await receiver.waitFor(1);
      await updateWebhook(site, id, { ordering: 'by_record' });
      await publish(site, 'contact:1#2');
      await waitFor(async () => (await held(id)) === 1);
      answer();
      await waitForDelivery(site, id, ({ tries }) => tries === 1);
      // What has failed is passed by nothing, whoever looks.
      if (status === 500) await sweep();
      await receiver.waitFor(sent.length);
      await receiver.settle(500);
      expect(arrived()).toEqual(sent);
      const inLine = await countRows(site, "line = 'contact:1' AND status = 'pending'");
      expect(inLine).toBe(status === 500 ? 2 : 0);
      expect(await countRows(site, "line IS NOT NULL AND status <> 'pending'")).toBe(0);
    });
  });

  it('puts all that waits into line with a statement or two', async () => {
    const { id } = await createWebhook(site, receiver.url, { active: false });
    const at = Date.now();
    const long = 'x'.repeat(250);
    const subjects = [long, ...Array.from({ length: 40 }, (_none, nth) => `c${nth}`)];
    for (const subject of subjects.slice(0, 3)) {
      await insertDeliveries(site, id, 1, {
        ...{ subject_type: 'contact', subject_id: subject, created_at: at },
        ...{ error: 'http_500', tries: 1 },
      });
    }
    await site.evaluate(
      async ({ strapi, state, require }, webhook, names, now) => {
        const { randomUUID } = require('node:crypto');
        const { connection } = strapi.db;
        const rows = names.map((name: string) => ({
          ...{ document_id: randomUUID(), webhook_id: webhook, event: 'shop.changed' },
          ...{ status: 'pending', tries: 0, is_test: false, due_at: now, next_attempt_at: now },
          ...{ created_at: now, url: 'http://127.0.0.1/', body: '{}', attempts: '[]' },
          ...{ subject_type: 'contact', subject_id: name },
        }));
        await connection.batchInsert('switchboard_deliveries', rows, 50);
        state.writes = [];
        state.listen = ({ sql: statement }: { sql: string }) => {
          if (/update .*switchboard_deliveries.* set .line/i.test(statement)) {
            state.writes.push(statement);
          }
        };
        connection.on('query', state.listen);
      },
      id,
      subjects.slice(3),
      at
    );
    await updateWebhook(site, id, { ordering: 'by_record' });
    await site.evaluate(({ strapi, state }) => {
      strapi.db.connection.off('query', state.listen);
    });
    // What has failed, what was never tried, and one whose name is too long.
    const writes = await site.control<string[]>('state', { key: 'writes' });
    expect(writes).toHaveLength(3);
    const found = await sql<{ line: string; subject_id: string }>(
      site,
      'SELECT line, subject_id FROM switchboard_deliveries WHERE webhook_id = ? ORDER BY id',
      [id]
    );
    expect(found.map(({ line }) => line)).toEqual([
      expect.stringMatching(/^[0-9a-f]{64}$/),
      ...subjects.slice(1).map((subject) => `contact:${subject}`),
    ]);
  });

  it('puts into line what a process left that died', async () => {
    const { id } = await createWebhook(site, receiver.url);
    refuse('contact:1#1');
    await publish(site, 'contact:1#1');
    await failing(id);
    await set(id, { ordering: 'by_record' });
    await sweep();
    expect(await countRows(site, "webhook_id = ? AND line = 'contact:1'", [id])).toBe(1);
    await publish(site, 'contact:1#2');
    await waitFor(async () => (await held(id)) === 1);
    expect(arrived()).toEqual(['contact:1#1']);
  });

  it('goes on after what ended one without a word', async () => {
    const { id } = await ordered();
    refuse('contact:1#1');
    await publish(site, 'contact:1#1', 'contact:1#2');
    const first = await failing(id);
    await waitFor(async () => (await held(id)) === 1);
    await sql(
      site,
      "UPDATE switchboard_deliveries SET status = 'failed', due_at = NULL, owner = NULL WHERE id = ?",
      [first.id]
    );
    await sweep();
    await receiver.waitFor(2);
    expect(arrived()).toEqual(['contact:1#1', 'contact:1#2']);
  });

  it('notes a line for the next claim once, and none of a webhook that is off', async () => {
    const { id } = await ordered();
    const other = await ordered();
    refuse('contact:1#1', 'contact:2#1');
    await publish(site, 'contact:1#1', 'contact:1#2', 'contact:2#1', 'contact:2#2');
    await waitFor(async () => (await held(id)) === 2 && (await held(other.id)) === 2);
    await set(id, { paused_until: Date.now() + 3_600_000 });
    await set(other.id, { active: false });
    await sweep();
    await sweep();
    const noted = await ends();
    expect(noted.map(({ webhook_id: webhook, line }) => [Number(webhook), line]).sort()).toEqual([
      [id, 'contact:1'],
      [id, 'contact:2'],
    ]);
  });

  it('follows more ends than one claim looks at, and keeps none of them', async () => {
    const { id } = await ordered();
    refuse('contact:1#1');
    await publish(site, 'contact:1#1', 'contact:1#2');
    const first = await failing(id);
    await waitFor(async () => (await held(id)) === 1);
    await site.evaluate(
      async ({ strapi }, webhook, delivery) => {
        const { connection } = strapi.db;
        const rows = Array.from({ length: 1600 }, (_none, nth) => ({
          webhook_id: webhook,
          line: nth === 1599 ? 'contact:1' : `deal:${nth}`,
        }));
        await connection('switchboard_deliveries')
          .where({ id: delivery })
          .update({ status: 'failed', due_at: null, owner: null, line: null });
        await connection.batchInsert('switchboard_line_ends', rows, 50);
      },
      id,
      first.id
    );
    await receiver.waitFor(2);
    await waitFor(async () => (await ends()).length === 0);
    expect(arrived()).toEqual(['contact:1#1', 'contact:1#2']);
  });

  it('takes what waits out of its lines where a webhook has no order any more', async () => {
    const { id } = await ordered();
    refuse('contact:1#1');
    await publish(site, 'contact:1#1', 'contact:1#2');
    const first = await failing(id);
    await waitFor(async () => (await held(id)) === 1);
    await updateWebhook(site, id, { ordering: 'none' });
    await receiver.waitFor(2);
    await waitForDelivery(site, id, ({ state }) => state === 'sent');
    expect(await countRows(site, 'line IS NOT NULL')).toBe(0);
    receiver.respond({});
    expect((await retryDelivery(site, first.id)).body.state).toBe('sent');
    expect(await ends()).toEqual([]);
  });

  it('forgets ends that a webhook without an order has left', async () => {
    const { id } = await createWebhook(site, receiver.url);
    await sql(site, 'INSERT INTO switchboard_line_ends (webhook_id, line) VALUES (?, ?)', [
      id,
      'contact:1',
    ]);
    await sweep();
    expect(await ends()).toEqual([]);
  });

  it('reaches the records behind 10,000 deliveries of one that fails', async () => {
    const { id } = await ordered();
    refuse('contact:1#0');
    await publish(site, 'contact:1#0');
    await failing(id);
    await site.evaluate(async ({ strapi, require }, webhook) => {
      const { randomUUID } = require('node:crypto');
      const at = Date.now() - 60_000;
      const rows = Array.from({ length: 10_000 }, (_none, nth) => ({
        document_id: randomUUID(),
        webhook_id: webhook,
        event: 'shop.changed',
        status: 'pending',
        tries: 0,
        is_test: false,
        due_at: at,
        next_attempt_at: at,
        created_at: at,
        url: 'http://127.0.0.1/',
        body: JSON.stringify({ data: { record: 'contact:1', nth: nth + 1 } }),
        attempts: '[]',
        subject_type: 'contact',
        subject_id: '1',
        line: 'contact:1',
      }));
      await strapi.db.connection.batchInsert('switchboard_deliveries', rows, 50);
    }, id);
    await publish(site, 'contact:2#1', 'contact:2#2');
    await waitFor(() => arrived().length === 3, 60_000);
    expect(arrived()).toEqual(['contact:1#0', 'contact:2#1', 'contact:2#2']);
    await waitFor(async () => (await held(id)) === 10_000, 60_000);
  }, 150_000);
});
