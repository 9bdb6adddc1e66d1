import { describeEach, serverDatabases } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { CRM } from './crm-helpers';

/** Two transactions that write the same record: the second waits for the first, and tells what it changed itself. */

const STORY = 'api::story.story';
const uidOf = (kind: string): string => `plugin::switchboard.${kind}`;

interface Call {
  /** The document service's, or the query engine's. */
  by: 'documents' | 'query';
  uid: string;
  method: string;
  params: Record<string, unknown>;
}

const documents = (uid: string, method: string, params: Record<string, unknown>): Call => ({
  by: 'documents',
  uid,
  method,
  params,
});
const query = (uid: string, method: string, params: Record<string, unknown>): Call => ({
  by: 'query',
  uid,
  method,
  params,
});

interface Told {
  event: string;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- events differ
  data: any;
}

describeEach(serverDatabases(), 'two writers of one record', (database) => {
  let site: Site;
  let last = 0;

  beforeAll(async () => {
    site = await startSite({
      database,
      options: {
        webhooks: { dispatch: false },
        sources: {
          company: {
            contentType: STORY,
            fields: { name: 'headline', description: 'teaser', industry: 'mood' },
          },
          entries: [STORY],
        },
      },
    });
    const body = { name: 'all', url: 'http://127.0.0.1:9/', events: ['*'] };
    expect((await site.request('POST', `${CRM}/webhooks`, { body })).status).toBe(201);
  }, 180_000);
  afterAll(() => site?.stop(), 60_000);

  const told = async (): Promise<Told[]> => {
    const rows: Record<string, unknown>[] = await site.control('sql', {
      statement: `select id, event, body from switchboard_deliveries where id > ${last} order by id`,
    });
    last = Number(rows.at(-1)?.id ?? last);
    return rows.map(({ event, body }) => ({
      event: String(event),
      data: JSON.parse(String(body)).data,
    }));
  };

  /**
   * Has the first write done and not committed when the second one begins.
   * @param older the second one's transaction is the site's own, and has read before the first one commits
   */
  const overlap = async (first: Call, second: Call, older = false): Promise<Told[]> => {
    await told();
    await site.evaluate(
      async ({ strapi }, calls, isOlder) => {
        const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
        const run = ({ by, uid, method, params }: (typeof calls)[number]) =>
          by === 'documents'
            ? strapi.documents(uid)[method](params)
            : strapi.db.query(uid)[method](params);
        const [one, other] = calls as [(typeof calls)[number], (typeof calls)[number]];
        let written = (): void => {};
        let release = (): void => {};
        const isWritten = new Promise<void>((resolve) => (written = resolve));
        const isReleased = new Promise<void>((resolve) => (release = resolve));
        const firstOne = strapi.db.transaction(async () => {
          await run(one);
          written();
          await isReleased;
        });
        await isWritten;
        const secondOne = isOlder
          ? strapi.db.transaction(async () => {
              await strapi.db.query('plugin::switchboard.tag').findMany({ limit: 1 });
              release();
              await firstOne;
              await run(other);
            })
          : run(other);
        await Promise.race([secondOne, pause(300)]);
        release();
        await Promise.all([firstOne, secondOne]);
      },
      [first, second],
      older
    );
    return told();
  };

  const make = (uid: string, data: object): Promise<{ documentId: string; id: number }> =>
    site.control('documents', { uid, method: 'create', params: { data } });

  let serial = 0;
  const newEmail = (): string => `overlap-${(serial += 1)}@example.test`;

  describe.each(['many', 'one', 'a document'])('written as %s', (firstWay) => {
    it.each(['many', 'one', 'a document'])('and as %s: each change is told', async (secondWay) => {
      const CONTACT = uidOf('contact');
      const email = newEmail();
      const { documentId } = await make(CONTACT, { email, contact_status: 'unsubscribed' });
      const by = (way: string, contact_status: string): Call => {
        const data = { contact_status };
        if (way === 'a document') return documents(CONTACT, 'update', { documentId, data });
        const method = way === 'many' ? 'updateMany' : 'update';
        return query(CONTACT, method, { where: { email }, data });
      };
      const events = await overlap(by(firstWay, 'subscribed'), by(secondWay, 'unsubscribed'));
      expect(
        events.map(({ event }) => event).filter((event) => event !== 'contact.updated')
      ).toEqual(['contact.subscribed', 'contact.unsubscribed']);
    });
  });

  it('changes only what it tells of where a row comes to match meanwhile', async () => {
    const CONTACT = uidOf('contact');
    const job = `job ${newEmail()}`;
    const { documentId } = await make(CONTACT, { email: newEmail(), job_title: 'none' });
    await make(CONTACT, { email: newEmail(), job_title: job });
    const events = await overlap(
      documents(CONTACT, 'update', { documentId, data: { job_title: job } }),
      query(CONTACT, 'updateMany', { where: { job_title: job }, data: { score: 9 } })
    );
    const scored = events.filter(({ data }) => data.changed?.includes('score'));
    const rows = await site.control('query', {
      uid: CONTACT,
      method: 'findMany',
      params: { where: { job_title: job, score: 9 } },
    });
    expect(scored.map(({ data }) => data.contact.id).sort()).toEqual(
      rows.map((row: { documentId: string }) => row.documentId).sort()
    );
  });

  it.each([
    ['deleteMany', 'deleteMany'],
    ['delete', 'deleteMany'],
    ['deleteMany', 'delete'],
  ])('is told to be gone once: %s, %s', async (one, other) => {
    const CONTACT = uidOf('contact');
    const email = newEmail();
    await make(CONTACT, { email });
    const events = await overlap(
      query(CONTACT, one, { where: { email } }),
      query(CONTACT, other, { where: { email } })
    );
    expect(events.map(({ event }) => event)).toEqual(['contact.deleted']);
  });

  it('is told to be gone alone where a document is updated that was deleted meanwhile', async () => {
    const CONTACT = uidOf('contact');
    const { id, documentId } = await make(CONTACT, { email: newEmail() });
    const events = await overlap(
      query(CONTACT, 'delete', { where: { id } }),
      documents(CONTACT, 'update', { documentId, data: { score: 3 } })
    );
    expect(events.map(({ event }) => event)).toEqual(['contact.deleted']);
    expect((await site.request('GET', `${CRM}/contacts/${documentId}`)).status).toBe(404);
  });

  it('published for the first time by both, is new once', async () => {
    const { documentId } = await make(STORY, { headline: 'first' });
    const publish = documents(STORY, 'publish', { documentId });
    const events = await overlap(publish, publish);
    expect(events.filter(({ event }) => event === 'company.created')).toHaveLength(1);
    const published = events.filter(({ event }) => event === 'entry.published');
    expect(published.map(({ data }) => data.changed.length > 0)).toEqual([true, false]);
  });

  it('is new to nobody while many publish it, save it and discard its draft', async () => {
    const { documentId } = await make(STORY, { headline: 'replaced' });
    await site.control('documents', { uid: STORY, method: 'publish', params: { documentId } });
    await told();
    await site.evaluate(
      async ({ strapi }, uid, id) => {
        const documents = strapi.documents(uid);
        const writes = [
          () => documents.publish({ documentId: id }),
          (n: number) => documents.update({ documentId: id, data: { teaser: `${n}` } }),
          () => documents.discardDraft({ documentId: id }),
          () => documents.publish({ documentId: id }),
        ];
        const writer = async (first: number) => {
          for (let n = first; n < first + 8; n += 1) {
            // MySQL may choose it as a deadlock's victim.
            await writes[n % writes.length]?.(n).catch(() => {});
          }
        };
        await Promise.all([0, 1, 2, 3, 4, 5].map(writer));
      },
      STORY,
      documentId
    );
    const names = (await told()).map(({ event }) => event);
    expect(names.filter((event) => event === 'company.created')).toEqual([]);
    expect(names).toContain('company.updated');
  });

  it('of a type with drafts, each tells its own change', async () => {
    const { documentId } = await make(STORY, { headline: 'both' });
    await site.control('documents', { uid: STORY, method: 'publish', params: { documentId } });
    const change = (data: object) =>
      documents(STORY, 'update', { documentId, data, status: 'published' });
    const events = await overlap(change({ teaser: 'one' }), change({ mood: 'loud' }));
    const of = (name: string) => events.filter(({ event }) => event === name);
    expect(of('company.updated').map(({ data }) => [data.description, data.industry])).toEqual([
      ['one', null],
      ['one', 'loud'],
    ]);
    expect(of('entry.published').map(({ data }) => data.changed)).toEqual([['teaser'], ['mood']]);
  });

  it.each([false, true])(
    'carries the stage that the other one gave it (in a transaction that is older: %s)',
    async (older) => {
      const [one, two] = await Promise.all([
        make(uidOf('deal-stage'), { name: 'one' }),
        make(uidOf('deal-stage'), { name: 'two' }),
      ]);
      const DEAL = uidOf('deal');
      const { documentId } = await make(DEAL, { title: 'deal', stage: one.documentId });
      const events = await overlap(
        documents(DEAL, 'update', { documentId, data: { stage: two.documentId } }),
        documents(DEAL, 'update', { documentId, data: { value: 5 } }),
        older
      );
      const updated = events.filter(({ event }) => event === 'deal.updated');
      expect(updated.map(({ data }) => [data.changed, data.stage_id])).toEqual([
        [['stage_id'], two.documentId],
        [['value'], two.documentId],
      ]);
    }
  );

  describe.each([false, true])('in a transaction that is older: %s', (older) => {
    it.each([
      ['delete', (id: number) => ({ id })],
      ['deleteMany', (id: number) => ({ id: { $in: [id] } })],
    ])('loses what is deleted (%s) while it is linked to it, and says so', async (way, where) => {
      const contact = await make(uidOf('contact'), { email: newEmail() });
      const deal = await make(uidOf('deal'), { title: 'linked' });
      const events = await overlap(
        documents(uidOf('deal'), 'update', {
          documentId: deal.documentId,
          data: { contact: contact.documentId },
        }),
        query(uidOf('contact'), way, { where: where(contact.id) }),
        older
      );
      const linked = events.filter(({ event }) => event === 'deal.updated');
      expect(linked.map(({ data }) => [data.changed, data.contact_id])).toEqual([
        [['contact_id'], contact.documentId],
        [['contact_id'], null],
      ]);
    });

    it('is untagged where the tag is deleted meanwhile', async () => {
      const slug = `slug-${(serial += 1)}`;
      const tag = await make(uidOf('tag'), { name: slug, slug });
      const { documentId } = await make(uidOf('contact'), { email: newEmail() });
      const events = await overlap(
        documents(uidOf('contact'), 'update', {
          documentId,
          data: { tags: { connect: [tag.documentId] } },
        }),
        documents(uidOf('tag'), 'delete', { documentId: tag.documentId }),
        older
      );
      expect(events.map(({ event }) => event)).toEqual(['contact.tagged', 'contact.untagged']);
    });

    it('is gone where its draft is deleted after the other one unpublished it', async () => {
      const { documentId } = await make(STORY, { headline: 'gone' });
      await site.control('documents', { uid: STORY, method: 'publish', params: { documentId } });
      const events = await overlap(
        documents(STORY, 'unpublish', { documentId }),
        documents(STORY, 'delete', { documentId }),
        older
      );
      expect(events.map(({ event }) => event)).toEqual(['entry.unpublished', 'company.deleted']);
    });
  });
});
