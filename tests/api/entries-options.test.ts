import { describeEach, anyDatabase } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { BootError } from '../support/site-process';
import { CRM, openEventLog } from './crm-helpers';
import { NOTICE, STORY, WRITER } from './entries-support';

const ENTRY_EVENT = /^(entry|media)\./;

const bootFailure = async (sources: object): Promise<string> => {
  try {
    await (await startSite({ options: { sources }, accounts: false })).stop();
  } catch (error) {
    if (error instanceof BootError) return error.log;
    throw error;
  }
  throw new Error('the site started');
};

describeEach(anyDatabase(), 'without the option', (database) => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({ database, options: { webhooks: { dispatch: false } } });
  }, 120_000);
  afterAll(() => site?.stop(), 60_000);

  it('no event of entries is offered, chosen or sent', async () => {
    const { body } = await site.request('GET', `${CRM}/webhooks/events`);
    const names = body.data.map(({ event }: { event: string }) => event);
    expect(names.filter((name: string) => ENTRY_EVENT.test(name))).toEqual([]);
    const refused = await site.request('POST', `${CRM}/webhooks`, {
      body: { name: 'x', url: 'http://127.0.0.1:9/', events: ['entry.created'] },
    });
    expect(refused.status).toBe(400);
    const log = await openEventLog(site, ['*']);
    await site.control('documents', {
      uid: WRITER,
      method: 'create',
      params: { data: { name: 'A' } },
    });
    expect(await log.take()).toEqual([]);
    expect(site.log()).not.toContain('sources.entries');
  });
});

describeEach(anyDatabase(), "with sources.entries: '*'", (database) => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({
      database,
      options: {
        features: { crm: false },
        webhooks: { dispatch: false },
        sources: { entries: '*' },
      },
    });
  }, 120_000);
  afterAll(() => site?.stop(), 60_000);

  const documents = (uid: string, method: string, params: object) =>
    site.control('documents', { uid, method, params });

  it("every type of the site's own is told of, without drafts and without the CRM", async () => {
    const log = await openEventLog(site, ['*']);
    await documents(WRITER, 'create', { data: { name: 'A' } });
    const { documentId } = await documents(STORY, 'create', { data: { headline: 'S' } });
    await documents(STORY, 'publish', { documentId });
    await site.control('query', {
      uid: 'plugin::users-permissions.role',
      method: 'create',
      params: { data: { name: 'r', type: 'r' } },
    });
    expect((await log.take()).map(({ event, data }) => [event, data.content_type])).toEqual([
      ['entry.created', WRITER],
      ['entry.published', STORY],
    ]);
  });

  it('the boot log says that webhooks for every event are sent them too', () => {
    expect(site.log()).toMatch(
      /switchboard: sources\.entries: entries of .*api::story\.story.* are sent to webhooks .* every event \(\*\)/
    );
    expect(site.log()).not.toContain('has no effect');
  });

  it('the schema of an event takes the types that are named, and no other', async () => {
    const { body } = await site.request('GET', `${CRM}/webhooks/events`);
    const { schema, group } = body.data.find(
      ({ event }: { event: string }) => event === 'entry.updated'
    );
    expect(group).toBe('Entries');
    expect(schema.properties.content_type.enum).toEqual(
      expect.arrayContaining([WRITER, STORY, NOTICE])
    );
    expect(
      schema.properties.content_type.enum.every((uid: string) => uid.startsWith('api::'))
    ).toBe(true);
  });

  it('sends a thin webhook which entry it is, and nothing else of it', async () => {
    const answer = await site.request('POST', `${CRM}/webhooks`, {
      body: {
        name: 'thin',
        url: 'http://127.0.0.1:9/',
        events: ['entry.created', 'entry.updated'],
        payload: 'thin',
        filter: { properties: { entry: { properties: { name: { const: 'Thin' } } } } },
      },
    });
    const { documentId } = await documents(WRITER, 'create', { data: { name: 'Thin' } });
    await documents(WRITER, 'create', { data: { name: 'Other' } });
    await documents(WRITER, 'update', { documentId, data: { born: '2000-01-01' } });
    const { body } = await site.request('GET', `${CRM}/webhooks/${answer.body.id}/deliveries`);
    const sent = body.data.map((one: { request: { body: string } }) =>
      JSON.parse(one.request.body)
    );
    const about = {
      content_type: WRITER,
      locale: null,
      status: 'published',
      entry: { documentId },
    };
    expect(sent.map(({ data }: { data: unknown }) => data).reverse()).toEqual([
      about,
      { ...about, changed: ['born'] },
    ]);
  });

  it('a write of a named type that nobody subscribed to is the host’s alone', async () => {
    await site.control('sql', {
      statement: 'UPDATE switchboard_webhooks SET active = ?',
      bindings: [false],
    });
    const isInTransaction = await site.evaluate(async ({ strapi }) => {
      let within: boolean | undefined;
      const stop = strapi.db.lifecycles.subscribe({
        models: ['api::writer.writer'],
        beforeCreate() {
          within = strapi.db.inTransaction();
        },
      });
      await strapi.db.query('api::writer.writer').create({ data: { name: 'Alone' } });
      stop();
      return within;
    });
    expect(isInTransaction).toBe(false);
  });
});

describeEach(anyDatabase(), 'a type that is mapped to the CRM as well', (database) => {
  const LEAD = 'api::lead.lead';
  let site: Site;
  beforeAll(async () => {
    site = await startSite({
      database,
      options: {
        webhooks: { dispatch: false },
        sources: {
          contact: { contentType: LEAD, fields: { email: 'mail', phone: 'telephone' } },
          entries: [LEAD],
        },
      },
    });
  }, 120_000);
  afterAll(() => site?.stop(), 60_000);

  const documents = (method: string, params: object) =>
    site.control('documents', { uid: LEAD, method, params });
  const silence = (method: 'start' | 'stop') =>
    site.control('service', { uid: 'plugin::switchboard.sources', method });

  it('has the events of both, and none while the sources are silenced', async () => {
    const log = await openEventLog(site, ['*']);
    const said = async () => (await log.take()).map(({ event }) => event).sort();
    const { documentId } = await documents('create', { data: { mail: 'lead@example.test' } });
    await documents('publish', { documentId });
    expect(await said()).toEqual(['contact.created', 'entry.published']);
    await silence('stop');
    await documents('update', { documentId, data: { points: 1 }, status: 'published' });
    await silence('start');
    expect(await said()).toEqual([]);
    await documents('update', { documentId, data: { telephone: '2' }, status: 'published' });
    expect(await said()).toEqual(['contact.updated', 'entry.published']);
    await documents('delete', { documentId });
    expect(await said()).toEqual(['contact.deleted', 'entry.deleted']);
  });
});

describe('what the site does not have', () => {
  it('stops the boot, with a line for each type', async () => {
    const log = await bootFailure({
      entries: [
        'api::storey.storey',
        { contentType: 'api::storeys.storeys', drafts: true },
        'admin::user',
        'plugin::upload.file',
        '*',
      ],
    });
    const option = 'sources\\.entries: ';
    const lines = [
      'there is no content type "api::storey\\.storey"\\. Possible: .*api::story\\.story',
      'there is no content type "api::storeys\\.storeys"',
      '"admin::user" is not a content type',
      '.*sources\\.media: true',
      ".*Use '\\*' by itself",
    ];
    for (const line of lines) expect(log).toMatch(new RegExp(option + line));
  }, 60_000);

  it('a list of contacts stops it too, and says where it belongs', async () => {
    expect(await bootFailure({ contact: [STORY] })).toMatch(
      /switchboard\.sources\.contact: must be one mapping.* sources\.entries/
    );
  }, 60_000);

  it('under strapi develop is warned of', async () => {
    const site = await startSite({
      options: { sources: { entries: ['api::storey.storey', WRITER] } },
      env: { SITE_AUTO_RELOAD: 'true' },
    });
    try {
      expect(site.log()).toMatch(
        /warn.*sources\.entries: there is no content type "api::storey\.storey"/
      );
      const { body } = await site.request('GET', `${CRM}/webhooks/events`);
      const { schema } = body.data.find(
        ({ event }: { event: string }) => event === 'entry.created'
      );
      expect(schema.properties.content_type.enum).toEqual([WRITER]);
    } finally {
      await site.stop();
    }
  }, 60_000);
});
