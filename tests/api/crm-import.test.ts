import { createAdminRole, createAdminUser } from '../support/accounts';
import { describeEach, databases, itOnce } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { CRM, type EventLog, inCode, names, openEventLog } from './crm-helpers';

describeEach(databases(), 'importing contacts', (database) => {
  let site: Site;
  let log: EventLog;
  beforeAll(async () => {
    site = await startSite({ database, options: { webhooks: { dispatch: false } } });
    log = await openEventLog(site);
  }, 180_000);
  afterAll(() => site?.stop(), 60_000);

  const upload = (csv: string, headers: Record<string, string> = {}, as?: { token: string }) =>
    site.request('POST', '/switchboard/contacts/import', {
      body: Buffer.from(csv),
      headers: { 'content-type': 'text/csv', ...headers },
      timeoutMs: 300_000,
      ...(as && { as }),
    });
  const contact = async (email: string) =>
    (await site.request('GET', `${CRM}/contacts?email=${email}`)).body.data[0];

  it('makes contacts with their tags, in one event each, from the source import', async () => {
    const { status, body } = await upload(
      'Email;First Name;tags;fields.size;score\n' +
        'ada@x.test;Ada;VIP|New;XL;5\n' +
        'bea@x.test;Bea;vip;;\n' +
        'cyd@x.test;;;;\n'
    );
    expect(status).toBe(200);
    const counts = { total: 3, created: 3, updated: 0, unchanged: 0, failed: 0, issues: [] };
    expect(body.data).toMatchObject({ ...counts, state: 'done', dry_run: false });
    const events = await log.take();
    expect(names(events).sort()).toEqual([
      ...Array(3).fill('contact.created'),
      ...Array(3).fill('contact.tagged'),
    ]);
    const ada = await contact('ada@x.test');
    expect(ada).toMatchObject({
      first_name: 'Ada',
      source: 'import',
      score: 5,
      fields: { size: 'XL' },
    });
    const tagged = events.filter(({ event }) => event === 'contact.tagged');
    expect(tagged.map(({ data }) => [data.contact.email, data.tag.name, data.source])).toEqual([
      ['ada@x.test', 'VIP', 'import'],
      ['ada@x.test', 'New', 'import'],
      ['bea@x.test', 'VIP', 'import'],
    ]);
    const tags = await site.request('GET', `${CRM}/tags?contact_id=${ada.id}`);
    expect(tags.body.data.map(({ slug }: { slug: string }) => slug)).toEqual(['vip', 'new']);
  });

  it('completes who is known, empties nothing, and tells what did not change', async () => {
    const { body } = await upload(
      'email,first_name,phone,tags\nADA@x.test,,123,VIP\nbea@x.test,Bea,,\nada@X.test,Ada,123,\n'
    );
    expect(body.data).toMatchObject({ total: 3, updated: 1, unchanged: 2, failed: 0 });
    const events = await log.take();
    expect(events.map(({ event, data }) => [event, data.changed])).toEqual([
      ['contact.updated', ['phone']],
    ]);
    expect((await contact('ada@x.test')).first_name).toBe('Ada');
  });

  itOnce(database)('subscribes nobody again who withdrew', async () => {
    await inCode(site, 'contact').create({ email: 'gone@x.test', contact_status: 'unsubscribed' });
    await inCode(site, 'contact').create({ email: 'here@x.test' });
    await log.take();
    await upload('email,status\ngone@x.test,subscribed\nhere@x.test,subscribed\n');
    expect(names(await log.take())).toEqual(['contact.updated', 'contact.subscribed']);
    expect((await contact('gone@x.test')).status).toBe('unsubscribed');
  });

  itOnce(database)('touches nobody who is in the bin, and says so', async () => {
    const { documentId } = await inCode(site, 'contact').create({
      email: 'binned@x.test',
      trashed_at: new Date().toISOString(),
    });
    await log.take();
    const csv = 'email,first_name\nBinned@x.test,Bin\nbeside@x.test,Bea\n';
    for (const query of ['?dry_run=true', '']) {
      const { body } = await site.request('POST', `/switchboard/contacts/import${query}`, {
        body: Buffer.from(csv),
        headers: { 'content-type': 'text/csv' },
      });
      expect(body.data).toMatchObject({ created: 1, updated: 0, failed: 1 });
      expect(body.data.issues).toEqual([
        {
          line: 2,
          email: 'Binned@x.test',
          message: 'email: belongs to a contact that is in the bin',
        },
      ]);
    }
    expect(names(await log.take())).toEqual(['contact.created']);
    const { body } = await site.request('GET', `${CRM}/contacts/${documentId}`);
    expect(body.first_name).toBeNull();
  });

  it('reports each row that failed, with its line, and imports the others', async () => {
    const { body } = await upload(
      'email,score,company_id,owner_id\n' +
        'one@x.test,1,,\n' +
        'nobody,1,,\n' +
        ',1,,\n' +
        'two@x.test,lots,,\n' +
        'three@x.test,1,nowhere,\n' +
        'four@x.test,1,,99\n' +
        'five@x.test,1,,1\n'
    );
    expect(body.data).toMatchObject({ total: 7, created: 2, failed: 5 });
    expect(
      body.data.issues.map(({ line, message }: { line: number; message: string }) => [
        line,
        message.split(':')[0],
      ])
    ).toEqual([
      [3, 'email'],
      [4, 'email'],
      [5, 'score'],
      [6, 'company_id'],
      [7, 'owner_id'],
    ]);
    expect((await contact('five@x.test')).owner_id).toBe(1);
    await log.take();
  });

  itOnce(database)('keeps what came before a fault of the file, and names it', async () => {
    const { status, body } = await upload('email,phone\nkept@x.test,\n"never closed\n');
    expect(status).toBe(200);
    expect(body.data).toMatchObject({ total: 2, created: 1, failed: 1 });
    expect(body.data.issues[0].message).toMatch(/quote/i);
    await log.take();
  });

  itOnce(database).each([
    ['', 'the file is empty'],
    ['first_name\nAda\n', 'no column "email"'],
    ['email,colour\na@x.test,red\n', 'unknown columns: colour'],
  ])('%j imports nothing and says why', async (csv, message) => {
    const { status, body } = await upload(csv);
    expect(status).toBe(400);
    expect(body.error.message).toContain(message);
    expect(await log.take()).toEqual([]);
  });

  itOnce(database)('takes text/csv only, and only from those who may', async () => {
    expect((await upload('email\n', { 'content-type': 'application/json' })).status).toBe(400);
    const role = await createAdminRole(site, ['plugin::switchboard.crm.read']);
    const user = await createAdminUser(site, { role });
    expect((await upload('email\nx@x.test\n', {}, { token: user.token })).status).toBe(403);
  });

  it('changes the known and makes the new, whatever their order in the file', async () => {
    await upload(
      'email,phone,address.city,address.zip,tags\n' +
        'kim@x.test,1,Bonn,53111,north\nlou@x.test,1,,,\nmia@x.test,1,,,\n'
    );
    await log.take();
    const { body } = await upload(
      'email,phone,status,address.city,tags\n' +
        'KIM@x.test,2,subscribed,Köln,\n' +
        'lou@x.test,1,,,north\n' +
        'mia@x.test,1,,,\n' +
        'kim@x.test,3,,,\n' +
        'ned@x.test,1,,,\n' +
        'kim@x.test,3,,Köln,NORTH\n' +
        'ned@x.test,2,,,\n'
    );
    expect(body.data).toMatchObject({ total: 7, created: 1, updated: 4, unchanged: 2, failed: 0 });
    const kim = await contact('kim@x.test');
    expect(kim).toMatchObject({
      phone: '3',
      status: 'subscribed',
      address: { city: 'Köln', zip: '53111' },
    });
    expect(kim.dates.subscribed_at).toEqual(expect.any(String));
    expect(kim.dates.updated_at > kim.dates.created_at).toBe(true);
    const events = (await log.take()).map(({ event, data }) => [
      event,
      (data.contact ?? data).email,
      data.changed ?? data.tag?.slug,
    ]);
    const of = (email: string) => events.filter(([, of]) => of === email);
    expect(of('kim@x.test')).toEqual([
      ['contact.updated', 'kim@x.test', ['phone', 'status', 'address']],
      ['contact.subscribed', 'kim@x.test', undefined],
      ['contact.updated', 'kim@x.test', ['phone']],
    ]);
    expect(of('lou@x.test')).toEqual([['contact.tagged', 'lou@x.test', 'north']]);
    expect(of('ned@x.test').map(([event]) => event)).toEqual([
      'contact.created',
      'contact.updated',
    ]);
    expect(events).toHaveLength(6);
  });

  it('changes an owner or a company that differs, and writes nothing where they do not', async () => {
    const { body: company } = await site.request('POST', `${CRM}/companies`, {
      body: { name: 'Acme' },
    });
    const csv = `email,company_id,owner_id\nola@x.test,${company.id},1\n`;
    await upload('email\nola@x.test\n');
    await log.take();
    expect((await upload(csv)).body.data).toMatchObject({ updated: 1, unchanged: 0 });
    expect(names(await log.take())).toEqual(['contact.updated']);
    expect((await upload(csv)).body.data).toMatchObject({ updated: 0, unchanged: 1 });
    expect(await log.take()).toEqual([]);
    expect(await contact('ola@x.test')).toMatchObject({ company_id: company.id, owner_id: 1 });
  });
});
