import { databases, describeEach } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { sleep } from '../support/wait';
import { CRM, type EventLog, inCode, openEventLog } from './crm-helpers';

interface Job {
  id: number;
  state: string;
  rows: number;
  total: number;
  created: number;
  updated: number;
  unchanged: number;
  failed: number;
  issues: { line: number; message: string }[];
}

describeEach(databases(), 'a file of contacts that comes again', (database) => {
  let site: Site;
  let log: EventLog;
  let company: string;
  beforeAll(async () => {
    site = await startSite({ database, options: { webhooks: { dispatch: false } } });
    log = await openEventLog(site);
    const { body } = await site.request('POST', `${CRM}/companies`, { body: { name: 'Acme' } });
    company = body.id;
    await log.take();
  }, 180_000);
  afterAll(() => site?.stop(), 60_000);

  const upload = async (csv: string, query = ''): Promise<Job> => {
    const { status, body } = await site.request(
      'POST',
      `/switchboard/contacts/import?wait=true${query}`,
      { body: Buffer.from(csv), headers: { 'content-type': 'text/csv' }, timeoutMs: 120_000 }
    );
    expect([status, body.error]).toEqual([200, undefined]);
    return body.data;
  };
  const fileOf = (name: string, rows: number): string =>
    `email,first_name,company_id,tags\n${Array.from(
      { length: rows },
      (_none, at) => `${name}${at}@x.test,Ann ${at},${company},${name}|Tag ${at % 5}\n`
    ).join('')}`;
  const countOf = (where: object): Promise<number> =>
    site.control('query', {
      uid: 'plugin::switchboard.contact',
      method: 'count',
      params: { where },
    });
  /** Every contact once, with its company and tags, and each of its events once. */
  const expectOnce = async (name: string, rows: number): Promise<void> => {
    const where = { email: { $startsWith: name } };
    expect(await countOf(where)).toBe(rows);
    expect(await countOf({ ...where, company: { documentId: company } })).toBe(rows);
    expect(await countOf({ ...where, tags: { slug: name } })).toBe(rows);
    const seen = (await log.take()).map(({ event, data }) =>
      [event, (data.contact ?? data).email, data.tag?.name].join(' ')
    );
    const created = seen.filter((one) => one.startsWith('contact.created '));
    const tagged = seen.filter((one) => one.startsWith('contact.tagged '));
    expect([created.length, tagged.length, seen.length]).toEqual([rows, rows * 2, rows * 3]);
    expect(new Set(seen).size).toBe(rows * 3);
  };

  it('is tried with the answer of the import, row by row, and nothing is written', async () => {
    const contacts = inCode(site, 'contact');
    await contacts.create({ email: 'bin@x.test', trashed_at: new Date().toISOString() });
    await contacts.create({ email: 'gone@x.test', contact_status: 'unsubscribed' });
    await contacts.create({ email: 'known@x.test', first_name: 'Kim', company });
    await log.take();
    const csv =
      'email,first_name,status,score,lifetime_value,company_id,owner_id,tags,fields.size,address.city\n' +
      // New, and then: the same, in another way, by a tag's slug, with a default, more of a bag.
      `new@x.test,Ann,,5,1.5,${company},1,Big Fish|VIP,XL,Bonn\n` +
      `NEW@x.test,Ann,,5,1.5,${company},1,vip,XL,Bonn\n` +
      'new@x.test,Anna,,,,,,,,\n' +
      'new@x.test,,,,,,,big-fish,,\n' +
      'new@x.test,,subscribed,,,,,,,\n' +
      'new@x.test,,subscribed,,,,,Third,M,\n' +
      'late@x.test,,unsubscribed,,,,,,,\n' +
      'late@x.test,,subscribed,,,,,,,\n' +
      // Known: unchanged, changed, unchanged again.
      `known@x.test,Kim,,,,${company},,,,\n` +
      'known@x.test,,,7,,,1,VIP,,\n' +
      'known@x.test,,,7,,,1,vip,,\n' +
      'gone@x.test,,subscribed,,,,,,,\n' +
      // Wrong, for reasons of each kind.
      'BIN@x.test,Bo,,,,,,,,\n' +
      'nobody,,,,,,,,,\n' +
      'one@x.test,,,,,nowhere,,,,\n' +
      'one@x.test,,,,,nowhere,99,,,\n' +
      'one@x.test,,,,,,99,,,\n' +
      `two@x.test,,,,,,,${'ß'.repeat(255)},,\n` +
      'known@x.test,,,,,nowhere,,,,\n' +
      'one@x.test,,,1,,,,,,\n';
    const before = await site.request('GET', `${CRM}/tags`);
    const tried = [await upload(csv, '&dry_run=true'), await upload(csv, '&dry_run=true')];
    expect((await site.request('GET', `${CRM}/tags`)).body).toEqual(before.body);
    expect(await log.take()).toEqual([]);
    const done = await upload(csv);
    const saidOf = ({ rows, total, created, updated, unchanged, failed, issues }: Job) => {
      return { rows, total, created, updated, unchanged, failed, issues };
    };
    for (const one of tried) expect(saidOf(one)).toEqual(saidOf(done));
    expect(done).toMatchObject({ rows: 20, total: 20, created: 3, failed: 7 });
    expect(done.issues.map(({ line }) => line)).toEqual([14, 15, 16, 17, 18, 19, 20]);
    // A dry run takes no id either.
    const [{ id: last }] = await site.control('query', {
      uid: 'plugin::switchboard.contact',
      method: 'findMany',
      params: { orderBy: { id: 'desc' }, limit: 1 },
    });
    expect(last).toBe(await countOf({}));
    expect((await upload(csv, '&dry_run=true')).created).toBe(0);
    await log.take();
  });

  it('takes the tag that another writer creates between its looks for the name and for a slug', async () => {
    await site.evaluate(({ strapi }) => {
      const uids = strapi.plugin('content-manager').service('uid');
      const generate = uids.generateUIDField;
      uids.generateUIDField = async (of: { data: { name: string } }) => {
        uids.generateUIDField = generate;
        const data = { name: of.data.name, slug: of.data.name };
        await strapi.documents('plugin::switchboard.tag').create({ data });
        return generate.call(uids, of);
      };
    });
    expect(await upload('email,tags\nbetween@x.test,between\n')).toMatchObject({ created: 1 });
    const { body } = await site.request('GET', `${CRM}/tags?per_page=100`);
    const named = body.data.filter(({ name }: { name: string }) => name === 'between');
    expect(named).toMatchObject([{ slug: 'between' }]);
    await log.take();
  });

  it('makes each contact once, if two come at the same time', async () => {
    const csv = fileOf('both', 600);
    const [one, other] = await Promise.all([upload(csv), upload(csv)]);
    expect([one.failed, other.failed, one.created + other.created]).toEqual([0, 0, 600]);
    await expectOnce('both', 600);
  });

  it('is completed, if the process was killed in its middle', async () => {
    const csv = fileOf('kill', 3_000);
    const { status, body } = await site.request('POST', '/switchboard/contacts/import?wait=false', {
      body: Buffer.from(csv),
      headers: { 'content-type': 'text/csv' },
    });
    expect([status, body.data.rows, body.data.state]).toEqual([202, 3_000, 'running']);
    let job: Job = body.data;
    while (job.total < 400) {
      await sleep(5);
      job = (await site.request('GET', `/switchboard/imports/${job.id}`)).body.data;
    }
    await site.kill();
    await site.restart();
    const written = await countOf({ email: { $startsWith: 'kill' } });
    expect([written > 0, written < 3_000]).toEqual([true, true]);
    const again = await upload(csv);
    expect(again).toMatchObject({ created: 3_000 - written, unchanged: written, failed: 0 });
    await expectOnce('kill', 3_000);
  }, 180_000);
});
