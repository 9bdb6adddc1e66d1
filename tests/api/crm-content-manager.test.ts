import { type Site, startSite } from '../support/site';

const KINDS = ['contact', 'tag', 'company', 'deal', 'deal-stage', 'task', 'campaign'];

describe('the CRM in the content manager', () => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({ options: { webhooks: { dispatch: false } } });
  }, 180_000);
  afterAll(() => site?.stop(), 60_000);

  it.each(KINDS)('shows every attribute of a %s once, in a layout that fits', async (kind) => {
    const uid = `plugin::switchboard.${kind}`;
    const answer = await site.request('GET', `/content-manager/content-types/${uid}/configuration`);
    expect(answer.status).toBe(200);
    const { settings, layouts, metadatas } = answer.body.data.contentType;
    const { attributes } = (
      await site.request('GET', `/content-manager/init`)
    ).body.data.contentTypes.find((type: { uid: string }) => type.uid === uid);
    expect(attributes[settings.mainField]).toBeDefined();
    const shown = layouts.edit.flat().map(({ name }: { name: string }) => name);
    const hidden = ['id', 'documentId', 'email_key', 'display_name', 'trashed_at'];
    const system = /^(createdAt|updatedAt|publishedAt|createdBy|updatedBy|locale|localizations)$/;
    const own = Object.keys(attributes).filter(
      (name) => !hidden.includes(name) && !system.test(name)
    );
    expect([...shown].sort()).toEqual(own.sort());
    for (const row of layouts.edit) {
      const width = row.reduce((sum: number, { size }: { size: number }) => sum + size, 0);
      expect(width).toBeLessThanOrEqual(12);
    }
    for (const name of shown) expect(metadatas[name].edit.label).toMatch(/^[A-Z]/);
    for (const name of layouts.list) expect(attributes[name]).toBeDefined();
  });

  it('shows the status of a contact, and keeps it when the form is saved', async () => {
    const path = '/content-manager/collection-types/plugin::switchboard.contact';
    const { body } = await site.request('POST', path, {
      body: { email: 'a@example.test', contact_status: 'subscribed' },
    });
    const id = body.data.documentId;
    const read = await site.request('GET', `${path}/${id}`);
    expect(read.body.data.contact_status).toBe('subscribed');
    const saved = await site.request('PUT', `${path}/${id}`, {
      body: { ...read.body.data, first_name: 'Ada', email_key: 'forged' },
    });
    expect(saved.status).toBe(200);
    expect(saved.text).not.toContain('forged');
    expect(saved.body.data).toMatchObject({ contact_status: 'subscribed', first_name: 'Ada' });
  });

  it('says beside the field that an address is taken', async () => {
    const path = '/content-manager/collection-types/plugin::switchboard.contact';
    await site.request('POST', path, { body: { email: 'taken@example.test' } });
    const { status, body } = await site.request('POST', path, {
      body: { email: 'Taken@example.test' },
    });
    expect(status).toBe(400);
    expect(body.error.details.errors[0].path).toEqual(['email']);
  });

  it('clones a contact without its address', async () => {
    const path = '/content-manager/collection-types/plugin::switchboard.contact';
    const { body } = await site.request('POST', path, {
      body: { email: 'clone@example.test', first_name: 'Ada' },
    });
    const clone = await site.request('POST', `${path}/clone/${body.data.documentId}`, {
      body: { first_name: 'Bea' },
    });
    expect([200, 201]).toContain(clone.status);
    expect(clone.body.data).toMatchObject({ first_name: 'Bea', email: null });
  });
});
