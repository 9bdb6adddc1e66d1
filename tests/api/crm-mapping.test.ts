import { describeEach, anyDatabase } from '../support/databases';
import { BootError } from '../support/site-process';
import { type Site, startSite } from '../support/site';
import { CRM, type EventLog, names, openEventLog } from './crm-helpers';
import { logSoFar } from './delivery-support';

const LEAD = 'api::lead.lead';
const LABEL = 'api::label.label';

describeEach(anyDatabase(), "a site's own types as the CRM's", (database) => {
  let site: Site;
  let log: EventLog;
  beforeAll(async () => {
    site = await startSite({
      database,
      env: { SWITCHBOARD_OPTIONS_FILE: require.resolve('./crm-mapped-options.js') },
    });
    await site.evaluate(({ strapi }) =>
      strapi.plugin('i18n').service('locales').create({ code: 'fr', name: 'French' })
    );
    log = await openEventLog(site);
  }, 180_000);
  afterAll(() => site?.stop(), 60_000);

  const documents = (method: string, params: object, uid = LEAD) =>
    site.control('documents', { uid, method, params });
  const draft = async (data: object) => {
    const { documentId } = await documents('create', {
      data: { mail: 'lead@example.test', ...data },
    });
    return documentId as string;
  };
  const published = async (data: object) => {
    const documentId = await draft(data);
    await documents('publish', { documentId });
    await log.take();
    return documentId;
  };

  it('sends nothing for a draft and one event when it is published, from the mapped fields', async () => {
    const firm = await documents('create', { data: { title: 'Firm' } }, 'api::firm.firm');
    await log.take();
    const documentId = await draft({
      givenName: 'Ada',
      familyName: 'L',
      points: 7,
      secretNote: 'private',
      headline: 'Hello',
      firm: firm.documentId,
    });
    await documents('update', { documentId, data: { telephone: '1' } });
    expect(await log.take()).toEqual([]);
    await documents('publish', { documentId });
    const events = await log.take();
    expect(events).toEqual([
      {
        event: 'contact.created',
        data: {
          id: documentId,
          email: 'lead@example.test',
          first_name: 'Ada',
          last_name: 'L',
          name: 'Ada L',
          phone: '1',
          job_title: null,
          status: 'pending',
          lifecycle_stage: null,
          owner_id: null,
          company_id: firm.documentId,
          address: null,
          score: 7,
          lifetime_value: null,
          source: null,
          dates: {
            created_at: expect.any(String),
            updated_at: expect.any(String),
            subscribed_at: null,
            unsubscribed_at: null,
            trashed_at: null,
          },
          fields: { headline: 'Hello', shout: 'ADA' },
        },
      },
    ]);
    const { body } = await site.request('GET', `${CRM}/contacts/${documentId}`);
    expect(body).toEqual(events[0]?.data);
  });

  it('sends one contact.updated when a change is published, and none when nothing changed', async () => {
    const documentId = await published({ givenName: 'Ada' });
    await documents('publish', { documentId });
    expect(await log.take()).toEqual([]);
    await documents('update', { documentId, data: { givenName: 'Bea', vip: true } });
    expect(await log.take()).toEqual([]);
    await documents('publish', { documentId });
    const events = await log.take();
    expect(names(events)).toEqual(['contact.updated', 'contact.subscribed']);
    expect(events[0]?.data.changed).toEqual(['first_name', 'name', 'status', 'fields.shout']);
  });

  it('sends one event for create and publish in one call, and through the content API', async () => {
    await documents('create', { data: { mail: 'a@example.test' }, status: 'published' });
    await site.request('POST', '/api/leads', { body: { data: { mail: 'b@example.test' } } });
    const events = await log.take();
    expect(events.map(({ event, data }) => [event, data.email])).toEqual([
      ['contact.created', 'a@example.test'],
      ['contact.created', 'b@example.test'],
    ]);
  });

  it('hears one language only: another one is the same contact', async () => {
    const documentId = await published({ headline: 'Hello' });
    await documents('update', {
      documentId,
      locale: 'fr',
      data: { headline: 'Bonjour' },
      status: 'published',
    });
    await documents('publish', { documentId, locale: '*' });
    expect(await log.take()).toEqual([]);
    await documents('delete', { documentId, locale: 'fr' });
    expect(await log.take()).toEqual([]);
    await documents('delete', { documentId, locale: '*' });
    expect(await log.take()).toEqual([
      { event: 'contact.deleted', data: { id: documentId, email: 'lead@example.test' } },
    ]);
  });

  it('takes unpublishing for no deletion, and publishing again for no new contact', async () => {
    const documentId = await published({ givenName: 'Ada' });
    await documents('unpublish', { documentId });
    await documents('publish', { documentId });
    expect(await log.take()).toEqual([]);
    await documents('unpublish', { documentId });
    await documents('update', { documentId, data: { givenName: 'Bea' } });
    await documents('publish', { documentId });
    expect((await log.take()).map(({ event, data }) => [event, data.changed])).toEqual([
      ['contact.updated', ['first_name', 'name', 'fields.shout']],
    ]);
    await documents('unpublish', { documentId });
    expect(await log.take()).toEqual([]);
    await documents('delete', { documentId });
    expect(names(await log.take())).toEqual(['contact.deleted']);
  });

  it('says nothing of a draft that was never published and is deleted', async () => {
    const documentId = await draft({});
    await documents('delete', { documentId });
    expect(await log.take()).toEqual([]);
  });

  it('sends contact.tagged from either side, once', async () => {
    const label = await documents('create', { data: { title: 'VIP', handle: 'vip' } }, LABEL);
    const tag = { id: label.documentId, slug: 'vip', name: 'VIP' };
    const documentId = await published({});
    await documents('update', {
      documentId,
      data: { labels: [label.documentId] },
      status: 'published',
    });
    await documents('publish', { documentId });
    await documents('delete', { documentId: label.documentId }, LABEL);
    const events = await log.take();
    expect(events.map(({ event, data }) => [event, data.tag, data.contact.id])).toEqual([
      ['contact.tagged', tag, documentId],
      ['contact.untagged', tag, documentId],
    ]);
  });

  it('is written through the CRM routes too, and says which keys it cannot write', async () => {
    const created = await site.request('POST', `${CRM}/contacts`, {
      body: { email: 'rest@example.test', first_name: 'Rest', fields: { headline: 'Hi' } },
    });
    expect(created.status).toBe(201);
    expect(created.body).toMatchObject({ first_name: 'Rest', fields: { headline: 'Hi' } });
    expect(await log.take()).toEqual([{ event: 'contact.created', data: created.body }]);
    const refused = await site.request('PATCH', `${CRM}/contacts/${created.body.id}`, {
      body: { status: 'subscribed' },
    });
    expect(refused.status).toBe(400);
    expect(refused.body.error.message).toMatch(/^status: /);
    const listed = await site.request('GET', `${CRM}/contacts?email=REST@example.test`);
    expect(listed.body.data).toEqual([created.body]);
  });

  it('loses an event, never a write, when a computed field fails, and logs it', async () => {
    const documentId = await draft({ givenName: 'Boom' });
    await documents('publish', { documentId });
    expect(await log.take()).toEqual([]);
    expect(await logSoFar(site)).toContain('a computed field failed');
    await documents('update', { documentId, data: { givenName: 'Ada' }, status: 'published' });
    expect(await log.take()).toEqual([]);
    await documents('update', { documentId, data: { givenName: 'Bea' }, status: 'published' });
    expect(names(await log.take())).toEqual(['contact.updated']);
  });
});

describe('a mapping that the schema does not bear out', () => {
  const bootLog = async (sources: object): Promise<string> => {
    try {
      const site = await startSite({ accounts: false, options: { sources } });
      await site.stop();
    } catch (error) {
      if (error instanceof BootError) return error.log;
      throw error;
    }
    throw new Error('the site started');
  };

  // The other ways are in unit/crm/mapping.test.ts.
  it('stops the boot', async () => {
    const fields = { email: 'mail', tags: 'labels' };
    expect(await bootLog({ contact: { contentType: LEAD, fields } })).toMatch(
      /sources\.tag = \{ contentType: 'api::label\.label' \}/
    );
  }, 120_000);
});
