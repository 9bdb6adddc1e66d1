import { Webhook as StandardWebhook } from 'standardwebhooks';
import { describeEach, anyDatabase } from '../support/databases';
import type { Received, Receiver } from '../support/receiver';
import type { Site } from '../support/site';
import { waitFor } from '../support/wait';
import { serviceSignature } from '../../server/src/webhooks/rules/request-headers';
import {
  createWebhook,
  getWebhook,
  listDeliveries,
  send,
  sql,
  testWebhook,
  updateWebhook,
  useSiteAndReceiver,
} from './delivery-support';

const API = '/api/fw-crm/v1';
const dataOf = (post: Received | undefined) => post?.json.data as Record<string, unknown>;
const fromForms = { properties: { source: { const: 'form' } }, required: ['source'] };

describeEach(anyDatabase(), 'what a webhook’s owner chooses', (database) => {
  let site: Site;
  let receiver: Receiver;
  useSiteAndReceiver({ database, webhooks: { pollSeconds: 1 } }, (s, r) => {
    [site, receiver] = [s, r];
  });

  const request = (method: string, path: string, body?: unknown) =>
    site.request<Record<string, unknown>>(
      method,
      `${API}${path}`,
      body === undefined ? {} : { body }
    );

  it('is found by a part of its name, whatever its letters', async () => {
    const { id } = await createWebhook(site, receiver.url, { name: 'École 100%_' });
    const found = async (q: string) => {
      const { body } = await site.request<{ data: { id: number }[] }>(
        'GET',
        `/switchboard/webhooks?q=${encodeURIComponent(q)}`
      );
      return body.data.map((webhook) => webhook.id);
    };
    for (const part of ['École', 'cOLE 1', '0%_']) expect(await found(part)).toEqual([id]);
    for (const part of ['%', '_'].map((sign) => `c${sign}le`))
      expect(await found(part)).toEqual([]);
  });

  describe('a thin payload', () => {
    it('is full unless somebody says else, and nothing but ids where they do', async () => {
      const full = await createWebhook(site, `${receiver.url}full`);
      const slim = await createWebhook(site, `${receiver.url}thin`, { payload: 'thin' });
      const alike = await createWebhook(site, `${receiver.url}alike`, { payload: 'thin' });
      expect([full.payload, slim.payload]).toEqual(['full', 'thin']);
      await request('POST', '/contacts', { email: 'thin@example.test', first_name: 'Ada' });
      const posts = await receiver.waitFor(3);
      const to = (path: string) => dataOf(posts.find((post) => post.path === `/${path}`));
      expect(to('full')).toMatchObject({ email: 'thin@example.test', first_name: 'Ada' });
      expect(to('thin')).toEqual(to('alike'));
      expect(to('thin')).toMatchObject({ id: to('full').id });
      expect(JSON.stringify(to('thin'))).not.toMatch(/Ada|example/);
      const [logged] = await listDeliveries(site, slim.id);
      expect(logged?.request.body).toBe(posts.find((post) => post.path === '/thin')?.body);
      expect((await getWebhook(site, alike.id)).payload).toBe('thin');
    });

    it('fails no write whose data is nested deeper than it can be thinned', async () => {
      const slim = await createWebhook(site, `${receiver.url}thin`, { payload: 'thin' });
      await createWebhook(site, `${receiver.url}full`);
      const fields = JSON.parse(`${'{"a":'.repeat(3000)}1${'}'.repeat(3000)}`) as object;
      await site.control('documents', {
        uid: 'plugin::switchboard.contact',
        method: 'create',
        params: { data: { email: 'deep@example.test', fields } },
      });
      const [post] = await receiver.waitFor(1);
      expect(post?.path).toBe('/full');
      expect(await listDeliveries(site, slim.id)).toEqual([]);
      expect(site.log()).toContain(`contact.created could not be written for webhook ${slim.id}`);
      // The next one is sent again.
      await request('POST', '/contacts', { email: 'flat@example.test' });
      expect((await receiver.waitFor(3)).map(({ path }) => path).sort()).toEqual([
        '/full',
        '/full',
        '/thin',
      ]);
    });

    it('holds for what a handler adds to it', async () => {
      await createWebhook(site, receiver.url, { payload: 'thin' });
      await site.evaluate(({ strapi }) => {
        const hook = strapi.hook('service_crm_webhook_payload' as never) as never as {
          register(handler: (value: { payload: object }) => unknown): void;
          delete(handler: unknown): void;
        };
        hook.register(function once(value) {
          hook.delete(once);
          return { ...value, payload: { ...value.payload, loyalty_id: 5, points: 120 } };
        });
      });
      await send(site, 'shop.one', { id: 1, value: 99 });
      const [post] = await receiver.waitFor(1);
      expect(dataOf(post)).toEqual({ id: 1, loyalty_id: 5 });
    });

    it('holds for an event’s example, and leaves a ping as it is', async () => {
      const { id } = await createWebhook(site, receiver.url, { payload: 'thin' });
      const tested = await request('POST', `/webhooks/${id}/test`, { event: 'contact.created' });
      expect(tested.body).toMatchObject({ ok: true });
      expect(dataOf(receiver.requests[0])).not.toHaveProperty('email');
      expect(dataOf(receiver.requests[0])).toHaveProperty('id');
      await testWebhook(site, id);
      expect(dataOf(receiver.requests[1])).toMatchObject({ webhook_id: id, message: /test/ });
    });
  });

  describe('a filter', () => {
    it('lets through what matches the whole data, also of what is sent thin', async () => {
      await createWebhook(site, `${receiver.url}all`);
      await createWebhook(site, `${receiver.url}forms`, { filter: fromForms });
      const large = { properties: { value: { minimum: 100 } }, required: ['value'] };
      await createWebhook(site, `${receiver.url}large`, { filter: large, payload: 'thin' });
      await send(site, 'shop.one', { id: 1, source: 'form', value: 99 });
      await send(site, 'shop.two', { id: 2, source: 'api', value: 100 });
      const posts = await receiver.waitFor(4);
      await receiver.settle(500);
      expect(posts.map(({ path, json }) => `${path} ${json.event}`).sort()).toEqual([
        ...['/all shop.one', '/all shop.two', '/forms shop.one', '/large shop.two'],
      ]);
      expect(dataOf(posts.find(({ path }) => path === '/large'))).toEqual({ id: 2, source: 'api' });
    });

    it('is taken back with null, and kept by changes of other things', async () => {
      const { id } = await createWebhook(site, receiver.url, { filter: fromForms });
      await updateWebhook(site, id, { name: 'renamed' });
      expect((await getWebhook(site, id)).filter).toEqual(fromForms);
      await updateWebhook(site, id, { filter: null });
      expect((await getWebhook(site, id)).filter).toBeNull();
      await send(site, 'shop.one', { source: 'api' });
      await receiver.waitFor(1);
    });

    it.each([
      ['no schema', { type: 'text' }],
      ['a reference to elsewhere', { $ref: 'https://example.com/a.json' }],
      ['a pattern that may backtrack', { properties: { a: { pattern: '^(a+)+$' } } }],
      ['a list', []],
      ['text', 'source = form'],
    ])('is a 400 that names it: %s', async (_what, filter) => {
      const made = await createWebhook(site, receiver.url);
      for (const [method, path] of [
        ['POST', '/webhooks'],
        ['PATCH', `/webhooks/${made.id}`],
        ['POST', `/webhooks/${made.id}/filter/preview`],
      ] as const) {
        const answer = await request(method, path, { ...made, filter });
        expect(answer.status).toBe(400);
        expect(JSON.stringify(answer.body)).toContain('"path":["filter"]');
      }
    });

    it('that the database was given by somebody else fails no write, and sends nothing', async () => {
      const { id } = await createWebhook(site, `${receiver.url}broken`);
      await createWebhook(site, `${receiver.url}fine`);
      await sql(site, 'UPDATE switchboard_webhooks SET filter = ? WHERE id = ?', [
        JSON.stringify({ type: 'text' }),
        id,
      ]);
      const made = await request('POST', '/contacts', { email: 'broken-filter@example.test' });
      expect(made.status).toBe(201);
      // It is switched off, which the other one is told.
      await receiver.waitFor(2);
      await receiver.settle(300);
      expect(receiver.requests.map(({ path, json }) => [path, json?.event])).toEqual([
        ['/fine', 'contact.created'],
        ['/fine', 'webhook.disabled'],
      ]);
      expect((await getWebhook(site, id)).active).toBe(false);
    });
  });

  describe('the preview of a filter', () => {
    it('says which of the latest deliveries and of the examples it would let through', async () => {
      const { id } = await createWebhook(site, receiver.url, { events: ['*'] });
      await send(site, 'shop.one', { source: 'form' });
      await send(site, 'shop.one', { source: 'api' });
      await receiver.waitFor(2);
      const { status, body } = await request('POST', `/webhooks/${id}/filter/preview`, {
        filter: fromForms,
        event: 'shop.one',
      });
      expect(status).toBe(200);
      expect(body).toMatchObject({ matched: 1, of: 2 });
      expect(body.samples).toMatchObject([
        { event: 'shop.one', matched: false, data: { source: 'api' } },
        { event: 'shop.one', matched: true, data: { source: 'form' } },
      ]);
    });

    it('has the event’s example where nothing was sent yet', async () => {
      const { id } = await createWebhook(site, receiver.url, { events: ['contact.created'] });
      const { body } = await request('POST', `/webhooks/${id}/filter/preview`, {
        filter: { required: ['email'] },
      });
      expect(body).toMatchObject({
        ...{ matched: 1, of: 1 },
        samples: [{ event: 'contact.created', delivery_id: null, matched: true }],
      });
      const unknown = await request('POST', '/webhooks/999999/filter/preview', { filter: {} });
      expect(unknown.status).toBe(404);
    });
  });

  describe('a rotation with an overlap', () => {
    const signedBy = (secret: string, { body, headers }: Received): boolean => {
      try {
        new StandardWebhook(secret).verify(body, headers);
        return true;
      } catch {
        return false;
      }
    };

    it('signs with both secrets until it ends', async () => {
      const { id, secret: old } = await createWebhook(site, receiver.url);
      const rotated = await request('POST', `/webhooks/${id}/secret`, { overlap_hours: 1.5 });
      const fresh = String(rotated.body.secret);
      const until = Date.parse(String((await getWebhook(site, id)).previous_secret_until));
      expect(Math.abs(until - Date.now() - 5_400_000)).toBeLessThan(60_000);
      await testWebhook(site, id);
      const post = receiver.requests[0] as Received;
      expect([signedBy(fresh, post), signedBy(String(old), post)]).toEqual([true, true]);
      const time = Number(post.headers['x-service-timestamp']);
      expect(post.headers['x-service-signature']).toBe(serviceSignature(fresh, time, post.body));
      expect(post.headers['x-service-signature-previous']).toBe(
        serviceSignature(String(old), time, post.body)
      );

      await sql(site, 'UPDATE switchboard_webhooks SET previous_secret_until = ? WHERE id = ?', [
        Date.now() - 1,
        id,
      ]);
      expect((await getWebhook(site, id)).previous_secret_until).toBeNull();
      await testWebhook(site, id);
      const later = receiver.requests[1] as Received;
      expect([signedBy(fresh, later), signedBy(String(old), later)]).toEqual([true, false]);
      expect(later.headers).not.toHaveProperty('x-service-signature-previous');
    });

    it('says whether the receiver has answered 2xx since, a test or not', async () => {
      const answered = async (id: number) => (await getWebhook(site, id)).answered_since_rotation;
      const rotate = (id: number, overlap_hours: number) =>
        request('POST', `/webhooks/${id}/secret`, { overlap_hours });
      const { id } = await createWebhook(site, receiver.url);
      await testWebhook(site, id);
      expect(await answered(id)).toBeNull();
      await rotate(id, 48);
      expect(await answered(id)).toBe(false);
      receiver.respond({ status: 500 });
      await testWebhook(site, id);
      expect(await answered(id)).toBe(false);
      receiver.respond({});
      await testWebhook(site, id);
      expect(await answered(id)).toBe(true);

      // One that ends earlier is another rotation all the same.
      await rotate(id, 24);
      expect(await answered(id)).toBe(false);
      await send(site, 'contact.created');
      await waitFor(async () => (await answered(id)) === true);
      await rotate(id, 0);
      expect(await answered(id)).toBeNull();
    });

    it('ends an overlap that is under way where the next one has none', async () => {
      const { id, secret: first } = await createWebhook(site, receiver.url);
      const second = await request('POST', `/webhooks/${id}/secret`, { overlap_hours: 168 });
      await request('POST', `/webhooks/${id}/secret`);
      expect((await getWebhook(site, id)).previous_secret_until).toBeNull();
      await testWebhook(site, id);
      const post = receiver.requests[0] as Received;
      expect([first, second.body.secret].map((key) => signedBy(String(key), post))).toEqual([
        false,
        false,
      ]);
    });

    it('keeps the old secret as well as the new one: sealed, and in no answer', async () => {
      const { id, secret } = await createWebhook(site, receiver.url);
      await request('POST', `/webhooks/${id}/secret`, { overlap_hours: 2 });
      const [row] = await sql<{ previous_secret: string }>(
        site,
        'SELECT previous_secret FROM switchboard_webhooks WHERE id = ?',
        [id]
      );
      expect(row?.previous_secret).toMatch(/\S/);
      expect(row?.previous_secret).not.toContain(String(secret));
      const shown = await request('GET', `/webhooks/${id}`);
      expect(Object.keys(shown.body)).not.toContain('previous_secret');
    });

    it.each([-1, 169, '1', null, Number.MAX_VALUE])(
      'is a 400 for %p hours',
      async (overlap_hours) => {
        const { id } = await createWebhook(site, receiver.url);
        const answer = await request('POST', `/webhooks/${id}/secret`, { overlap_hours });
        expect(answer.status).toBe(400);
        expect(JSON.stringify(answer.body)).toContain('overlap_hours');
      }
    );
  });
});
