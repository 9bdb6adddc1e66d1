import { randomUUID } from 'node:crypto';
import { anyDatabase, describeEach, databases } from '../support/databases';
import { type Receiver, startReceiver } from '../support/receiver';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import { createWebhook } from './delivery-support';
import { admin, allProcessed, createItem, createTill, type Till } from './pos-till';

jest.setTimeout(180_000);

const CONTACTS = '/api/fw-crm/v1/contacts';

describeEach(databases(), 'customers of sales', (database) => {
  let site: Site;
  let receiver: Receiver;
  beforeAll(async () => {
    receiver = await startReceiver();
    site = await startSite({
      database,
      options: { pos: { ratePerMinute: 100_000, country: 'GB' } },
    });
    await createItem(site, 'MUG', 1000);
  });
  afterAll(async () => {
    await receiver?.close();
    await site?.stop();
  });

  const newContact = async (fields: Record<string, unknown>) => {
    const { status, body } = await site.request('POST', CONTACTS, { body: fields });
    expect(status).toBe(201);
    return body as { id: string };
  };
  const contactOf = async (id: string) => (await site.request('GET', `${CONTACTS}/${id}`)).body;
  const byEmail = async (email: string) =>
    (await site.request('GET', `${CONTACTS}?email=${encodeURIComponent(email)}`)).body.data;

  const sale = (till: Till, total: number, customer: unknown, more: Record<string, unknown> = {}) =>
    till.sale([['MUG', 2]], { external_id: randomUUID(), total, customer, ...more });

  /** Resolves once nobody is looked for any more. */
  const attached = async (): Promise<void> => {
    await allProcessed(site);
    await waitFor(
      () =>
        site.evaluate(async ({ strapi }) => {
          const due = await strapi.db
            .connection('switchboard_pos_purchases')
            .whereNotNull('due_at');
          return due.length === 0;
        }),
      30_000,
      'customers to be attached'
    );
  };

  /** Has the making of a contact fail as another plugin of the site may: by no refusal of anybody's. */
  const refuse = (email: string | null): Promise<void> =>
    site.evaluate(({ strapi, state }, refused) => {
      state.refused = refused;
      if (state.refuses) return;
      state.refuses = true;
      strapi.db.lifecycles.subscribe({
        models: ['plugin::switchboard.contact'],
        beforeCreate({ params }: { params: { data: { email?: string } } }) {
          if (state.refused && params.data.email === state.refused) throw new TypeError('refused');
        },
      });
    }, email);

  const purchasesOf = async (id: string, query = '') =>
    (await site.request('GET', `${CONTACTS}/${id}/purchases${query}`)).body;

  it('add up exactly, beyond eight digits and in thousandths, and refunds take off what they added', async () => {
    const till = await createTill(site);
    const rich = await newContact({ email: 'rich@example.com', lifetime_value: 99_999_999.99 });
    await sale(till, 9_000_000_000_001, { email: 'rich@example.com' }, { external_id: 'rich-1' });
    await attached();
    expect((await contactOf(rich.id)).lifetime_value).toBe(90_100_000_000);
    await till.refund('rich-1', { line_items: [{ sku: 'MUG', quantity: 1 }] });
    await till.refund('rich-1');
    await attached();
    expect((await contactOf(rich.id)).lifetime_value).toBe(99_999_999.99);

    const third = await newContact({ email: 'third@example.com' });
    for (let at = 0; at < 3; at += 1) {
      await sale(till, 1, { email: 'third@example.com' }, { currency: 'KWD' });
      await attached();
    }
    expect((await contactOf(third.id)).lifetime_value).toBe(0.003);
    // A forint has two digits by ISO 4217, whatever people write.
    const forint = await newContact({ email: 'forint@example.com' });
    await sale(till, 199_000, { email: 'forint@example.com' }, { currency: 'HUF' });
    await attached();
    expect((await contactOf(forint.id)).lifetime_value).toBe(1990);
  });

  it('attach a sale to the contact with that e-mail, quietly, and refunds reduce its value', async () => {
    const till = await createTill(site);
    const contact = await newContact({ email: 'Ada@example.com', lifetime_value: 10.5 });
    await createWebhook(site, receiver.url, { events: ['contact.updated', 'contact.created'] });
    await sale(
      till,
      1999,
      { email: 'ada@EXAMPLE.com', first_name: 'Not Ada' },
      {
        external_id: 'ada-1',
        occurred_at: '2026-03-01T10:00:00+01:00',
      }
    );
    await attached();
    expect(await contactOf(contact.id)).toMatchObject({
      lifetime_value: 30.49,
      email: 'Ada@example.com',
      first_name: null,
    });
    await till.refund('ada-1', {
      external_id: 'ada-r',
      occurred_at: '2026-03-02T10:00:00+01:00',
      line_items: [{ sku: 'MUG', quantity: 1 }],
    });
    await attached();
    expect((await contactOf(contact.id)).lifetime_value).toBe(20.49);
    // Of another currency: listed, and not added to what is in pounds.
    await sale(
      till,
      500,
      { email: 'ada@example.com' },
      {
        external_id: 'ada-2',
        currency: 'JPY',
        occurred_at: '2026-03-03T10:00:00+01:00',
      }
    );
    await attached();
    expect((await contactOf(contact.id)).lifetime_value).toBe(20.49);
    const bought = [
      {
        kind: 'sale',
        external_id: 'ada-2',
        occurred_at: '2026-03-03T10:00:00+01:00',
        currency: 'JPY',
        total: 500,
      },
      {
        kind: 'refund',
        external_id: 'ada-r',
        occurred_at: '2026-03-02T10:00:00+01:00',
        currency: 'GBP',
        total: 1000,
      },
      {
        kind: 'sale',
        external_id: 'ada-1',
        occurred_at: '2026-03-01T10:00:00+01:00',
        currency: 'GBP',
        total: 1999,
      },
    ];
    const listed = await purchasesOf(contact.id);
    expect(listed.data).toEqual(bought);
    expect(listed.meta.pagination).toMatchObject({ page: 1, total: 3 });
    expect((await purchasesOf(contact.id, '?per_page=1&page=2')).data).toEqual([bought[1]]);
    expect(await admin(site, 'GET', `/contacts/${contact.id}/purchases`)).toEqual(bought);
    expect(
      (await site.request('GET', `${CONTACTS}/nobody0000000000000000000/purchases`)).status
    ).toBe(404);
    expect(receiver.events()).toEqual([]);
  });

  it('match a phone in E.164, if there is exactly one', async () => {
    const till = await createTill(site, { country: 'DE' });
    const one = await newContact({ email: 'p1@example.com', phone: '030 / 901820' });
    const two = await newContact({ email: 'p2@example.com', phone: '+49 (89) 233-00' });
    await newContact({ email: 'p3@example.com', phone: '089 23300' });
    await sale(till, 100, { phone: '+493 0901820' });
    await sale(till, 100, { phone: '+498923300' });
    await sale(till, 100, { phone: 'not a number' });
    await attached();
    expect((await contactOf(one.id)).lifetime_value).toBe(1);
    expect((await contactOf(two.id)).lifetime_value).toBe(0);
    await sale(till, 100, { email: 'p2@example.com', phone: '030901820' });
    await attached();
    expect((await contactOf(two.id)).lifetime_value).toBe(1);
  });

  it('are made where the connection says so, never subscribed, and one in a rush', async () => {
    const till = await createTill(site, { customers: 'create' });
    const person = { email: 'new@example.com', first_name: 'Grace', phone: '020 7946 0018' };
    const answers = await Promise.all(Array.from({ length: 20 }, () => sale(till, 105, person)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]));
    await attached();
    const found = await byEmail('new@example.com');
    expect(found).toHaveLength(1);
    expect(found[0]).toMatchObject({
      first_name: 'Grace',
      phone: '020 7946 0018',
      lifetime_value: 21,
      source: 'pos',
    });
    expect(found[0].status).not.toBe('subscribed');
    expect((await purchasesOf(found[0].id)).meta.pagination.total).toBe(20);
    // By phone alone it is the same; somebody ambiguous attaches nobody and makes nobody.
    await sale(till, 105, { phone: '+442079460018' });
    await attached();
    expect((await contactOf(found[0].id)).lifetime_value).toBe(22.05);
    await newContact({ email: 'same@example.com', phone: '+44 20 7946 0018' });
    await sale(till, 105, { email: 'nobody@example.com', phone: '+442079460018' });
    await attached();
    expect(await byEmail('nobody@example.com')).toEqual([]);
  });

  if (database !== 'sqlite') {
    it('agree on the currency of the first where two come at once, on two nodes', async () => {
      const contact = await newContact({ email: 'once@example.com' });
      const till = await createTill(site);
      await sale(till, 900, {}, { external_id: 'euros', currency: 'EUR' });
      await allProcessed(site);
      // Another node is at the sale in euros: it has the contact, and has not committed.
      await site.evaluate(async ({ strapi, state }, documentId) => {
        const opened = new Promise<void>((resolve) => {
          state.otherDone = strapi.db.transaction(async () => {
            const trx = (await strapi.db.transaction()).get();
            const contacts = () => trx('switchboard_contacts').where({ document_id: documentId });
            await contacts().forUpdate();
            const [{ id: event }] = await trx('switchboard_pos_events').where({
              external_id: 'euros',
            });
            await trx('switchboard_pos_purchases')
              .insert({
                ...{ event_id: event, sale_id: event, contact_id: documentId },
                ...{ currency: 'EUR', applied: '900' },
              })
              .onConflict('event_id')
              .merge();
            resolve();
            await new Promise<void>((go) => {
              state.letOtherGo = go;
            });
            await contacts().update({ lifetime_value: '9.0000' });
          });
        });
        await Promise.race([opened, state.otherDone]);
      }, contact.id);
      await sale(till, 1000, { email: 'once@example.com' }, { external_id: 'pounds' });
      await allProcessed(site);
      const pounds = () =>
        site.evaluate(async ({ strapi }) => {
          const [row] = await strapi.db
            .connection('switchboard_pos_purchases as p')
            .join('switchboard_pos_events as e', 'e.id', 'p.event_id')
            .where('e.external_id', 'pounds')
            .select('p.due_at', 'p.currency', 'p.applied');
          return { ...row, due_at: row.due_at === null ? null : 'due' };
        });
      // Time enough to have it wrong, where it did not wait.
      await new Promise((resolve) => setTimeout(resolve, 500));
      expect(await pounds()).toMatchObject({ due_at: 'due' });
      await site.evaluate(async ({ state }) => {
        state.letOtherGo();
        await state.otherDone;
      });
      await attached();
      expect(await pounds()).toEqual({ due_at: null, currency: 'GBP', applied: null });
      expect((await contactOf(contact.id)).lifetime_value).toBe(9);
      expect((await purchasesOf(contact.id)).meta.pagination.total).toBe(2);
    });
  }

  // What follows has no statement that is not in the above.
  if (!anyDatabase().includes(database)) return;

  it('are found in the bin by their address, and not by their phone', async () => {
    const till = await createTill(site);
    const trashed_at = '2030-01-01T00:00:00Z';
    const phone = '+44 20 7946 0055';
    const binned = await newContact({ email: 'binned@example.com', phone, trashed_at });
    await sale(till, 100, { phone });
    await sale(till, 200, { email: 'binned@example.com' });
    await attached();
    expect(await contactOf(binned.id)).toMatchObject({
      lifetime_value: 2,
      dates: { trashed_at: expect.any(String) },
    });
    const here = await newContact({ email: 'here@example.com', phone });
    await sale(till, 300, { phone });
    await attached();
    expect((await contactOf(here.id)).lifetime_value).toBe(3);
  });

  it('are nobody in test mode, where they are ignored, unknown, or no customers', async () => {
    const contact = await newContact({ email: 'quiet@example.com' });
    const customer = { email: 'quiet@example.com' };
    await sale(await createTill(site, { mode: 'test', customers: 'create' }), 100, customer);
    await sale(await createTill(site, { customers: 'ignore' }), 100, customer);
    const till = await createTill(site);
    const create = await createTill(site, { customers: 'create' });
    for (const odd of [
      { email: 'unknown@example.com' },
      { email: 5, phone: [], first_name: {} },
      {},
    ]) {
      expect((await sale(till, 100, odd)).status).toBe(202);
    }
    const long = { email: 'long@example.com', first_name: 'x'.repeat(300), phone: 'y' };
    expect((await sale(create, 100, long)).status).toBe(202);
    await attached();
    expect((await contactOf(contact.id)).lifetime_value).toBe(0);
    expect((await purchasesOf(contact.id)).data).toEqual([]);
    expect(await byEmail('unknown@example.com')).toEqual([]);
    expect(await byEmail('long@example.com')).toEqual([
      expect.objectContaining({ first_name: null, lifetime_value: 1 }),
    ]);
  });

  it('come to the same in any order of sale and refunds', async () => {
    const till = await createTill(site);
    const contact = await newContact({ email: 'order@example.com' });
    await till.refund('late', { external_id: 'before', total: 300 });
    await allProcessed(site);
    await sale(till, 1000, { email: 'order@example.com' }, { external_id: 'late' });
    await attached();
    expect((await contactOf(contact.id)).lifetime_value).toBe(7);
    await till.refund('late', { external_id: 'after' });
    await attached();
    expect((await contactOf(contact.id)).lifetime_value).toBe(0);
  });

  it('are found though one of them cannot be made, which is tried again', async () => {
    await refuse('bad@example.com');
    const till = await createTill(site, { customers: 'create' });
    await sale(till, 100, { email: 'bad@example.com' });
    await waitFor(
      async () => /not attached/.test(site.log()),
      30_000,
      'the customer to be refused'
    );
    await sale(till, 100, { email: 'good@example.com' });
    await waitFor(
      async () => (await byEmail('good@example.com')).length === 1,
      15_000,
      'the next customer to be made'
    );
    expect(await byEmail('bad@example.com')).toEqual([]);
    const listed = await admin(site, 'GET', '/pos-events?customer_error=true');
    expect(listed).toMatchObject([
      { kind: 'sale', state: 'applied', customer_error: expect.stringContaining('TypeError') },
    ]);
    await refuse(null);
    const path = `/pos-events/${listed[0].id}`;
    expect((await admin(site, 'GET', path)).customer_error).toBe(listed[0].customer_error);
    await admin(site, 'POST', `${path}/reprocess`, {}, 200);
    await attached();
    expect(await byEmail('bad@example.com')).toHaveLength(1);
    expect((await admin(site, 'GET', path)).customer_error).toBeNull();
    expect(await admin(site, 'GET', '/pos-events?customer_error=true')).toEqual([]);
  });

  it('keep the currency of the first sale they were given, whichever comes to them later', async () => {
    const till = await createTill(site, { customers: 'create' });
    const email = 'late@example.com';
    await refuse(email);
    const before = site.log().length;
    await sale(till, 900, { email }, { currency: 'EUR' });
    await waitFor(
      async () => site.log().slice(before).includes('was not attached'),
      30_000,
      'the first sale to fail'
    );
    await refuse(null);
    await sale(till, 1000, { email }, { external_id: 'in-pounds' });
    // The first one is tried again some seconds later, and is the older one.
    await attached();
    const [contact] = await byEmail(email);
    expect(contact).toMatchObject({ lifetime_value: 10 });
    expect((await purchasesOf(contact.id)).meta.pagination.total).toBe(2);
    await till.refund('in-pounds', { total: 400 });
    await attached();
    expect((await contactOf(contact.id)).lifetime_value).toBe(6);
    await sale(till, 100, { email });
    await sale(till, 100, { email }, { currency: 'EUR' });
    await attached();
    expect((await contactOf(contact.id)).lifetime_value).toBe(7);
  });

  it.each([
    [{ customers: 'sometimes' }, 'customers'],
    [{ country: 'Britain' }, 'country'],
  ])('a connection with %j is a 400 that names the field', async (more, field) => {
    const { status, body } = await site.request('POST', '/switchboard/connections', {
      body: { name: 'x', scopes: [], ...more },
    });
    expect([status, body.error.details.errors[0].path]).toEqual([400, [field]]);
  });
});
