import { describeEach, anyDatabase } from '../support/databases';
import type { Site } from '../support/site';
import { CRM, type EventLog, names, useWatchedSite } from './crm-helpers';

/** With a function in it. */
const env = { SWITCHBOARD_OPTIONS_FILE: require.resolve('./crm-form-options.js') };

describeEach(anyDatabase(), 'a form that adds its sender', (database) => {
  let site: Site;
  let log: EventLog;
  useWatchedSite(
    database,
    (watched) => {
      ({ site, log } = watched);
    },
    {},
    env
  );

  const send = (data: object) => site.request('POST', '/api/inquiries', { body: { data } });

  it('makes the contact, says so, and then sends the answers', async () => {
    const answer = await send({
      mail: 'Ada@Example.test',
      firstName: 'Ada',
      topic: 'offer',
      message: 'Hello',
      visitDate: '2030-01-31',
    });
    expect(answer.status).toBe(201);
    const events = await log.take();
    expect(names(events)).toEqual(['contact.created', 'form.submitted']);
    const contact = events[0]?.data;
    expect(contact).toMatchObject({
      email: 'Ada@Example.test',
      first_name: 'Ada',
      source: 'form',
      fields: { topic: 'offer' },
    });
    expect(events[1]?.data).toEqual({
      contact,
      new_contact: true,
      form_id: 'api::inquiry.inquiry',
      form_title: 'Inquiry',
      entry_id: answer.body.data.documentId,
      answers: [
        { id: 'mail', label: 'Mail', type: 'email', value: 'Ada@Example.test' },
        { id: 'firstName', label: 'First name', type: 'string', value: 'Ada' },
        { id: 'lastName', label: 'Last name', type: 'string', value: null },
        { id: 'topic', label: 'Topic', type: 'enumeration', value: 'offer' },
        { id: 'message', label: 'Message', type: 'text', value: 'Hello' },
        { id: 'newsletter', label: 'Newsletter', type: 'boolean', value: false },
        { id: 'visitDate', label: 'Visit date', type: 'date', value: '2030-01-31' },
      ],
    });
  });

  it('finds the contact again whatever the case, fills what is empty, and changes nothing', async () => {
    await send({ mail: 'ADA@example.TEST', lastName: 'L', topic: 'question' });
    const events = await log.take();
    expect(names(events)).toEqual(['contact.updated', 'form.submitted']);
    expect(events[0]?.data.changed).toEqual(['last_name', 'name']);
    expect(events[1]?.data).toMatchObject({ new_contact: false, contact: { name: 'Ada L' } });
    expect(events[1]?.data.contact.fields).toEqual({ topic: 'offer' });
    expect(events[1]?.data.answers).toContainEqual(
      expect.objectContaining({ id: 'topic', value: 'question' })
    );
    await send({ mail: 'ada@example.test' });
    expect(names(await log.take())).toEqual(['form.submitted']);
  });

  it('gives a stranger no power over a known contact: what differs is kept in the answers', async () => {
    const known = {
      email: 'known@example.test',
      first_name: 'Grace',
      last_name: 'Hopper',
      status: 'unsubscribed',
      fields: { topic: 'offer', size: 'XL' },
    };
    const made = await site.request('POST', `${CRM}/contacts`, { body: known });
    await log.take();
    await send({
      mail: 'KNOWN@example.test',
      firstName: 'Mallory',
      lastName: 'M',
      topic: 'question',
      newsletter: true,
    });
    const events = await log.take();
    expect(names(events)).toEqual(['form.submitted']);
    expect(events[0]?.data.contact).toMatchObject(known);
    expect(events[0]?.data.answers).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ id: 'firstName', value: 'Mallory' }),
        expect.objectContaining({ id: 'lastName', value: 'M' }),
        expect.objectContaining({ id: 'topic', value: 'question' }),
      ])
    );
    const now = await site.request('GET', `${CRM}/contacts/${made.body.id}`);
    expect(now.body).toMatchObject(known);
  });

  it('subscribes by consent whoever has not decided yet, and nobody who withdrew', async () => {
    const statuses = ['pending', 'subscribed', 'unsubscribed', 'bounced', 'complained'];
    for (const status of statuses) {
      const email = `${status}@example.test`;
      await site.request('POST', `${CRM}/contacts`, { body: { email, status } });
      await send({ mail: email, newsletter: true });
    }
    await send({ mail: 'new@example.test', newsletter: true });
    await send({ mail: 'without@example.test' });
    const statusOf = async (name: string) => {
      const answer = await site.request('GET', `${CRM}/contacts?email=${name}@example.test`);
      return answer.body.data[0].status;
    };
    for (const status of statuses) {
      expect([status, await statusOf(status)]).toEqual([
        status,
        status === 'pending' ? 'subscribed' : status,
      ]);
    }
    expect(await statusOf('new')).toBe('subscribed');
    expect(await statusOf('without')).toBe('pending');
    await log.take();
  });

  it('makes one contact of many forms with one address at the same moment', async () => {
    const mails = ['twin@example.test', 'TWIN@example.test', 'Twin@Example.test'];
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, n) => send({ mail: mails[n % 3], lastName: `N${n % 2}` }))
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(12).fill(201));
    const events = await log.take();
    const count = (name: string) => events.filter(({ event }) => event === name).length;
    expect(count('contact.created')).toBe(1);
    expect(count('form.submitted')).toBe(12);
    const isNew = events.filter(({ data }) => data.new_contact === true);
    expect(isNew).toHaveLength(1);
    const listed = await site.request('GET', `${CRM}/contacts?email=twin@example.test`);
    expect(listed.body.data).toHaveLength(1);
  });

  it('adds the sender where nobody listens, too', async () => {
    await site.request('PATCH', `${CRM}/webhooks/${log.webhookId}`, { body: { active: false } });
    await send({ mail: 'silent@example.test' });
    await site.request('PATCH', `${CRM}/webhooks/${log.webhookId}`, { body: { active: true } });
    expect(await log.take()).toEqual([]);
    const listed = await site.request('GET', `${CRM}/contacts?email=silent@example.test`);
    expect(listed.body.data).toHaveLength(1);
  });

  it('finds a contact in the bin, and leaves it there', async () => {
    const trashed_at = '2030-01-01T00:00:00.000+00:00';
    const known = await site.request('POST', `${CRM}/contacts`, {
      body: { email: 'binned@example.test', trashed_at },
    });
    await log.take();
    await send({ mail: 'Binned@example.test', firstName: 'Bin' });
    const events = await log.take();
    expect(names(events)).toEqual(['contact.updated', 'form.submitted']);
    const contact = { id: known.body.id, first_name: 'Bin', dates: { trashed_at } };
    expect(events[1]?.data).toMatchObject({ new_contact: false, contact });
  });

  it('keeps the entry and drops what a contact cannot hold', async () => {
    const answer = await send({ mail: 'long@example.test', firstName: 'x'.repeat(256) });
    // The column of the form itself may be shorter than that, depending on the database.
    if (answer.status !== 201) return;
    const events = await log.take();
    expect(names(events)).toEqual(['contact.created', 'form.submitted']);
    expect(events[0]?.data.first_name).toBeNull();
  });

  it('says nothing when an entry is edited or removed', async () => {
    const { body } = await send({ mail: 'edit@example.test' });
    await log.take();
    const { documentId } = body.data;
    await site.request('PUT', `/api/inquiries/${documentId}`, {
      body: { data: { message: 'more' } },
    });
    await site.request('DELETE', `/api/inquiries/${documentId}`);
    expect(await log.take()).toEqual([]);
  });

  it('rolls the contact back with the entry', async () => {
    await expect(
      site.control('transaction', {
        steps: [
          {
            op: 'documents',
            args: {
              uid: 'api::inquiry.inquiry',
              method: 'create',
              params: { data: { mail: 'never@example.test' } },
            },
          },
        ],
        throw: 'after the entry',
      })
    ).rejects.toThrow('after the entry');
    expect(await log.take()).toEqual([]);
    const listed = await site.request('GET', `${CRM}/contacts?email=never@example.test`);
    expect(listed.body.data).toEqual([]);
  });
});
