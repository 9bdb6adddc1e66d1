import { createAdminRole, createAdminUser } from '../support/accounts';
import { databases, describeEach, itOnce } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { CRM, inCode } from './crm-helpers';

const READ = 'plugin::content-manager.explorer.read';
const CONTACT = 'plugin::switchboard.contact';

describeEach(databases(), 'exporting contacts', (database) => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({
      database,
      options: { webhooks: { dispatch: false } },
      setupFiles: [require.resolve('../support/handlers/contact-conditions.js')],
    });
  }, 180_000);
  afterAll(() => site?.stop(), 60_000);

  const exported = (query = '', as?: { token: string }) =>
    site.request('GET', `/switchboard/contacts/export${query}`, { ...(as && { as }) });
  const upload = (csv: string) =>
    site.request('POST', '/switchboard/contacts/import', {
      body: Buffer.from(csv),
      headers: { 'content-type': 'text/csv' },
    });
  const all = async () => {
    const { body } = await site.request('GET', `${CRM}/contacts?per_page=100`);
    const rows = body.data as Record<string, unknown>[];
    return Promise.all(
      rows.map(async ({ id, dates: _dates, ...contact }) => {
        const tags = await site.request('GET', `${CRM}/tags?contact_id=${String(id)}`);
        return { ...contact, tags: tags.body.data.map(({ name }: { name: string }) => name) };
      })
    );
  };
  const user = async (properties: object, conditions: string[] = []) => {
    const role = await createAdminRole(site, [
      { action: READ, subject: CONTACT, properties, conditions } as never,
    ]);
    return { token: (await createAdminUser(site, { role })).token };
  };

  it('writes a file that the import reads back without loss', async () => {
    const hard = [
      '=HYPERLINK("http://evil.test","x")',
      '+49 30 123',
      '-1+1',
      '@SUM(A1)',
      '＝1+1',
      "'=quoted",
      "''twice",
      'two\nlines',
      'three\r\nlines, "so" said; she',
      'ümläut | 漢字',
      '{"json":1}',
    ];
    const company = await inCode(site, 'company').create({ name: 'Firm' });
    await inCode(site, 'tag').create({ name: '=VIP', slug: 'vip' });
    await inCode(site, 'tag').create({ name: 'a;b', slug: 'a-b' });
    const tags = (await site.request('GET', `${CRM}/tags`)).body.data as { id: string }[];
    for (const [index, text] of hard.entries()) {
      await inCode(site, 'contact').create({
        email: `hard${index}@x.test`,
        first_name: text,
        job_title: text,
        source: text,
        lifecycle_stage: 'lead',
        contact_status: index % 2 ? 'subscribed' : 'unsubscribed',
        score: -index,
        lifetime_value: 12.5,
        company: company.documentId,
        tags: index === 0 ? tags.map(({ id }) => id) : [],
        address: { city: text, zip: 10115 },
        fields: {
          text,
          ' spaced ': ' value ',
          'a,b;c;d;e;f;g;h;i': text,
          number: 5,
          no: false,
          list: [1, '2'],
          deep: { '=x': null },
        },
      });
    }
    const before = await all();
    const file = await exported();
    expect(file.status).toBe(200);
    expect(file.headers['content-type']).toBe('text/csv; charset=utf-8');
    expect(file.headers['content-disposition']).toContain('contacts.csv');
    expect(file.text.startsWith('\uFEFFemail,first_name,')).toBe(true);
    // No cell begins as a formula does; numbers are no texts.
    expect(file.text).not.toMatch(/(?:^|,)"?[=+@＝]/m);
    expect(file.text).toMatch(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/);

    const unchanged = await upload(file.text);
    expect(unchanged.body.data).toMatchObject({ total: 11, unchanged: 11, failed: 0 });
    const left = (await site.request('GET', `${CRM}/contacts?per_page=100`)).body.data;
    for (const { id } of left) await site.request('DELETE', `${CRM}/contacts/${id}`);
    const again = await upload(file.text);
    expect(again.body.data).toMatchObject({ total: 11, created: 11, failed: 0 });
    expect(await all()).toEqual(before);
  });

  itOnce(database)('exports the chosen and the filtered, and what matches a search', async () => {
    const emails = async (query: string) =>
      [...(await exported(query)).text.matchAll(/^([^,\r\n]*@x\.test)/gm)].map(([, one]) => one);
    const { body } = await site.request('GET', `${CRM}/contacts?email=hard3@x.test`);
    expect(await emails(`?ids=${body.data[0].id}`)).toEqual(['hard3@x.test']);
    expect(await emails('?filters[$and][0][email][$eq]=hard4@x.test')).toEqual(['hard4@x.test']);
    expect(
      await emails('?filters[tags][slug][$in][0]=vip&filters[tags][slug][$in][1]=a-b')
    ).toEqual(['hard0@x.test']);
    expect(await emails('?_q=hard5')).toEqual(['hard5@x.test']);
    expect(await emails('?ids=nobody')).toEqual([]);
  });

  itOnce(database)('refuses what it would have to guess', async () => {
    expect((await exported('?filters[nothing][$eq]=1')).status).toBe(400);
    expect((await exported('?filter=1')).status).toBe(400);
    expect((await exported('?filters=1')).status).toBe(400);
    expect((await exported('?filters[createdAt][$gt]=abc')).status).toBe(400);
    const bad = await upload('email,fields\nz@x.test,no json\ny@x.test,[1]\n');
    expect(bad.body.data).toMatchObject({ created: 0, failed: 2 });
  });

  it('names tags so that an import finds the ones that it means', async () => {
    const tags = [
      ['Dup', 'dup-2'],
      ['Dup', 'dup'],
      ['Guest', 'guest-2'],
      ['Best', 'guest'],
      ['x,y', 'xy'],
      ['xy', 'other'],
      ['Plain', 'plain'],
    ];
    const ids: string[] = [];
    for (const [name, slug] of tags) {
      ids.push((await inCode(site, 'tag').create({ name, slug })).documentId);
    }
    for (const [index, id] of ids.entries()) {
      await inCode(site, 'contact').create({ email: `tagged${index}@x.test`, tags: [id] });
    }
    const before = await inCode(site, 'tag').query('count', {});
    const { text } = await exported('?filters[email][$startsWith]=tagged');
    expect(text).toMatch(/tagged6@x.test,.*Plain/);
    const { body } = await upload(text);
    expect(body.data).toMatchObject({ total: 7, unchanged: 7 });
    expect(await inCode(site, 'tag').query('count', {})).toBe(before);
    for (const index of ids.keys()) {
      const { body: found } = await site.request(
        'GET',
        `${CRM}/contacts?email=tagged${index}@x.test`
      );
      await site.request('DELETE', `${CRM}/contacts/${found.data[0].id}`);
    }
    expect((await upload(text)).body.data).toMatchObject({ created: 7, failed: 0 });
    for (const [index, id] of ids.entries()) {
      const [row] = await inCode(site, 'contact').query('findMany', {
        where: { email: `tagged${index}@x.test` },
        populate: ['tags'],
      });
      expect(row.tags.map((tag: { documentId: string }) => tag.documentId)).toEqual([id]);
    }
  });

  itOnce(database)('writes bags of any form whole', async () => {
    const fields = JSON.parse('{"__proto__":5,"a":"b"}') as object;
    const made = [
      await inCode(site, 'contact').create({ email: 'list@x.test', address: ['x'], fields }),
      await inCode(site, 'contact').create({ email: 'text@x.test', address: 'x y' }),
    ];
    const ids = made.map(({ documentId }) => documentId).join();
    const [header = '', ...lines] = (await exported(`?ids=${ids}`)).text.trim().split('\r\n');
    expect(header).not.toContain('address.0');
    expect(lines[0]).toContain('"[""x""]"');
    expect(lines[0]).toContain('"{""__proto__"":5}"');
    expect(lines[1]).toContain('"'.repeat(3) + 'x y' + '"'.repeat(3));
  });

  itOnce(database)('exports a contact without an address, which an import refuses', async () => {
    const { documentId } = await inCode(site, 'contact').create({ first_name: 'Nobody' });
    const file = await exported(`?ids=${documentId}`);
    expect(file.text).toContain('\r\n,Nobody,');
    const { body } = await upload(file.text);
    expect(body.data).toMatchObject({ failed: 1, issues: [{ message: 'email: is missing' }] });
  });

  itOnce(database)('shows what the content manager shows the user', async () => {
    const role = await createAdminRole(site, ['plugin::switchboard.crm.read']);
    const { token } = await createAdminUser(site, { role });
    expect((await exported('', { token })).status).toBe(403);
    expect(
      (await site.request('GET', '/switchboard/contacts/export', { as: 'nobody' })).status
    ).toBe(401);
    const some = await exported('', await user({ fields: ['email', 'tags', 'trashed_at'] }));
    expect(some.status).toBe(200);
    const [header = '', first] = some.text.slice(1).split('\r\n');
    expect(header.split(',')).toEqual(
      expect.arrayContaining(['email', 'tags', 'id', 'created_at'])
    );
    expect(header).not.toMatch(/name|phone|status|fields|address|score|subscribed/);
    expect(first).toContain("'=VIP;a-b");
    expect(some.text).not.toContain('Nobody');
    const guess = '?filters[phone][$startsWith]=1';
    // As in the list of the content manager: a filter of a field that the user may not read does nothing.
    const guesser = await user({ fields: ['email'] });
    expect((await exported(guess, guesser)).text).toBe((await exported('', guesser)).text);
    const creator = await user({ fields: ['email'] }, ['admin::is-creator']);
    expect((await exported('', creator)).text.trim().split('\r\n')).toHaveLength(1);

    const ofOwn = await createAdminRole(site, [
      {
        action: 'plugin::content-manager.explorer.create',
        subject: CONTACT,
        properties: { fields: ['email', 'first_name'] },
      } as never,
      {
        action: READ,
        subject: CONTACT,
        properties: { fields: ['email', 'first_name'] },
        conditions: ['admin::is-creator'],
      } as never,
    ]);
    const own = await createAdminUser(site, { role: ofOwn });
    const made = await site.request('POST', `/content-manager/collection-types/${CONTACT}`, {
      body: { email: 'mine@x.test', first_name: 'Mine' },
      as: own,
    });
    expect(made).toMatchObject({ status: 201 });
    const lines = (await exported('', own)).text.trim().split('\r\n');
    expect(lines).toEqual([
      expect.stringContaining('email,'),
      expect.stringMatching(/^mine@x.test,Mine,/),
    ]);
  });

  itOnce(database)('judges each role by its own conditions', async () => {
    const secret = await inCode(site, 'company').create({ name: 'Secret' });
    await inCode(site, 'contact').create({
      email: 'closed@x.test',
      phone: '111',
      company: secret.documentId,
    });
    await inCode(site, 'contact').create({ email: 'open@x.test', phone: '222' });
    const read = (field: string, conditions: string[]) =>
      ({ action: READ, subject: CONTACT, properties: { fields: [field] }, conditions }) as never;
    const role = await createAdminRole(site, [read('email', [])]);
    const more = [await createAdminRole(site, [read('phone', ['api::no-secret-company'])])];
    const both = await createAdminUser(site, { role, more });
    const { text } = await exported(
      '?filters[email][$in][0]=closed@x.test&filters[email][$in][1]=open@x.test',
      both
    );
    expect(text).toMatch(/open@x.test,222/);
    expect(text).toContain('closed@x.test');
    expect(text).not.toContain('111');
  });

  itOnce(database)('writes many contacts a page at a time', async () => {
    await site.evaluate(async ({ strapi }) => {
      const rows = Array.from({ length: 1234 }, (_one, index) => ({
        documentId: `many${index}`,
        first_name: 'Many',
        fields: { [`f${index}`]: 'x' },
      }));
      for (let at = 0; at < rows.length; at += 50) {
        await strapi.db
          .query('plugin::switchboard.contact')
          .createMany({ data: rows.slice(at, at + 50) });
      }
    });
    const { text } = await exported('?filters[first_name][$eq]=Many');
    const lines = text.trim().split('\r\n');
    expect(lines).toHaveLength(1235);
    // The import takes 200 columns: the rest is in one of them.
    expect((lines[0] ?? '').split(',').length).toBeLessThanOrEqual(200);
    expect(text).toContain('"{""f1233"":""x""}"');
  });
});
