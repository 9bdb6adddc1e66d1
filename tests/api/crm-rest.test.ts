import { createApiToken } from '../support/accounts';
import { describeEach, anyDatabase } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { contactLike, CRM, inCode } from './crm-helpers';

describeEach(anyDatabase(), "the CRM's routes", (database) => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({ database, options: { webhooks: { dispatch: false } } });
  }, 180_000);
  afterAll(() => site?.stop(), 60_000);

  const api = (method: string, path: string, body?: unknown) =>
    site.request(method, `${CRM}${path}`, { body });

  /** The paths that the error names. */
  const namedIn = (answer: { status: number; body: { error?: unknown } }) => {
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ data: null, error: { name: 'ValidationError' } });
    const { error } = answer.body as {
      error: { message: string; details: { errors?: { path: string[] }[] } };
    };
    return error.details.errors?.map(({ path }) => path.join('.'));
  };

  const OBJECTS: Record<string, [create: object, change: object]> = {
    contacts: [{ email: 'rest@example.test' }, { job_title: 'Analyst' }],
    tags: [{ name: 'First tag' }, { name: 'Other' }],
    companies: [{ name: 'Firm' }, { employees: 12 }],
    deals: [{ title: 'Engine', value: 10.5, currency: 'EUR' }, { status: 'won' }],
    'deal-stages': [{ name: 'New', position: 1 }, { probability: 50 }],
    tasks: [
      { title: 'Call', type: 'call', due_at: '2030-01-01T10:00:00.000+00:00' },
      { outcome: 'x' },
    ],
    campaigns: [{ title: 'Spring', subject: 'Offer' }, { total: 3 }],
  };

  it.each(Object.keys(OBJECTS))('create, read, list, change and delete %s', async (name) => {
    const [input, change] = OBJECTS[name]!;
    const created = await api('POST', `/${name}`, input);
    expect(created.status).toBe(201);
    expect(created.body).toMatchObject(input);
    const { id } = created.body;
    expect((await api('GET', `/${name}/${id}`)).body).toEqual(created.body);
    const list = await api('GET', `/${name}`);
    expect(list.body).toEqual({
      data: [created.body],
      meta: { pagination: { page: 1, per_page: 50, page_count: 1, total: 1 } },
    });
    for (const method of ['PUT', 'PATCH']) {
      const changed = await api(method, `/${name}/${id}`, change);
      expect(changed.status).toBe(200);
      expect(changed.body).toMatchObject({ ...input, ...change });
    }
    expect((await api('DELETE', `/${name}/${id}`)).status).toBe(204);
    for (const method of ['GET', 'PATCH', 'DELETE']) {
      const body = method === 'PATCH' ? change : undefined;
      expect((await api(method, `/${name}/${id}`, body)).status).toBe(404);
    }
  });

  it('makes a slug of a tag that has none, and a free one of a name that is taken', async () => {
    const one = await api('POST', '/tags', { name: 'Big Spender' });
    const two = await api('POST', '/tags', { name: 'Big Spender' });
    expect([one.body.slug, two.body.slug]).toEqual(['big-spender', 'big-spender-1']);
  });

  it('pages', async () => {
    await inCode(site, 'company').query('createMany', {
      data: Array.from({ length: 120 }, (_, n) => ({ name: `Firm ${n}` })),
    });
    const page = async (query: string) => (await api('GET', `/companies?${query}`)).body;
    expect((await page('')).data).toHaveLength(50);
    const last = await page('page=2&per_page=100');
    expect(last.data.map(({ name }: { name: string }) => name)).toEqual(
      Array.from({ length: 20 }, (_, n) => `Firm ${n + 100}`)
    );
    expect(last.meta.pagination).toEqual({ page: 2, per_page: 100, page_count: 2, total: 120 });
    expect(namedIn(await api('GET', '/companies?per_page=101'))).toEqual(['per_page']);
    expect(namedIn(await api('GET', '/companies?page=0'))).toEqual(['page']);
  });

  it('filters contacts and deals', async () => {
    const company = (await api('POST', '/companies', { name: 'Filter' })).body;
    const tag = (await api('POST', '/tags', { name: 'Filter' })).body;
    const contact = (
      await api('POST', '/contacts', {
        email: 'Filter@Example.test',
        company_id: company.id,
        tags: [tag.id],
        status: 'subscribed',
      })
    ).body;
    await api('POST', '/contacts', { email: 'other@example.test' });
    for (const query of [
      'email=filter@example.TEST',
      `company_id=${company.id}`,
      `tag_id=${tag.id}`,
      'status=subscribed',
    ]) {
      const { body } = await api('GET', `/contacts?${query}`);
      expect(body.data).toEqual([contact]);
      expect(body.meta.pagination.total).toBe(1);
    }
    const deal = (await api('POST', '/deals', { title: 'D', contact_id: contact.id })).body;
    expect((await api('GET', `/deals?contact_id=${contact.id}`)).body.data).toEqual([deal]);
    expect((await api('GET', '/deals?status=won')).body.data).toEqual([]);
  });

  it('keeps one contact an e-mail address, whatever its case, also when two come at once', async () => {
    const both = await Promise.all([
      api('POST', '/contacts', { email: 'twin@example.test' }),
      api('POST', '/contacts', { email: 'TWIN@example.test' }),
    ]);
    expect(both.map(({ status }) => status).sort()).toEqual([201, 400]);
    const refused = both.find(({ status }) => status === 400)!;
    expect(namedIn(refused)).toEqual(['email']);
    const other = (await api('POST', '/contacts', { email: 'single@example.test' })).body;
    expect(
      namedIn(await api('PATCH', `/contacts/${other.id}`, { email: 'Twin@example.test' }))
    ).toEqual(['email']);
    expect((await api('PATCH', `/contacts/${other.id}`, { email: other.email })).status).toBe(200);
  });

  it('says where the contact is that has an address, where lists hide it', async () => {
    const trashed_at = '2030-01-01T00:00:00Z';
    await api('POST', '/contacts', { email: 'binned@example.test', trashed_at });
    const { status, body } = await api('POST', '/contacts', { email: 'Binned@example.test' });
    expect([status, body.error.message]).toEqual([
      400,
      'email: belongs to another contact, which is in the bin',
    ]);
  });

  it.each([
    ['POST', '/contacts', {}, 'email'],
    ['POST', '/contacts', { email: 'nobody' }, 'email'],
    ['POST', '/contacts', { email: 'a@example.test', status: 'gone' }, 'status'],
    ['POST', '/contacts', { first_name: 'a\u0000b' }, 'first_name'],
    ['POST', '/contacts', { first_name: 'x'.repeat(256) }, 'first_name'],
    ['POST', '/contacts', { first_name: 1 }, 'first_name'],
    ['POST', '/contacts', { first_name: 'x', score: 2 ** 31 }, 'score'],
    ['POST', '/contacts', { first_name: 'x', lifetime_value: 1e9 }, 'lifetime_value'],
    ['POST', '/contacts', { first_name: 'x', fields: { a: { b: '\u0000' } } }, 'fields.a.b'],
    ['POST', '/contacts', { first_name: 'x', address: 'here' }, 'address'],
    ['POST', '/contacts', { first_name: 'x', company_id: 'nowhere' }, 'company_id'],
    ['POST', '/contacts', { first_name: 'x', company_id: "' or 1=1" }, 'company_id'],
    ['POST', '/contacts', { first_name: 'x', owner_id: 4711 }, 'owner_id'],
    ['POST', '/contacts', { first_name: 'x', tags: ['nowhere'] }, 'tags'],
    ['POST', '/contacts', { first_name: 'x', trashed_at: '2030-02-31T00:00:00Z' }, 'trashed_at'],
    ['POST', '/contacts', { first_name: 'x', colour: 'red' }, 'colour'],
    ['POST', '/contacts', { first_name: 'x', email_key: 'red' }, 'email_key'],
    ['POST', '/tags', {}, 'name'],
    ['POST', '/tags', { name: 'x', slug: 'no spaces' }, 'slug'],
    ['POST', '/companies', { name: ' ' }, 'name'],
    ['POST', '/deals', { title: 'x', currency: 'euro' }, 'currency'],
    ['POST', '/deals', { title: 'x', stage_id: 'nowhere' }, 'stage_id'],
    ['POST', '/deals', { title: 'x', expected_close_date: '2030-13-01' }, 'expected_close_date'],
    ['POST', '/tasks', { title: 'x', type: 'nap' }, 'type'],
    ['POST', '/tasks', { title: 'x', due_at: 'tomorrow' }, 'due_at'],
    ['GET', '/contacts?company_id=%00', undefined, 'company_id'],
  ])('%s %s %j is a 400 that names %4$s', async (method, path, body, field) => {
    expect(namedIn(await api(method, path, body))).toContain(field);
  });

  it.each(['/contacts/%00', "/contacts/'", '/contacts/nothing', '/tags/0', '/deals/1'])(
    '%s is a 404',
    async (path) => {
      for (const method of ['GET', 'PUT', 'DELETE']) {
        const body = method === 'PUT' ? {} : undefined;
        expect((await api(method, path, body)).status).toBe(404);
      }
    }
  );

  it('answers a malformed body with a 400', async () => {
    const answer = await site.request('POST', `${CRM}/contacts`, {
      body: '{"email": ',
      headers: { 'content-type': 'application/json' },
    });
    expect(answer.status).toBe(400);
    for (const body of ['[]', '"x"', 'null', '1']) {
      const odd = await site.request('POST', `${CRM}/contacts`, {
        body,
        headers: { 'content-type': 'application/json' },
      });
      expect(odd.status).toBe(400);
    }
  });

  it('is closed to strangers, open for reading to a read-only token', async () => {
    const readOnly = await createApiToken(site, { type: 'read-only' });
    const { body: contact } = await api('POST', '/contacts', { first_name: 'Reader' });
    const get = (as: 'nobody' | { token: string }) =>
      site.request('GET', `${CRM}/contacts/${contact.id}`, { as });
    expect((await get('nobody')).status).toBe(403);
    expect((await get({ token: readOnly })).body).toEqual(contactLike(contact));
    const write = await site.request('PATCH', `${CRM}/contacts/${contact.id}`, {
      as: { token: readOnly },
      body: {},
    });
    expect(write.status).toBe(403);
  });

  it('leaves nothing private in an answer', async () => {
    const { body } = await api('POST', '/contacts', { email: 'private@example.test', owner_id: 1 });
    const { text } = await api('GET', `/contacts/${body.id}`);
    expect(Object.keys(body)).toEqual(Object.keys(contactLike({})));
    expect(text).not.toMatch(/password|email_key|\$2[aby]\$|token/i);
  });

  it('answers 404 with a reason while the module is off', async () => {
    const put = (enabled: boolean) =>
      site.request('PUT', '/switchboard/modules', { body: { companies: enabled }, as: 'admin' });
    await put(false);
    const answer = await api('GET', '/companies');
    await put(true);
    expect(answer.status).toBe(404);
    expect(answer.body.error.message).toMatch(/Companies is switched off/);
    expect((await api('GET', '/companies')).status).toBe(200);
  });
});
