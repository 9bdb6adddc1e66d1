import { anyDatabase, describeEach } from '../support/databases';
import { type EntrySite, lineOf, NOTICE, STORY, useEntrySite, WRITER } from './entries-support';

describeEach(anyDatabase(), 'entries of the site as events', (database) => {
  let at: EntrySite;
  useEntrySite(database, [STORY, WRITER, NOTICE], (site) => (at = site));

  const draft = async (data: object = {}) =>
    (await at.documents(STORY, 'create', { data: { headline: 'One', ...data } }))
      .documentId as string;
  const published = async (data: object = {}) => {
    const documentId = await draft(data);
    await at.documents(STORY, 'publish', { documentId });
    await at.log.take();
    return documentId;
  };
  const writer = async (data: object = {}) =>
    (await at.documents(WRITER, 'create', { data: { name: 'Ada', ...data } })).documentId as string;

  describe('without draft and publish', () => {
    it('tells of creating, changing and deleting, with the entry as REST shows it', async () => {
      const documentId = await writer({
        diary: 'private',
        home: { city: 'Ghent', alarmCode: '1' },
      });
      const [created, ...others] = await at.log.take();
      expect(others).toEqual([]);
      const rest = await at.site.request('GET', `/api/writers/${documentId}?populate=*`);
      expect(created).toEqual({
        event: 'entry.created',
        data: {
          content_type: WRITER,
          locale: null,
          status: 'published',
          entry: { ...rest.body.data, stories: [] },
        },
      });
      expect(created!.data.entry.home).toEqual({
        id: expect.any(Number),
        street: null,
        city: 'Ghent',
      });

      await at.documents(WRITER, 'update', { documentId, data: { born: '1815-12-10' } });
      const [updated] = await at.log.take();
      expect(updated).toMatchObject({
        event: 'entry.updated',
        data: { entry: { documentId, born: '1815-12-10', name: 'Ada' }, changed: ['born'] },
      });

      await at.documents(WRITER, 'delete', { documentId });
      expect(await at.log.take()).toMatchObject([
        {
          event: 'entry.deleted',
          data: { entry: { documentId, name: 'Ada', home: { city: 'Ghent' } } },
        },
      ]);
    });

    it('is silent where nothing differs, or only what is private', async () => {
      const documentId = await writer();
      await at.log.take();
      await at.documents(WRITER, 'update', { documentId, data: { name: 'Ada' } });
      await at.documents(WRITER, 'update', { documentId, data: { diary: 'secret' } });
      expect(await at.said()).toEqual([]);
    });

    it('compares components by what they say, not by their rows', async () => {
      const documentId = await writer({ home: { city: 'Ghent' } });
      await at.log.take();
      await at.documents(WRITER, 'update', { documentId, data: { home: { city: 'Ghent' } } });
      expect(await at.said()).toEqual([]);
      await at.documents(WRITER, 'update', { documentId, data: { home: { city: 'Bruges' } } });
      await at.documents(WRITER, 'update', { documentId, data: { home: null } });
      expect(await at.said()).toEqual(['updated [home]', 'updated [home]']);
    });

    it('hears the query engine, single and bulk, one event an entry', async () => {
      const { id, documentId } = await at.query(WRITER, 'create', { data: { name: 'Q' } });
      await at.query(WRITER, 'update', { where: { id }, data: { name: 'R' } });
      await at.query(WRITER, 'update', { where: { id }, data: { diary: 'x' } });
      await at.query(WRITER, 'delete', { where: { documentId } });
      expect(await at.said()).toEqual(['created', 'updated [name]', 'deleted']);

      const data = Array.from({ length: 450 }, (_, index) => ({ name: `Bulk ${index}` }));
      await at.query(WRITER, 'createMany', { data });
      const where = { name: { $startsWith: 'Bulk' } };
      await at.query(WRITER, 'updateMany', { where, data: { born: '2000-01-01' } });
      await at.query(WRITER, 'deleteMany', { where });
      const events = await at.log.take();
      const named = (event: string) =>
        new Set(
          events.filter((one) => one.event === event).map(({ data: { entry } }) => entry.documentId)
        ).size;
      expect(events).toHaveLength(1350);
      expect(['created', 'updated', 'deleted'].map((one) => named(`entry.${one}`))).toEqual([
        450, 450, 450,
      ]);
    }, 60_000);

    it('tells of a clone as created', async () => {
      const documentId = await writer({ home: { city: 'Ghent' } });
      await at.log.take();
      const { documentId: clone } = await at.documents(WRITER, 'clone', { documentId });
      expect(await at.log.take()).toMatchObject([
        { event: 'entry.created', data: { entry: { documentId: clone, home: { city: 'Ghent' } } } },
      ]);
    });
  });

  describe('with draft and publish', () => {
    it('is silent for drafts, and tells of publishing, with what differs from before', async () => {
      const documentId = await draft({ teaser: 'T', stops: [{ day: 1, place: { city: 'A' } }] });
      await at.documents(STORY, 'update', { documentId, data: { rank: 3 } });
      expect(await at.said()).toEqual([]);

      await at.documents(STORY, 'publish', { documentId });
      const [first] = await at.log.take();
      expect(first).toMatchObject({
        event: 'entry.published',
        data: {
          content_type: STORY,
          locale: 'en',
          status: 'published',
          entry: { documentId, headline: 'One', teaser: 'T', rank: 3, locale: 'en' },
          changed: ['headline', 'teaser', 'rank', 'stops'],
        },
      });
      expect(Object.keys(first!.data.entry)).toEqual(
        expect.not.arrayContaining(['editorsNote', 'password', 'createdBy', 'localizations'])
      );

      await at.documents(STORY, 'publish', { documentId });
      await at.documents(STORY, 'update', {
        documentId,
        data: { headline: 'Two', stops: [{ day: 2, place: { city: 'A' } }], editorsNote: 'x' },
      });
      await at.documents(STORY, 'publish', { documentId });
      expect(await at.said()).toEqual(['published en []', 'published en [headline,stops]']);
    });

    it('tells of unpublishing and of deleting with what was published last', async () => {
      const documentId = await published();
      await at.documents(STORY, 'update', { documentId, data: { headline: 'A newer draft' } });
      await at.documents(STORY, 'unpublish', { documentId });
      expect(await at.log.take()).toMatchObject([
        { event: 'entry.unpublished', data: { status: 'published', entry: { headline: 'One' } } },
      ]);
      await at.documents(STORY, 'publish', { documentId });
      await at.log.take();
      await at.documents(STORY, 'delete', { documentId });
      expect(await at.log.take()).toMatchObject([
        {
          event: 'entry.deleted',
          data: { status: 'published', entry: { headline: 'A newer draft' } },
        },
      ]);
    });

    it('creates and publishes in one call, discards and deletes drafts in silence', async () => {
      const { documentId } = await at.documents(STORY, 'create', {
        data: { headline: 'At once' },
        status: 'published',
      });
      await at.documents(STORY, 'update', {
        documentId,
        data: { headline: 'Twice' },
        status: 'published',
      });
      expect(await at.said()).toEqual(['published en [headline]', 'published en [headline]']);
      await at.documents(STORY, 'update', { documentId, data: { headline: 'Draft' } });
      await at.documents(STORY, 'discardDraft', { documentId });
      await at.documents(STORY, 'clone', { documentId });
      await at.documents(STORY, 'delete', { documentId: await draft() });
      expect(await at.said()).toEqual([]);
    });

    it('tells of a published row that is written as updated', async () => {
      const documentId = await published();
      const where = { documentId, publishedAt: { $notNull: true } };
      await at.query(STORY, 'update', { where, data: { rank: 9 } });
      await at.query(STORY, 'updateMany', { where: { documentId }, data: { mood: 'loud' } });
      expect(await at.said()).toEqual(['updated en [rank]', 'updated en [mood]']);
      await at.query(STORY, 'delete', { where });
      expect(await at.said()).toEqual(['unpublished en']);
    });

    it('compares dynamic zones and shows relations as document ids', async () => {
      const author = await writer();
      const body = [
        { __component: 'shared.quote', words: 'Yes', source: { documentId: author } },
        { __component: 'shared.place', city: 'Ghent' },
      ];
      const documentId = await draft({ body, writer: author });
      await at.log.take();
      await at.documents(STORY, 'publish', { documentId });
      const [first] = await at.log.take();
      expect(first!.data.entry).toMatchObject({
        writer: { documentId: author },
        body: [
          {
            __component: 'shared.quote',
            words: 'Yes',
            source: { documentId: author },
            picture: null,
          },
          { __component: 'shared.place', city: 'Ghent' },
        ],
      });
      expect(first!.data.entry.writer).toEqual({ documentId: author });
      expect(first!.data.entry.body[1]).not.toHaveProperty('alarmCode');
      await at.documents(STORY, 'update', { documentId, data: { body: [body[1], body[0]] } });
      await at.documents(STORY, 'publish', { documentId });
      expect(await at.said()).toEqual(['published en [body]']);
    });

    it('is what a full-access token sees over REST, files in full', async () => {
      const form = new FormData();
      form.append('files', new Blob(['Hello'], { type: 'text/plain' }), 'note.txt');
      const uploaded = await fetch(`${at.site.url}/upload`, {
        method: 'POST',
        headers: { authorization: `Bearer ${at.site.adminToken}` },
        body: form,
      });
      const [file] = (await uploaded.json()) as { id: number }[];
      const documentId = await draft({
        mood: 'calm',
        startsAt: '2026-05-01T10:00:00.000Z',
        password: 'hidden',
        cover: file!.id,
        gallery: [file!.id],
        place: { street: 'Quay 1', alarmCode: '1' },
        stops: [{ day: 1, place: { city: 'A' } }],
        sharedPlace: { city: 'B' },
        body: [{ __component: 'shared.quote', words: 'Yes', picture: file!.id }],
      });
      await at.documents(STORY, 'publish', { documentId });
      const [told] = await at.log.take();
      const populate = ['cover', 'gallery', 'place', 'sharedPlace']
        .map((name) => `populate[${name}]=true`)
        .concat('populate[stops][populate]=*', 'populate[body][populate]=*')
        .join('&');
      const rest = await at.site.request('GET', `/api/stories/${documentId}?${populate}`);
      expect(rest.body.data.cover).toMatchObject({ mime: 'text/plain' });
      expect(told!.data.entry).toEqual({ ...rest.body.data, writer: null, follows: [] });
    });

    it('has nothing changed where what it relates to was published meanwhile', async () => {
      const other = await published({ headline: 'Other' });
      const unseen = await draft({ headline: 'Unseen' });
      const documentId = await draft({ follows: [other, unseen] });
      await at.documents(STORY, 'publish', { documentId });
      const [first] = await at.log.take();
      expect(first!.data.entry.follows).toEqual([{ documentId: other }]);
      await at.documents(STORY, 'publish', { documentId: other });
      await at.documents(STORY, 'publish', { documentId });
      expect(await at.said()).toEqual(['published en []', 'published en []']);
    });

    it("is silent for an edit from a relation's other side", async () => {
      const documentId = await published();
      const author = await writer();
      await at.log.take();
      await at.documents(WRITER, 'update', {
        documentId: author,
        data: { stories: { connect: [documentId] } },
      });
      expect((await at.log.take()).map(({ data }) => [data.content_type, data.changed])).toEqual([
        [WRITER, ['stories']],
      ]);
    });
  });

  describe('in several languages', () => {
    it('tells of each language that is published, unpublished or deleted', async () => {
      const documentId = await draft();
      const fr = { documentId, locale: 'fr' };
      await at.documents(STORY, 'update', { ...fr, data: { headline: 'Un' } });
      await at.documents(STORY, 'publish', { documentId, locale: '*' });
      expect((await at.said()).sort()).toEqual([
        'published en [headline]',
        'published fr [headline]',
      ]);
      await at.documents(STORY, 'unpublish', fr);
      expect(await at.said()).toEqual(['unpublished fr']);
      await at.documents(STORY, 'publish', fr);
      await at.log.take();
      await at.documents(STORY, 'delete', fr);
      expect(await at.said()).toEqual(['deleted fr']);
      await at.documents(STORY, 'update', { ...fr, data: { headline: 'Un' } });
      await at.documents(STORY, 'publish', fr);
      await at.log.take();
      await at.documents(STORY, 'delete', { documentId, locale: '*' });
      expect((await at.said()).sort()).toEqual(['deleted en', 'deleted fr']);
    });

    it('tells of each language that a shared field changes, and of no other', async () => {
      const { documentId } = await at.documents(NOTICE, 'create', {
        data: { words: 'Hello', level: 1, place: { city: 'Ghent' } },
      });
      await at.documents(NOTICE, 'update', {
        documentId,
        locale: 'fr',
        data: { words: 'Bonjour' },
      });
      expect(await at.said()).toEqual(['created en', 'created fr']);
      await at.documents(NOTICE, 'update', { documentId, data: { words: 'Hello again' } });
      expect(await at.said()).toEqual(['updated en [words]']);
      await at.documents(NOTICE, 'update', { documentId, data: { level: 2, words: 'Hi' } });
      expect((await at.said()).sort()).toEqual(['updated en [words,level]', 'updated fr [level]']);
      await at.documents(NOTICE, 'update', {
        documentId,
        locale: 'fr',
        data: { place: { city: 'Lille' } },
      });
      const events = await at.log.take();
      expect(events.map(lineOf).sort()).toEqual(['updated en [place]', 'updated fr [place]']);
      expect(events.map(({ data }) => data.entry.place.city)).toEqual(['Lille', 'Lille']);
    });

    it('tells of a shared field that a publish changes in another language', async () => {
      const documentId = await draft({ sharedPlace: { city: 'Ghent' } });
      await at.documents(STORY, 'update', { documentId, locale: 'fr', data: { headline: 'Un' } });
      await at.documents(STORY, 'publish', { documentId, locale: '*' });
      await at.log.take();
      await at.documents(STORY, 'update', {
        documentId,
        data: { rank: 5, sharedPlace: { city: 'Bruges' } },
        status: 'published',
      });
      expect((await at.said()).sort()).toEqual([
        'published en [rank,sharedPlace]',
        'updated fr [rank,sharedPlace]',
      ]);
    });
  });

  describe('and the transaction', () => {
    it('sends nothing of what is rolled back', async () => {
      const documentId = await published();
      const author = await writer();
      await at.log.take();
      const documents = (uid: string, method: string, params: object) => ({
        op: 'documents',
        args: { uid, method, params },
      });
      await at.site.control('transaction', {
        steps: [
          documents(WRITER, 'create', { data: { name: 'Gone' } }),
          documents(WRITER, 'update', { documentId: author, data: { name: 'Gone' } }),
          documents(STORY, 'unpublish', { documentId }),
          {
            op: 'query',
            args: { uid: WRITER, method: 'createMany', params: { data: [{ name: 'a' }] } },
          },
        ],
        throw: 'rolled back',
        swallow: true,
      });
      expect(await at.said()).toEqual([]);
      expect(await at.documents(WRITER, 'findOne', { documentId: author })).toMatchObject({
        name: 'Ada',
      });
    });

    it('sends nothing where a lifecycle of the site refuses the write, and keeps no row', async () => {
      await at.site.evaluate(({ strapi }) => {
        strapi.db.lifecycles.subscribe({
          models: ['api::writer.writer'],
          afterCreate({ result }: { result: { name: string } }) {
            if (result.name === 'Refused') throw new Error('refused');
          },
        });
      });
      await expect(writer({ name: 'Refused' })).rejects.toThrow('refused');
      await expect(at.query(WRITER, 'create', { data: { name: 'Refused' } })).rejects.toThrow(
        'refused'
      );
      expect(await at.said()).toEqual([]);
      expect(await at.query(WRITER, 'count', { where: { name: 'Refused' } })).toBe(0);
    });

    it('compares a unit of work at its end, once', async () => {
      const author = await writer();
      await at.site.evaluate(({ strapi }) => {
        strapi.db.lifecycles.subscribe({
          models: ['api::writer.writer'],
          async afterUpdate({ result }: { result: { id: number; name: string; born: string } }) {
            if (result.name !== 'Twice' || result.born) return;
            await strapi.db
              .query('api::writer.writer')
              .update({ where: { id: result.id }, data: { born: '1900-01-01' } });
          },
        });
      });
      await at.log.take();
      await at.documents(WRITER, 'update', { documentId: author, data: { name: 'Twice' } });
      expect(await at.said()).toEqual(['updated [name,born]']);
    });
  });

  it('names the entry as the subject of its deliveries, and is found by it', async () => {
    const documentId = await writer({ name: 'Grace' });
    const path = '/api/fw-crm/v1/webhook-deliveries';
    const byId = await at.site.request('GET', `${path}?subject_id=${documentId}`);
    expect(byId.body.data.map(({ subject }: { subject: unknown }) => subject)).toEqual([
      { type: WRITER, id: documentId, label: 'Grace' },
    ]);
    const byBoth = await at.site.request(
      'GET',
      `${path}?subject_type=${WRITER}&subject_id=${documentId}`
    );
    expect(byBoth.body.data).toHaveLength(1);
    const other = await at.site.request('GET', `${path}?subject_type=no-type`);
    expect(other.status).toBe(400);
    await at.log.take();
  });
});
