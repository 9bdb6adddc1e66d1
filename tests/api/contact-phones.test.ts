import { databases, describeEach } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { admin, createTill } from './pos-till';
import { waitFor } from '../support/wait';

jest.setTimeout(120_000);

const CONTACT = 'plugin::switchboard.contact';
const CONTACTS = '/api/fw-crm/v1/contacts';

describeEach(databases(), 'phones of contacts', (database) => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({ database });
  });
  afterAll(() => site?.stop());

  /** The contact with a phone, as a till that sends it has it looked for. */
  const find = (phone: string): Promise<string | null> =>
    site.control('service', {
      uid: 'plugin::switchboard.customers',
      method: 'attach',
      args: [{ phone }, { create: false, country: 'GB' }],
    }) as Promise<string | null>;

  const make = async (fields: object): Promise<string> => {
    const { status, body } = await site.request('POST', CONTACTS, { body: fields });
    expect(status).toBe(201);
    return body.id;
  };

  const query = (method: string, params: object) =>
    site.evaluate(
      ({ strapi }, uid, name, given) => strapi.db.query(uid)[name](given),
      CONTACT,
      method,
      params
    );

  /** The statements on this table while something is done, without quotes. */
  const statementsOn = async (name: string, work: () => Promise<unknown>): Promise<string[]> => {
    await site.evaluate(({ strapi, state }) => {
      state.statements = [];
      state.listener = ({ sql }: { sql: string }) => state.statements.push(sql);
      strapi.db.connection.on('query', state.listener);
    });
    await work();
    const statements = await site.evaluate(({ strapi, state }): string[] => {
      strapi.db.connection.removeListener('query', state.listener);
      return state.statements;
    });
    return statements.map((sql) => sql.replace(/[`"]/g, '')).filter((sql) => sql.includes(name));
  };

  const digitsOf = (ids: string[]): Promise<string[]> =>
    site.evaluate(
      async ({ strapi }, documents) =>
        (
          await strapi.db
            .connection('switchboard_contact_phones')
            .whereIn('document_id', documents)
            .orderBy('digits')
        ).map(({ digits }: { digits: string }) => digits),
      ids
    );

  const setMark = (id: number) =>
    site.evaluate(
      ({ strapi }, uid, value) =>
        strapi.db
          .connection('switchboard_site')
          .where({ name: 'contact_phones' })
          // Begun long ago, so that all nodes keep it.
          .update({ value: `${uid}/phone/0/${value}` }),
      CONTACT,
      id
    );

  const mark = (): Promise<string | null> =>
    site.evaluate(
      async ({ strapi }) =>
        (await strapi.db.connection('switchboard_site').where({ name: 'contact_phones' }).first())
          ?.value ?? null
    );

  const run = (name: string) =>
    site.evaluate(({ strapi }, wanted) => {
      const found = strapi.cron.jobs.find(({ name: own }: { name: string }) => own === wanted);
      found.job.invoke();
    }, name);

  it('are in no index, and found all the same, while no connection attaches customers', async () => {
    const early = await make({ email: 'early@example.com', phone: '020 7946 0301' });
    expect(await digitsOf([early])).toEqual([]);
    expect(await find('+442079460301')).toBe(early);
    expect(await mark()).toBeNull();
  });

  it('are indexed from when a connection attaches customers, and walked once every node does so', async () => {
    const till = await createTill(site, { customers: 'ignore' });
    await run('switchboardContactPhones');
    await make({ email: 'ignored@example.com', phone: '020 7946 0302' });
    expect(await mark()).toBeNull();
    await admin(site, 'PUT', `/connections/${till.id}`, { customers: 'match' });
    await run('switchboardContactPhones');
    await waitFor(async () => (await mark()) !== null, 30_000, 'the index to begin');
    // Other nodes may not keep it yet.
    await run('switchboardContactPhones');
    const kept = await make({ email: 'kept@example.com', phone: '020 7946 0303' });
    expect(await digitsOf([kept])).toEqual(['460303']);
    expect(await mark()).toMatch(/\/phone\/\d{13}\/0$/);
    await setMark(0);
    await run('switchboardContactPhones');
    await waitFor(async () => !(await mark())?.endsWith('/0'), 30_000, 'contacts to be walked');
    expect(await find('+442079460301')).not.toBeNull();
  });

  it('are found by an index, in which only contacts are looked for that it has not reached', async () => {
    const id = await make({ email: 'a@example.com', phone: '020 7946 0018' });
    const read = await statementsOn('switchboard_contacts', async () => {
      expect(await find('+442079460018')).toBe(id);
    });
    expect(read.length).toBeGreaterThan(0);
    const scans = read.filter((sql) => /like/i.test(sql));
    expect(scans.filter((sql) => !/ id > /.test(sql))).toEqual([]);
  });

  it('are kept with every write, and cost one without a phone nothing', async () => {
    // Nothing is left to be looked through beside the index.
    await setMark(1_000_000_000);
    const one = await make({ email: 'one@example.com', phone: '(020) 7946-0101' });
    expect(await find('+442079460101')).toBe(one);
    const changed = await site.request('PUT', `${CONTACTS}/${one}`, {
      body: { phone: '+44 20 7946 0102' },
    });
    expect(changed.status).toBe(200);
    expect([await find('+442079460101'), await find('+442079460102')]).toEqual([null, one]);
    await query('createMany', {
      data: [{ email: 'm1@example.com', phone: '02079460103' }, { email: 'm2@example.com' }],
    });
    const [made] = (await query('findMany', { where: { email: 'm1@example.com' } })) as {
      documentId: string;
    }[];
    expect(await find('+442079460103')).toBe(made?.documentId);
    await query('updateMany', {
      where: { email: 'm1@example.com' },
      data: { phone: '02079460104' },
    });
    expect(await find('+442079460104')).toBe(made?.documentId);

    const written = await statementsOn('switchboard_contact_phones', async () => {
      const id = await make({ email: 'none@example.com' });
      await site.request('PUT', `${CONTACTS}/${id}`, { body: { first_name: 'N', phone: null } });
      await query('createMany', { data: [{ email: 'none2@example.com' }] });
      expect((await site.request('DELETE', `${CONTACTS}/${id}`)).status).toBeLessThan(300);
    });
    expect(written).toEqual([]);
    await setMark(0);
  });

  it('that are gone are forgotten', async () => {
    const deleted = await make({ email: 'deleted@example.com', phone: '02079460201' });
    const emptied = await make({ email: 'emptied@example.com', phone: '02079460202' });
    expect(await digitsOf([deleted, emptied])).toEqual(['460201', '460202']);
    await site.request('DELETE', `${CONTACTS}/${deleted}`);
    expect(await digitsOf([deleted, emptied])).toEqual(['460202']);
    await site.request('PUT', `${CONTACTS}/${emptied}`, { body: { phone: '' } });
    expect(await find('+442079460202')).toBeNull();
    await site.request('PUT', `${CONTACTS}/${emptied}`, { body: { phone: '02079460203' } });
    await run('switchboardForgottenPhones');
    await waitFor(async () => (await digitsOf([emptied])).length === 1, 30_000, 'one to be left');
    expect(await digitsOf([emptied])).toEqual(['460203']);
  });

  it('of an earlier version are found at once, and filled in after an upgrade', async () => {
    await site.evaluate(async ({ strapi }) => {
      const { connection } = strapi.db;
      const rows = Array.from({ length: 700 }, (_none, index) => ({
        document_id: `old${index}`,
        email: `old${index}@example.com`,
        phone: `0121 496 ${String(index).padStart(4, '0')}`,
      }));
      await connection.batchInsert('switchboard_contacts', rows, 50);
      await connection('switchboard_contact_phones').delete();
      await connection('switchboard_site').where({ name: 'contact_phones' }).delete();
    });
    expect(await find('+441214960123')).toBe('old123');
    await site.restart({});
    await waitFor(async () => (await mark()) !== null, 30_000, 'the index to begin');
    await setMark(0);
    await run('switchboardContactPhones');
    const count = () =>
      site.evaluate(
        async ({ strapi }) =>
          (
            await strapi.db
              .connection('switchboard_contact_phones')
              .where('document_id', 'like', 'old%')
          ).length
      );
    await waitFor(async () => (await count()) === 700, 30_000, 'all to be indexed');
    const read = await statementsOn('switchboard_contacts', async () => {
      expect(await find('+441214960699')).toBe('old699');
    });
    expect(read.length).toBeGreaterThan(0);
    // Written by somebody who did not keep the index, and behind its mark.
    const missing = () =>
      site.evaluate(({ strapi }) =>
        strapi.db.connection('switchboard_contact_phones').where({ document_id: 'old7' }).delete()
      );
    expect(await missing()).toBe(1);
    await run('switchboardForgottenPhones');
    await waitFor(async () => (await count()) === 700, 30_000, 'the gap to be filled');
  });

  it('are no longer indexed once no connection attaches customers', async () => {
    const connections = await admin(site, 'GET', '/connections');
    for (const { id } of connections as { id: number }[])
      await admin(site, 'PUT', `/connections/${id}`, { customers: 'ignore' });
    await run('switchboardContactPhones');
    await waitFor(async () => (await mark()) === null, 30_000, 'the index to end');
    const late = await make({ email: 'late@example.com', phone: '020 7946 0304' });
    expect(await digitsOf([late])).toEqual([]);
    expect(await find('+442079460304')).toBe(late);
  });
});
