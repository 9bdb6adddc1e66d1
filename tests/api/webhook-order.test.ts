import type { Delivery } from '../../shared/contracts/webhooks';
import { databases, describeEach, itOnce } from '../support/databases';
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
  /** How many of a webhook wait for others. */
  const held = async (id: number): Promise<number> => {
    const rows = 'SELECT id FROM switchboard_delivery_queue WHERE group_id = ? AND state = 1';
    return (await sql(site, rows, [id])).length;
  };
  /** The keys by which deliveries wait for each other, in the order of their ids. */
  const keys = async (): Promise<string[]> => {
    const rows = 'SELECT ordering_key FROM switchboard_delivery_order ORDER BY id';
    return (await sql<{ ordering_key: string }>(site, rows)).map(({ ordering_key: key }) => key);
  };
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
    expect(await keys()).toEqual([]);
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

  itOnce(database)(
    'skips one by hand: it ends as failed, for which nothing counts, and the next one goes',
    async () => {
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
    }
  );

  itOnce(database)('skips one that is held, too', async () => {
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

  itOnce(database)(
    'has later ones no longer wait for one that was released, whose schedule stays',
    async () => {
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
    }
  );

  itOnce(database)('refuses to skip or release one that is under way', async () => {
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
      await receiver.waitFor(sent.length);
      await receiver.settle(500);
      expect(arrived()).toEqual(sent);
      const left = status === 500 ? ['contact:1', 'contact:1'] : [];
      await waitFor(async () => (await keys()).join() === left.join());
    });
  });

  it('gives all that waits its keys with one statement', async () => {
    const { id } = await createWebhook(site, receiver.url, { active: false });
    const long = 'x'.repeat(250);
    const subjects = [long, ...Array.from({ length: 40 }, (_none, nth) => `c${nth}`)];
    for (const [nth, subject_id] of subjects.entries()) {
      const failed = nth < 3 ? { error: 'http_500', tries: 1 } : {};
      await insertDeliveries(site, id, 1, { subject_type: 'contact', subject_id, ...failed });
    }
    await insertDeliveries(site, id, 1, {
      subject_type: 'contact',
      subject_id: 'x',
      is_test: true,
    });
    await site.evaluate(({ strapi, state }) => {
      state.writes = [];
      state.listen = ({ sql: statement }: { sql: string }) => {
        if (/insert .*switchboard_delivery_order/i.test(statement)) state.writes.push(statement);
      };
      strapi.db.connection.on('query', state.listen);
    });
    await updateWebhook(site, id, { ordering: 'by_record' });
    await site.evaluate(({ strapi, state }) => {
      strapi.db.connection.off('query', state.listen);
    });
    expect(await site.control<string[]>('state', { key: 'writes' })).toHaveLength(1);
    expect(await keys()).toEqual(subjects.map((subject) => `contact:${subject}`));
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
    expect(await keys()).toEqual([]);
    receiver.respond({});
    expect((await retryDelivery(site, first.id)).body.state).toBe('sent');
  });

  itOnce(database)(
    'reaches the records behind 10,000 deliveries of one that fails',
    async () => {
      const { id } = await ordered();
      refuse('contact:1#0');
      await publish(site, 'contact:1#0');
      await failing(id);
      const body = JSON.stringify({ data: { record: 'contact:1', nth: 1 } });
      const at = Date.now() - 60_000;
      await insertDeliveries(site, id, 10_000, {
        ...{ subject_type: 'contact', subject_id: '1', body },
        ...{ created_at: at, next_attempt_at: at },
      });
      await publish(site, 'contact:2#1', 'contact:2#2');
      await waitFor(() => arrived().length === 3, 60_000);
      expect(arrived()).toEqual(['contact:1#0', 'contact:2#1', 'contact:2#2']);
      await waitFor(async () => (await held(id)) === 10_000, 60_000);
    },
    150_000
  );
});
