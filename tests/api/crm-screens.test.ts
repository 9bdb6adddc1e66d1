import { createAdminRole } from '../support/accounts';
import { databases, describeEach, itOnce } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { CRM, openEventLog } from './crm-helpers';

const CONTACT = 'plugin::switchboard.contact';
const SCREEN = `/content-manager/collection-types/${CONTACT}`;

/** A view of the Content Manager, as it is stored. */
interface Stored {
  uid: string;
  settings: Record<string, unknown>;
  metadatas: Record<string, { edit: { label: string; editable: boolean; mainField?: string } }>;
  layouts: { list: string[]; edit: { name: string; size: number }[][] };
}

describeEach(databases(), 'the name of a contact on the screens', (database) => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({ database, options: { webhooks: { dispatch: false } } });
  }, 180_000);
  afterAll(() => site?.stop(), 60_000);

  const screenOf = async (kind: string): Promise<Stored> =>
    (
      await site.request(
        'GET',
        `/content-manager/content-types/plugin::switchboard.${kind}/configuration`
      )
    ).body.data.contentType;
  const titleOf = async (id: string): Promise<string | null> =>
    (await site.request('GET', `${SCREEN}/${id}`)).body.data.display_name;
  const create = async (body: Record<string, unknown>): Promise<string> => {
    const answer = await site.request('POST', `${CRM}/contacts`, { body });
    expect(answer.status).toBe(201);
    return answer.body.id;
  };
  const patch = (id: string, body: Record<string, unknown>) =>
    site.request('PATCH', `${CRM}/contacts/${id}`, { body });
  const query = (method: string, params: Record<string, unknown>) =>
    site.control('query', { uid: CONTACT, method, params });
  const documents = (method: string, params: Record<string, unknown>) =>
    site.control<Record<string, unknown>>('documents', { uid: CONTACT, method, params });

  it('is the person, else the address, else the phone, whichever way it was written', async () => {
    const ada = await create({ first_name: ' Ada ', last_name: 'Lovelace', email: 'a@x.test' });
    expect(await titleOf(ada)).toBe('Ada Lovelace');
    await patch(ada, { first_name: null, last_name: 'Byron' });
    expect(await titleOf(ada)).toBe('Byron');
    await patch(ada, { last_name: '  ' });
    expect(await titleOf(ada)).toBe('a@x.test');
    await patch(ada, { email: null, phone: '+44 1' });
    expect(await titleOf(ada)).toBe('+44 1');
    await patch(ada, { phone: null });
    expect(await titleOf(ada)).toBeNull();

    const saved = await documents('update', { documentId: ada, data: { first_name: 'Augusta' } });
    expect(saved.display_name).toBe('Augusta');
    await query('update', { where: { first_name: 'Augusta' }, data: { first_name: 'Ada' } });
    expect(await titleOf(ada)).toBe('Ada');
    await query('updateMany', { where: { first_name: 'Ada' }, data: { first_name: 'Eve' } });
    expect(await titleOf(ada)).toBe('Eve');
    await query('createMany', { data: [{ documentId: 'many', last_name: 'Many' }] });
    expect(await titleOf('many')).toBe('Many');
    const clone = await documents('clone', { documentId: ada, data: { last_name: 'Two' } });
    expect((clone.entries as { display_name: string }[])[0]!.display_name).toBe('Eve Two');
  });

  it('is that of the last writers, also if they overlap', async () => {
    const id = await create({ email: 'both@x.test' });
    for (let turn = 0; turn < 5; turn += 1) {
      await Promise.all([
        patch(id, { first_name: `First${turn}` }),
        patch(id, { last_name: `Last${turn}` }),
      ]);
      expect(await titleOf(id)).toBe(`First${turn} Last${turn}`);
    }
    await site.evaluate(async ({ strapi }, documentId) => {
      const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
      const write = (data: object, ms: number) =>
        strapi.db.transaction(async () => {
          await strapi.documents('plugin::switchboard.contact').update({ documentId, data });
          await pause(ms);
        });
      const first = write({ first_name: 'Grace' }, 300);
      await pause(100);
      await Promise.all([first, write({ last_name: 'Hopper' }, 0)]);
    }, id);
    expect(await titleOf(id)).toBe('Grace Hopper');
  });

  it('is given once to contacts of an earlier version', async () => {
    const id = await create({ first_name: 'Old', last_name: 'Row' });
    await site.control('sql', { statement: 'update switchboard_contacts set display_name = null' });
    await site.restart();
    expect(await titleOf(id)).toBe('Old Row');
  });

  itOnce(database)(
    'is in no answer of the API and in no event, and nobody can set it',
    async () => {
      const log = await openEventLog(site);
      const body = { first_name: 'Kay', display_name: 'forged' };
      expect((await site.request('POST', `${CRM}/contacts`, { body })).status).toBe(400);
      const id = await create({ first_name: 'Kay' });
      const put = await site.request('PUT', `${SCREEN}/${id}`, {
        body: { last_name: 'McNulty', display_name: 'forged' },
      });
      expect(put).toMatchObject({ status: 200 });
      await documents('update', { documentId: id, data: { display_name: 'forged' } });
      expect(await titleOf(id)).toBe('Kay McNulty');
      const read = await site.request('GET', `${CRM}/contacts/${id}`);
      expect(read.body).not.toHaveProperty('display_name');
      const events = await log.take();
      expect(events.map(({ event }) => event)).toEqual(['contact.created', 'contact.updated']);
      expect(JSON.stringify(events)).not.toContain('display_name');
      expect(events[1]!.data.changed).toEqual(['last_name', 'name']);
    }
  );

  itOnce(database)('follows an import', async () => {
    const answer = await site.request('POST', '/switchboard/contacts/import', {
      body: Buffer.from('email,first_name,last_name\ni@x.test,Imp,Orted\n'),
      headers: { 'content-type': 'text/csv' },
    });
    expect(answer.body.data).toMatchObject({ created: 1 });
    const { results } = (await site.request('GET', `${SCREEN}?_q=i@x.test`)).body;
    expect(results).toMatchObject([{ display_name: 'Imp Orted' }]);
  });

  itOnce(database)('titles entries, lists and relations', async () => {
    const { settings, layouts } = await screenOf('contact');
    expect(settings).toMatchObject({ mainField: 'display_name', defaultSortBy: 'display_name' });
    expect(layouts.list[0]).toBe('display_name');
    expect((await screenOf('task')).metadatas.contact.edit.mainField).toBe('display_name');
    expect((await screenOf('tag')).metadatas.contacts.edit.mainField).toBe('display_name');
  });

  itOnce(database)('shows computed fields read-only, and lets nobody type them', async () => {
    const computed: Record<string, string[]> = {
      contact: ['display_name', 'lifetime_value', 'subscribed_at', 'unsubscribed_at', 'trashed_at'],
      company: ['trashed_at'],
      deal: ['closed_at', 'trashed_at'],
      task: ['completed_at', 'trashed_at'],
      campaign: ['sent_at'],
    };
    for (const [kind, names] of Object.entries(computed)) {
      const { metadatas, layouts } = await screenOf(kind);
      const locked = Object.keys(metadatas).filter(
        (name) => metadatas[name]!.edit.editable === false
      );
      expect([kind, locked.sort()]).toEqual([kind, [...names].sort()]);
      const shown = layouts.edit.flat().map(({ name }) => name);
      for (const name of ['display_name', 'trashed_at']) expect(shown).not.toContain(name);
    }

    // The form sends what it shows, as it was when it was opened.
    const id = await create({ first_name: 'Form', status: 'pending' });
    const form = (await site.request('GET', `${SCREEN}/${id}`)).body.data;
    await patch(id, { lifetime_value: 12.5 });
    const saved = await site.request('PUT', `${SCREEN}/${id}`, {
      body: { ...form, contact_status: 'subscribed', unsubscribed_at: '2020-01-01T00:00:00.000Z' },
    });
    expect(saved).toMatchObject({ status: 200 });
    const { body } = await site.request('GET', `${CRM}/contacts/${id}`);
    expect(body).toMatchObject({ status: 'subscribed', lifetime_value: 12.5 });
    expect(body.dates.subscribed_at).not.toBeNull();
    expect(body.dates.unsubscribed_at).toBeNull();

    const dates = { subscribed_at: '2020-01-01T00:00:00.000Z' };
    await patch(id, { dates });
    expect((await patch(id, dates)).status).toBe(400);
    const after = await site.request('GET', `${CRM}/contacts/${id}`);
    expect(after.body.dates).toEqual({
      ...body.dates,
      updated_at: expect.any(String),
    });
  });

  itOnce(database)(
    'renews the screens of an earlier version once, unless a site arranged them',
    async () => {
      const current = await screenOf('contact');
      const task = await screenOf('task');
      const role = await createAdminRole(site, []);
      const setBack = (settings: object) =>
        site.evaluate(
          async ({ strapi }, { contact, tasks, more, roleName }) => {
            const service = strapi.plugin('content-manager').service('content-types');
            const old = structuredClone(contact);
            Object.assign(old.settings, { mainField: 'email', defaultSortBy: 'email' }, more);
            old.layouts.list = 'email first_name last_name contact_status company tags'.split(' ');
            old.layouts.edit.push([{ name: 'display_name', size: 6 }]);
            old.metadatas.lifetime_value.edit.editable = true;
            old.metadatas.fields.edit.label = 'Fields';
            old.metadatas.source.edit.label = 'Where from';
            await service.updateConfiguration({ uid: contact.uid }, old);
            const oldTask = structuredClone(tasks);
            oldTask.metadatas.contact.edit.mainField = 'email';
            await service.updateConfiguration({ uid: tasks.uid }, oldTask);
            await strapi.db.query('strapi::core-store').deleteMany({
              where: { key: 'plugin_switchboard_crm-screens' },
            });
            const permissions = strapi.db.query('admin::permission');
            const { id } = await strapi.db
              .query('admin::role')
              .findOne({ where: { name: roleName } });
            await permissions.deleteMany({ where: { role: id } });
            for (const fields of [['first_name', 'last_name', 'email', 'phone'], ['first_name']]) {
              await permissions.create({
                data: {
                  action: 'plugin::content-manager.explorer.read',
                  subject: contact.uid,
                  properties: { fields },
                  conditions: [],
                  role: id,
                },
              });
            }
          },
          { contact: current, tasks: task, more: settings, roleName: role }
        );
      const grants = () =>
        site.evaluate(
          async ({ strapi }, roleName) =>
            (
              await strapi.db
                .query('admin::permission')
                .findMany({ where: { role: { name: roleName } } })
            ).map(({ properties }: { properties: { fields: string[] } }) => properties.fields),
          role
        );

      await setBack({});
      await site.restart();
      current.metadatas.source!.edit.label = 'Where from';
      expect(await screenOf('contact')).toEqual(current);
      expect(await screenOf('task')).toEqual(task);
      const named = ['display_name', 'email', 'first_name', 'last_name', 'phone'];
      expect((await grants()).map((fields: string[]) => fields.sort())).toEqual([
        named,
        ['first_name'],
      ]);

      await setBack({ mainField: 'last_name' });
      await site.restart();
      const arranged = await screenOf('contact');
      expect(arranged.settings).toMatchObject({ mainField: 'last_name', defaultSortBy: 'email' });
      expect(arranged.layouts.list[0]).toBe('email');
      expect(arranged.layouts.edit).toEqual(current.layouts.edit);
    }
  );
});
