import { createAdminUser } from '../support/accounts';
import { anyDatabase, describeEach } from '../support/databases';
import type { Site } from '../support/site';
import { type Ask, contactLike, type EventLog, inCode, names, useWatchedSite } from './crm-helpers';

describeEach(anyDatabase(), 'contact events', (database) => {
  let site: Site;
  let log: EventLog;
  let api: Ask;
  let admin: Ask;
  useWatchedSite(database, (watched) => {
    ({ site, log, api, admin } = watched);
  });

  let made = 0;
  const address = () => `person${(made += 1)}@example.test`;
  const newContact = async (values: object = {}) => {
    const { body } = await api('POST', '/contacts', { email: address(), ...values });
    await log.take();
    return body;
  };
  const newTag = async () => {
    made += 1;
    const { body } = await api('POST', '/tags', { name: `Tag ${made}`, slug: `tag-${made}` });
    await log.take();
    return body;
  };

  describe('contact.created', () => {
    it('comes once, whole, from the content API, and equals what the route answers', async () => {
      const email = address();
      const answer = await api('POST', '/contacts', { email, first_name: 'Ada', last_name: 'L' });
      expect(answer.status).toBe(201);
      expect(answer.body).toEqual(
        contactLike({ email, first_name: 'Ada', last_name: 'L', name: 'Ada L' })
      );
      expect(await log.take()).toEqual([{ event: 'contact.created', data: answer.body }]);
    });

    it('comes once from the content manager', async () => {
      const email = address();
      const answer = await admin('POST', 'contact', { email, phone: '123' });
      expect(answer.status).toBe(201);
      expect(await log.take()).toEqual([
        { event: 'contact.created', data: contactLike({ email, phone: '123' }) },
      ]);
    });

    it('comes once from code, by the document service and by the query engine', async () => {
      const [one, two] = [address(), address()];
      await inCode(site, 'contact').create({ email: one });
      await inCode(site, 'contact').query('create', { data: { email: two } });
      expect(await log.take()).toEqual([
        { event: 'contact.created', data: contactLike({ email: one }) },
        { event: 'contact.created', data: contactLike({ email: two }) },
      ]);
    });

    it('comes once a record from createMany', async () => {
      const emails = [address(), address(), address()];
      await inCode(site, 'contact').query('createMany', {
        data: emails.map((email) => ({ email })),
      });
      expect(await log.take()).toEqual(
        emails.map((email) => ({ event: 'contact.created', data: contactLike({ email }) }))
      );
    });

    it('comes once for a clone, with the tags that it took along', async () => {
      const tag = await newTag();
      const contact = await newContact({ first_name: 'Twin', tags: [tag.id] });
      const { entries } = await site.control('documents', {
        uid: 'plugin::switchboard.contact',
        method: 'clone',
        params: { documentId: contact.id },
      });
      const data = contactLike({ id: entries[0].documentId, first_name: 'Twin', name: 'Twin' });
      expect(await log.take()).toEqual([
        { event: 'contact.created', data },
        { event: 'contact.tagged', data: { contact: data, tag, source: 'code' } },
      ]);
    });

    it('knows relations, and is followed by what else came to pass with it', async () => {
      const tag = await newTag();
      const company = (await api('POST', '/companies', { name: 'Firm' })).body;
      await log.take();
      const email = address();
      const { body } = await api('POST', '/contacts', {
        email,
        status: 'subscribed',
        company_id: company.id,
        owner_id: 1,
        tags: [tag.id],
        fields: { size: 'XL' },
      });
      const contact = contactLike({
        email,
        status: 'subscribed',
        company_id: company.id,
        owner_id: 1,
        fields: { size: 'XL' },
        dates: expect.objectContaining({ subscribed_at: expect.stringContaining('+00:00') }),
      });
      expect(body).toEqual(contact);
      expect(await log.take()).toEqual([
        { event: 'contact.created', data: contact },
        { event: 'contact.subscribed', data: contact },
        { event: 'contact.tagged', data: { contact, tag, source: 'api' } },
      ]);
    });
  });

  describe('contact.updated', () => {
    it('names what changed, from each side of the house', async () => {
      const contact = await newContact();
      await api('PATCH', `/contacts/${contact.id}`, { phone: '1', fields: { a: 1, b: 2 } });
      await admin('PUT', `contact/${contact.id}`, { phone: '2' });
      await inCode(site, 'contact').update(contact.id, { fields: { a: 1, b: 3 }, phone: '2' });
      await inCode(site, 'contact').query('update', {
        where: { documentId: contact.id },
        data: { first_name: 'Bea' },
      });
      const events = await log.take();
      expect(names(events)).toEqual(Array(4).fill('contact.updated'));
      expect(events.map(({ data }) => data.changed)).toEqual([
        ['phone', 'fields.a', 'fields.b'],
        ['phone'],
        ['fields.b'],
        ['first_name', 'name'],
      ]);
      expect(events.at(-1)?.data).toEqual({
        contact: { ...(await api('GET', `/contacts/${contact.id}`)).body },
        changed: ['first_name', 'name'],
      });
    });

    it('is silent where nothing changes', async () => {
      const contact = await newContact({ phone: '1', fields: { a: { b: [1, 2] } } });
      const same = (await api('GET', `/contacts/${contact.id}`)).body;
      expect((await api('PUT', `/contacts/${contact.id}`, same)).status).toBe(200);
      await api('PATCH', `/contacts/${contact.id}`, {});
      await admin('PUT', `contact/${contact.id}`, { phone: '1' });
      await inCode(site, 'contact').query('updateMany', {
        where: { documentId: contact.id },
        data: { phone: '1' },
      });
      expect(await log.take()).toEqual([]);
    });

    it('comes once a record that updateMany changes, and not for the others', async () => {
      const contacts = [
        await newContact({ source: 'bulk', phone: '9' }),
        await newContact({ source: 'bulk' }),
        await newContact({ source: 'bulk' }),
      ];
      await inCode(site, 'contact').query('updateMany', {
        where: { source: 'bulk' },
        data: { phone: '9' },
      });
      const events = await log.take();
      expect(events.map(({ event, data }) => [event, data.contact.id, data.changed])).toEqual(
        contacts.slice(1).map(({ id }) => ['contact.updated', id, ['phone']])
      );
    });

    it('says dates when a contact goes to the bin, and that is no deletion', async () => {
      const contact = await newContact();
      const trashed_at = '2030-01-01T00:00:00.000+00:00';
      const { body } = await api('PATCH', `/contacts/${contact.id}`, { trashed_at });
      expect(body.dates.trashed_at).toBe(trashed_at);
      expect(await log.take()).toEqual([
        { event: 'contact.updated', data: { contact: body, changed: ['dates'] } },
      ]);
      const listed = (query: string) => api('GET', `/contacts?email=${contact.email}${query}`);
      expect((await listed('')).body.data).toEqual([]);
      expect((await listed('&trashed=true')).body.data).toEqual([body]);
    });

    it('sees an owner who is removed', async () => {
      const owner = await createAdminUser(site, { role: 'Editor' });
      const contact = await newContact({ owner_id: owner.id });
      expect(contact.owner_id).toBe(owner.id);
      await site.request('DELETE', `/admin/users/${owner.id}`, { as: 'admin' });
      const events = await log.take();
      expect(events.map(({ data }) => [data.changed, data.contact.owner_id])).toEqual([
        [['owner_id'], null],
      ]);
    });

    it('sees a company that is set, also from the company, and that goes', async () => {
      const contact = await newContact();
      const company = (await api('POST', '/companies', { name: 'Firm' })).body;
      await api('PATCH', `/contacts/${contact.id}`, { company_id: company.id });
      await admin('PUT', `company/${company.id}`, {
        contacts: { disconnect: [{ documentId: contact.id }], connect: [] },
      });
      await inCode(site, 'company').update(company.id, { contacts: [contact.id] });
      await api('DELETE', `/companies/${company.id}`);
      const events = (await log.take()).filter(({ event }) => event.startsWith('contact'));
      expect(events.map(({ data }) => [data.changed, data.contact.company_id])).toEqual([
        [['company_id'], company.id],
        [['company_id'], null],
        [['company_id'], company.id],
        [['company_id'], null],
      ]);
    });
  });

  describe('contact.subscribed and contact.unsubscribed', () => {
    it('come beside contact.updated when the status becomes that, once', async () => {
      const contact = await newContact();
      const subscribed = await api('PATCH', `/contacts/${contact.id}`, { status: 'subscribed' });
      await api('PATCH', `/contacts/${contact.id}`, { status: 'subscribed' });
      const gone = await api('PATCH', `/contacts/${contact.id}`, { status: 'unsubscribed' });
      expect(await log.take()).toEqual([
        { event: 'contact.updated', data: { contact: subscribed.body, changed: ['status'] } },
        { event: 'contact.subscribed', data: subscribed.body },
        { event: 'contact.updated', data: { contact: gone.body, changed: ['status'] } },
        { event: 'contact.unsubscribed', data: gone.body },
      ]);
      expect(gone.body.dates.unsubscribed_at).not.toBeNull();
      expect(gone.body.dates.subscribed_at).toBe(subscribed.body.dates.subscribed_at);
    });

    it('come once when many subscribe the contact at the same moment', async () => {
      const contact = await newContact();
      const answers = await Promise.all(
        Array.from({ length: 8 }, () =>
          api('PATCH', `/contacts/${contact.id}`, { status: 'subscribed' })
        )
      );
      expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200));
      expect(names(await log.take())).toEqual(['contact.updated', 'contact.subscribed']);
    });

    it('come from updateMany', async () => {
      const contact = await newContact();
      await inCode(site, 'contact').query('updateMany', {
        where: { documentId: { $in: [contact.id] } },
        data: { contact_status: 'subscribed' },
      });
      const events = await log.take();
      expect(names(events)).toEqual(['contact.updated', 'contact.subscribed']);
      expect(events[1]?.data.dates.subscribed_at).not.toBeNull();
    });
  });

  describe('contact.tagged and contact.untagged', () => {
    it('come from the tag routes, once however often they are called', async () => {
      const [contact, tag] = [await newContact(), await newTag()];
      const path = `/contacts/${contact.id}/tags/${tag.id}`;
      expect((await api('POST', path)).body).toEqual(contactLike({ email: contact.email }));
      expect((await api('POST', path)).status).toBe(200);
      expect((await api('GET', `/tags?contact_id=${contact.id}`)).body.data).toEqual([tag]);
      expect((await api('DELETE', path)).status).toBe(204);
      expect((await api('DELETE', path)).status).toBe(204);
      const data = { contact: contactLike({ email: contact.email }), tag, source: 'api' };
      expect(await log.take()).toEqual([
        { event: 'contact.tagged', data },
        { event: 'contact.untagged', data },
      ]);
    });

    it('come from the contact in the content manager, with the source admin', async () => {
      const [contact, one, two] = [await newContact(), await newTag(), await newTag()];
      await admin('PUT', `contact/${contact.id}`, {
        tags: { connect: [{ documentId: one.id }, { documentId: two.id }], disconnect: [] },
      });
      await admin('PUT', `contact/${contact.id}`, {
        tags: { connect: [], disconnect: [{ documentId: one.id }] },
      });
      const events = await log.take();
      expect(events.map(({ event, data }) => [event, data.tag, data.source])).toEqual([
        ['contact.tagged', one, 'admin'],
        ['contact.tagged', two, 'admin'],
        ['contact.untagged', one, 'admin'],
      ]);
    });

    it('come from the tag: connect, set and disconnect', async () => {
      const [one, two, tag] = [await newContact(), await newContact(), await newTag()];
      await admin('PUT', `tag/${tag.id}`, {
        contacts: { connect: [{ documentId: one.id }], disconnect: [] },
      });
      await inCode(site, 'tag').update(tag.id, { contacts: [two.id] });
      await inCode(site, 'tag').update(tag.id, { contacts: { disconnect: [two.id] } });
      const events = await log.take();
      expect(events.map(({ event, data }) => [event, data.contact.id, data.source])).toEqual([
        ['contact.tagged', one.id, 'admin'],
        ['contact.untagged', one.id, 'code'],
        ['contact.tagged', two.id, 'code'],
        ['contact.untagged', two.id, 'code'],
      ]);
    });

    it('untags the contacts of a tag that is deleted, singly and in bulk', async () => {
      const [one, two] = [await newTag(), await newTag()];
      const contact = await newContact({ tags: [one.id, two.id] });
      await api('DELETE', `/tags/${one.id}`);
      await inCode(site, 'tag').query('deleteMany', { where: { documentId: two.id } });
      expect(await log.take()).toEqual(
        [one, two].map((tag) => ({
          event: 'contact.untagged',
          data: { contact: contactLike({ email: contact.email }), tag, source: expect.any(String) },
        }))
      );
    });

    it('are silent when a tag is renamed', async () => {
      const tag = await newTag();
      await newContact({ tags: [tag.id] });
      await api('PATCH', `/tags/${tag.id}`, { name: 'Other' });
      expect(await log.take()).toEqual([]);
    });

    it('name no tag that was there, where a lifecycle of the site adds one to a change', async () => {
      const [old, added] = [await newTag(), await newTag()];
      const contact = await newContact({ tags: [old.id] });
      await site.evaluate(async ({ strapi, state }, tagId) => {
        const contacts = strapi.db.query('plugin::switchboard.contact' as never);
        const tag = await strapi.db
          .query('plugin::switchboard.tag' as never)
          .findOne({ where: { documentId: tagId } });
        const event = (state.event ??= { isDone: false }) as { isDone: boolean };
        strapi.db.lifecycles.subscribe({
          models: ['plugin::switchboard.contact'],
          async afterUpdate({ params }: { params: { where: object } }) {
            if (event.isDone) return;
            event.isDone = true;
            const data = { tags: { connect: [tag.id] } };
            await contacts.update({ where: params.where, data } as never);
          },
        } as never);
      }, added.id);
      await inCode(site, 'contact').query('update', {
        where: { documentId: contact.id },
        data: { first_name: 'Ada' },
      });
      const events = await log.take();
      expect(events.map(({ event, data }) => [event, data.changed ?? data.tag])).toEqual([
        ['contact.updated', ['first_name', 'name']],
        ['contact.tagged', added],
      ]);
    });
  });

  describe('contact.deleted', () => {
    it('carries id and e-mail, from everywhere, and nothing else is said of its tags', async () => {
      const tag = await newTag();
      const contacts = [
        await newContact({ tags: [tag.id] }),
        await newContact(),
        await newContact(),
        await newContact(),
        await newContact(),
      ];
      await api('DELETE', `/contacts/${contacts[0].id}`);
      await admin('DELETE', `contact/${contacts[1].id}`);
      await inCode(site, 'contact').query('delete', { where: { documentId: contacts[2].id } });
      await inCode(site, 'contact').query('deleteMany', {
        where: { documentId: { $in: [contacts[3].id, contacts[4].id] } },
      });
      expect(await log.take()).toEqual(
        contacts.map(({ id, email }) => ({ event: 'contact.deleted', data: { id, email } }))
      );
    });
  });

  describe('the outbox', () => {
    const create = (email: string) => ({
      op: 'query',
      args: { uid: 'plugin::switchboard.contact', method: 'create', params: { data: { email } } },
    });

    it('sends nothing of a transaction that is rolled back, however deep it was', async () => {
      const email = address();
      await expect(
        site.control('transaction', {
          steps: [{ op: 'transaction', args: { steps: [create(email)] } }],
          throw: 'after the write',
        })
      ).rejects.toThrow('after the write');
      expect(await log.take()).toEqual([]);
      expect((await api('GET', `/contacts?email=${email}`)).body.data).toEqual([]);
    });

    it('keeps no write of the query engine whose event could not be queued', async () => {
      const email = address();
      await site.evaluate(async ({ strapi, state }) => {
        const publisher = strapi.service('plugin::switchboard.publisher');
        state.publish = publisher.publish;
        publisher.publish = async () => {
          throw new Error('the queue is out of order');
        };
      });
      try {
        await expect(inCode(site, 'contact').query('create', { data: { email } })).rejects.toThrow(
          'the queue is out of order'
        );
      } finally {
        await site.evaluate(async ({ strapi, state }) => {
          strapi.service('plugin::switchboard.publisher').publish = state.publish;
        });
      }
      expect((await api('GET', `/contacts?email=${email}`)).body.data).toEqual([]);
      expect(await log.take()).toEqual([]);
    });
  });
});
