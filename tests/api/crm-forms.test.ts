import { databases, describeEach } from '../support/databases';
import type { Site } from '../support/site';
import { CRM, type EventLog, names, useWatchedSite } from './crm-helpers';

const forms = [
  {
    contentType: 'api::inquiry.inquiry',
    title: 'Inquiry',
    fields: {
      email: 'mail',
      first_name: 'firstName',
      last_name: 'lastName',
      'fields.topic': 'topic',
    },
  },
];

describeEach(databases(), 'a form that adds its sender', (database) => {
  let site: Site;
  let log: EventLog;
  useWatchedSite(
    database,
    (watched) => {
      ({ site, log } = watched);
    },
    { forms }
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

  it('finds the contact again whatever the case, completes it, and empties nothing', async () => {
    await send({ mail: 'ADA@example.TEST', lastName: 'L', topic: 'question' });
    const events = await log.take();
    expect(names(events)).toEqual(['contact.updated', 'form.submitted']);
    expect(events[0]?.data.changed).toEqual(['last_name', 'name', 'fields.topic']);
    expect(events[1]?.data).toMatchObject({ new_contact: false, contact: { name: 'Ada L' } });
    await send({ mail: 'ada@example.test' });
    expect(names(await log.take())).toEqual(['form.submitted']);
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
