import { createAdminRole, createAdminUser } from '../support/accounts';
import { databases, describeEach, itOnce } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { sleep, waitFor } from '../support/wait';
import { CRM, type EventLog, inCode, names, openEventLog } from './crm-helpers';
import { createItem, createTill } from './pos-till';

const CONTACT = 'plugin::switchboard.contact';
const EXPLORER = 'plugin::content-manager.explorer';

interface Row {
  id: number;
  documentId: string;
  updatedAt: string;
  [name: string]: unknown;
}

describeEach(databases(), 'merging two contacts', (database) => {
  let site: Site;
  let log: EventLog;
  beforeAll(async () => {
    site = await startSite({
      database,
      options: { webhooks: { dispatch: false }, pos: { ratePerMinute: 100_000 } },
      setupFiles: ['contact-links', 'contact-conditions'].map((name) =>
        require.resolve(`../support/handlers/${name}.js`)
      ),
      firstBoot: true,
    });
    log = await openEventLog(site);
  }, 240_000);
  afterAll(() => site?.stop(), 60_000);

  const contacts = () => inCode(site, 'contact');
  const merge = (keep: string, remove: string, more: object = {}, as?: { token: string }) =>
    site.request('POST', '/switchboard/contacts/merge', {
      body: { keep, remove, ...more },
      ...(as && { as }),
    });
  const rowOf = (documentId: string, populate: string[] = []): Promise<Row | null> =>
    contacts().query('findOne', { where: { documentId }, populate });
  const idsOf = (rows: unknown): unknown[] =>
    [rows ?? []].flat().map((one) => (one as Row).documentId);
  const visits = (method: string, params: object) =>
    site.control('query', { uid: 'api::visit.visit', method, params });
  const newFile = (name: string): Promise<Row> => {
    const kind = { ext: '.png', mime: 'image/png', size: 1, provider: 'local' };
    const data = { ...kind, name, hash: name, url: `/${name}.png` };
    return site.control('query', {
      uid: 'plugin::upload.file',
      method: 'create',
      params: { data },
    });
  };
  /** A user who may merge as far as these permissions allow. */
  const merger = async (update: object | null, deletes: string[] | null, updates?: string[]) => {
    const of = (action: string, properties: object, conditions?: string[]) => ({
      action: `${EXPLORER}.${action}`,
      subject: CONTACT,
      properties,
      ...(conditions && { conditions }),
    });
    const actions = [
      ...(update ? [of('update', update, updates)] : []),
      ...(deletes ? [of('delete', {}, deletes)] : []),
    ];
    const role = await createAdminRole(site, ['plugin::switchboard.crm.write', ...actions]);
    return createAdminUser(site, { role });
  };
  let serial = 0;
  const newPair = async (kept: object = {}, other: object = {}): Promise<[Row, Row]> => {
    serial += 1;
    return [
      await contacts().create({ email: `kept${serial}@x.test`, ...kept }),
      await contacts().create({ email: `other${serial}@x.test`, ...other }),
    ];
  };

  it('completes the one that is kept, moves all that refers to the other, and tells so', async () => {
    const tag = (name: string) => inCode(site, 'tag').create({ name, slug: name });
    const [both, more] = [await tag('both'), await tag('more')];
    const company = await inCode(site, 'company').create({ name: 'Firm' });
    const list = await site.control('documents', {
      uid: 'api::label.label',
      method: 'create',
      params: { data: { title: 'List' } },
    });
    const [kept, other] = await newPair(
      {
        email: null,
        first_name: 'Ada',
        fields: { a: 1, b: '' },
        score: 0,
        tags: [both.documentId],
      },
      {
        first_name: 'Augusta',
        phone: '+44 20 1',
        contact_status: 'subscribed',
        score: 7,
        lifetime_value: 20.5,
        company: company.documentId,
        fields: { a: 2, b: 'x', c: [3] },
        tags: [both.documentId, more.documentId],
        trashed_at: '2026-01-01T00:00:00.000Z',
        homes: [{ city: 'London' }],
        lists: [list.documentId],
        vip: false,
      }
    );
    const friend = await contacts().create({ first_name: 'Friend', referrer: other.documentId });
    const deal = await inCode(site, 'deal').create({ title: 'Deal', contact: other.documentId });
    const task = await inCode(site, 'task').create({ title: 'Task', contact: other.documentId });
    const [keptRow, otherRow] = [kept.id, other.id];
    const visit = await visits('create', {
      data: {
        name: 'V',
        host: otherRow,
        guests: [keptRow, otherRow],
        about: { id: otherRow, __type: CONTACT },
      },
    });
    const stop = await site.control('query', {
      uid: 'shared.stop-by',
      method: 'create',
      params: { data: { by: otherRow } },
    });
    const photo = await newFile('p');
    await contacts().update(other.documentId, { photo: photo.id });
    await log.take();

    const answer = await merge(kept.documentId, other.documentId);
    expect(answer.text).toBe(JSON.stringify({ data: { id: kept.documentId } }));
    expect(answer.status).toBe(200);
    expect(await rowOf(other.documentId)).toBeNull();
    const after = await rowOf(kept.documentId, [
      ...['tags', 'company', 'deals', 'tasks', 'homes', 'lists', 'referred', 'photo', 'updatedBy'],
    ]);
    expect(after).toMatchObject({
      email: other.email,
      first_name: 'Ada',
      phone: '+44 20 1',
      contact_status: 'subscribed',
      subscribed_at: other.subscribed_at,
      score: 7,
      fields: { a: 1, b: 'x', c: [3] },
      trashed_at: null,
      homes: [{ city: 'London' }],
      photo: { url: '/p.png' },
      vip: false,
      updatedBy: { id: expect.any(Number) },
    });
    expect(Number(after?.lifetime_value)).toBe(20.5);
    expect(idsOf(after?.tags).sort()).toEqual([both.documentId, more.documentId].sort());
    expect(idsOf(after?.company)).toEqual([company.documentId]);
    expect(idsOf(after?.deals)).toEqual([deal.documentId]);
    expect(idsOf(after?.tasks)).toEqual([task.documentId]);
    expect(idsOf(after?.lists)).toEqual([list.documentId]);
    expect(idsOf(after?.referred)).toEqual([friend.documentId]);
    const populate = ['host', 'guests', 'about'];
    const moved = await visits('findOne', { where: { id: visit.id }, populate });
    expect(moved.host.id).toBe(keptRow);
    expect(moved.guests.map(({ id }: Row) => id)).toEqual([keptRow]);
    expect(moved.about.id).toBe(keptRow);
    const component = await site.control('query', {
      uid: 'shared.stop-by',
      method: 'findOne',
      params: { where: { id: stop.id }, populate: ['by'] },
    });
    expect(component.by.id).toBe(keptRow);

    const events = await log.take();
    expect(names(events).sort()).toEqual([
      'contact.deleted',
      'contact.subscribed',
      'contact.tagged',
      'contact.updated',
      'deal.updated',
    ]);
    const data = Object.fromEntries(events.map(({ event, data: one }) => [event, one]));
    expect(data['contact.updated'].contact).toMatchObject({
      id: kept.documentId,
      phone: '+44 20 1',
    });
    expect(data['contact.updated'].changed).toEqual(
      expect.arrayContaining([
        'email',
        'phone',
        'company_id',
        'score',
        'lifetime_value',
        'fields.c',
      ])
    );
    expect(data['contact.tagged']).toMatchObject({ tag: { slug: 'more' }, source: 'admin' });
    expect(JSON.stringify(data['contact.deleted'])).toContain(other.documentId);
    expect(data['deal.updated'].changed).toEqual(['contact_id']);
    // The address finds who is kept from now on.
    const found = await site.request('GET', `${CRM}/contacts?email=${String(other.email)}`);
    expect(found.body.data.map(({ id }: { id: string }) => id)).toEqual([kept.documentId]);
  });

  it('lets values, and single parts, of the one that is kept alone', async () => {
    const company = async (name: string) => inCode(site, 'company').create({ name });
    const [mine, theirs] = [await company('Mine'), await company('Theirs')];
    const values = (name: string) => ({
      first_name: name,
      homes: [{ city: name }],
      contact_status: name === 'A' ? 'unsubscribed' : 'subscribed',
      lifetime_value: 10,
    });
    const [kept, other] = await newPair(
      { ...values('A'), company: mine.documentId },
      { ...values('B'), company: theirs.documentId }
    );
    // One refers to the other.
    await contacts().update(kept.documentId, { referrer: other.documentId });
    expect((await merge(kept.documentId, other.documentId)).status).toBe(200);
    const after = await rowOf(kept.documentId, ['company', 'homes', 'referrer', 'referred']);
    expect(after).toMatchObject({
      email: kept.email,
      first_name: 'A',
      contact_status: 'unsubscribed',
      homes: [{ city: 'A' }],
      referrer: null,
      referred: [],
    });
    expect(idsOf(after?.company)).toEqual([mine.documentId]);
    // Purchases of both count.
    expect(Number(after?.lifetime_value)).toBe(20);
  });

  it('keeps the status of an address with the address', async () => {
    const [kept, other] = await newPair(
      { email: null, contact_status: 'subscribed' },
      { contact_status: 'unsubscribed' }
    );
    expect((await merge(kept.documentId, other.documentId)).status).toBe(200);
    expect(await rowOf(kept.documentId)).toMatchObject({
      email: other.email,
      contact_status: 'unsubscribed',
    });
    const [named, gone] = await newPair(
      { contact_status: 'subscribed' },
      { contact_status: 'unsubscribed' }
    );
    expect((await merge(named.documentId, gone.documentId)).status).toBe(200);
    expect(await rowOf(named.documentId)).toMatchObject({ contact_status: 'subscribed' });
  });

  it('gives the one that is kept the purchases, which refunds take away again', async () => {
    const [kept, other] = await newPair();
    const [dollars] = await newPair();
    const sku = `MUG${database}`;
    await createItem(site, sku, 100);
    const till = await createTill(site, { customers: 'match' } as never);
    const sell = async (email: unknown, total: number, currency: string) => {
      const id = `S-${total}-${currency}`;
      const sale = await till.sale([[sku, 1]], {
        external_id: id,
        total,
        currency,
        customer: { email },
      });
      expect(sale.status).toBe(202);
      return id;
    };
    const value = async (id: string) => Number((await rowOf(id))?.lifetime_value);
    const becomes = (id: string, amount: number) =>
      waitFor(async () => (await value(id)) === amount, 60_000, `a value of ${amount}`);
    await sell(kept.email, 1000, 'EUR');
    const sale = await sell(other.email, 500, 'EUR');
    await sell(dollars.email, 300, 'USD');
    await becomes(kept.documentId, 10);
    await becomes(other.documentId, 5);
    await becomes(dollars.documentId, 3);
    expect((await merge(kept.documentId, other.documentId)).status).toBe(200);
    expect(await value(kept.documentId)).toBe(15);
    // Amounts in another currency cannot be added.
    expect((await merge(kept.documentId, dollars.documentId)).status).toBe(200);
    expect(await value(kept.documentId)).toBe(15);
    const list = await site.request('GET', `${CRM}/contacts/${kept.documentId}/purchases`);
    expect(list.body.data).toHaveLength(3);
    expect((await till.refund(sale, { total: 500, currency: 'EUR' })).status).toBe(202);
    await becomes(kept.documentId, 10);
  });

  itOnce(database)('refuses what is no pair of contacts', async () => {
    const [kept, other] = await newPair();
    const deal = await inCode(site, 'deal').create({ title: 'Deal' });
    const id = kept.documentId;
    expect((await merge(id, id)).status).toBe(400);
    for (const wrong of ['unknown', deal.documentId]) {
      expect((await merge(id, wrong)).status).toBe(404);
      expect((await merge(wrong, id)).status).toBe(404);
    }
    for (const wrong of [1, null, '', "x' or 1=1", { $ne: 1 }, [other.documentId]]) {
      expect((await merge(id, wrong as string)).status).toBe(400);
    }
    expect((await merge(id, other.documentId, { more: 1 })).status).toBe(400);
    expect((await rowOf(other.documentId))?.email).toBe(other.email);
  });

  itOnce(database)('refuses a merge of what the user has not seen', async () => {
    const [kept, other] = await newPair();
    const seen = { keep: kept.updatedAt, remove: other.updatedAt };
    const later = await contacts().update(other.documentId, { phone: '1' });
    const refused = await merge(kept.documentId, other.documentId, { seen });
    expect(refused.status).toBe(409);
    expect(refused.body.error.details.code).toBe('changed_meanwhile');
    const now = { ...seen, remove: later.updatedAt };
    expect((await merge(kept.documentId, other.documentId, { seen: now })).status).toBe(200);
  });

  itOnce(database)(
    'needs the rights of the content manager, for each field that changes',
    async () => {
      const [kept, other] = await newPair({}, { phone: '1' });
      const tries = async (as: { token: string }) =>
        (await merge(kept.documentId, other.documentId, {}, as)).status;
      expect(await tries(await merger({ fields: ['phone'] }, null))).toBe(403);
      expect(await tries(await merger(null, []))).toBe(403);
      expect(await tries(await merger({ fields: ['email'] }, []))).toBe(403);
      expect(await tries(await merger({ fields: ['phone'] }, ['admin::is-creator']))).toBe(403);
      const { status } = await site.request('POST', '/switchboard/contacts/merge', {
        as: 'nobody',
      });
      expect(status).toBe(401);
      expect(idsOf(await rowOf(other.documentId))).toEqual([other.documentId]);
      expect(await tries(await merger({ fields: ['phone'] }, []))).toBe(200);
    }
  );

  itOnce(database)('judges conditions on relations of both contacts', async () => {
    const own = await merger({ fields: ['phone'] }, ['api::owns-it'], ['api::owns-it']);
    const tries = async (kept: Row, other: Row) =>
      (await merge(kept.documentId, other.documentId, {}, own)).status;
    const owned = { owner: own.id };
    expect(await tries(...(await newPair({}, { phone: '1', ...owned })))).toBe(403);
    expect(await tries(...(await newPair(owned, { phone: '1' })))).toBe(403);
    expect(await tries(...(await newPair(owned, { phone: '1', ...owned })))).toBe(200);
  });

  itOnce(database)('needs the right to components and files that it moves', async () => {
    const file = await newFile('moved');
    const [kept, other] = await newPair({}, { photo: file.id, homes: [{ city: 'Rome' }] });
    const tries = async (...fields: string[]) =>
      (await merge(kept.documentId, other.documentId, {}, await merger({ fields }, []))).status;
    expect(await tries('phone')).toBe(403);
    expect(await tries('phone', 'photo')).toBe(403);
    const [city, ...others] = ['homes.city', 'homes.street', 'homes.alarmCode'] as const;
    expect(await tries('photo', city)).toBe(403);
    expect(await tries(city, ...others)).toBe(403);
    expect(await tries('photo', city, ...others)).toBe(200);
  });

  it('adds nothing to a gallery that has files, and nothing to a full bag', async () => {
    const [mine, theirs, more] = [await newFile('a'), await newFile('b'), await newFile('c')];
    const [kept, other] = await newPair(
      { gallery: [mine.id] },
      { gallery: [theirs.id, more.id], homes: [{ city: 'Paris' }] }
    );
    expect((await merge(kept.documentId, other.documentId)).status).toBe(200);
    const after = await rowOf(kept.documentId, ['gallery', 'homes']);
    expect(after).toMatchObject({ gallery: [{ url: '/a.png' }], homes: [{ city: 'Paris' }] });
    const [empty, full] = await newPair({}, { gallery: [theirs.id, more.id] });
    expect((await merge(empty.documentId, full.documentId)).status).toBe(200);
    const filled = await rowOf(empty.documentId, ['gallery']);
    expect(filled?.gallery).toMatchObject([{ url: '/b.png' }, { url: '/c.png' }]);

    const [one, two] = await newPair(
      { fields: { a: 'x'.repeat(40_000) } },
      { fields: { b: 'x'.repeat(40_000) } }
    );
    const refused = await merge(one.documentId, two.documentId);
    expect(refused.status).toBe(400);
    expect(refused.body.error.message).toMatch(/fields.* 65536 characters/);
    expect(await rowOf(two.documentId)).not.toBeNull();
  });

  it('loses nothing to writers of the same moment, and fails for none of them', async () => {
    for (let round = 0; round < 6; round += 1) {
      const [one, other] = await newPair({ email: null }, { phone: '1' });
      const third = await contacts().create({ first_name: 'Third' });
      const [a, b, c] = [one.documentId, other.documentId, third.documentId];
      const before = await inCode(site, 'deal').create({ title: 'Before', contact: b });
      const api = (method: string, path: string, body?: object) =>
        site.request(method, `${CRM}${path}`, { body });
      const answers = await Promise.all([
        merge(a, b),
        merge(b, a),
        merge(c, b),
        api('PATCH', `/contacts/${a}`, { last_name: 'Edited' }),
        site.request('PUT', `/content-manager/collection-types/${CONTACT}/${b}`, {
          body: { job_title: 'Typed' },
        }),
        api('PATCH', `/deals/${before.documentId}`, { title: 'After' }),
        ...[a, b, c].map((id) => api('POST', '/deals', { title: `Of ${id}`, contact_id: id })),
        ...[a, b].map((id) => api('POST', '/tasks', { title: `Of ${id}`, contact_id: id })),
      ]);
      const statuses = answers.map(({ status }) => status);
      expect(statuses).toEqual(statuses.map((status) => (status >= 500 ? 0 : status)));
      // The panel's user learns that what was typed was not saved.
      expect([200, 404]).toContain(statuses[4]);
      if (statuses[4] === 200) expect(JSON.stringify(answers[4]?.body.data)).toContain('Typed');
      const merges = statuses.slice(0, 3);
      expect(merges.filter((status) => ![200, 404, 409].includes(status))).toEqual([]);
      const merged = merges.filter((status) => status === 200).length;
      expect(merged).toBeGreaterThan(0);
      const left = (await Promise.all([a, b, c].map((id) => rowOf(id)))).filter(
        (row) => row !== null
      );
      expect(left).toHaveLength(3 - merged);
      // Whoever got an answer finds the record with somebody who is there.
      for (const { status, body } of answers.slice(6)) {
        if (status !== 201) continue;
        const path = body.title
          ? `${body.value === undefined ? '/tasks' : '/deals'}/${body.id}`
          : '';
        const record = await api('GET', path);
        expect(left.map((row) => row.documentId)).toContain(record.body.contact_id);
      }
      const first = await api('GET', `/deals/${before.documentId}`);
      expect(left.map((row) => row.documentId)).toContain(first.body.contact_id);
      expect(first.body.title).toBe('After');
      await log.take();
    }
  });

  it('keeps each tag of the same moment that was answered, and follows a sale at once', async () => {
    const tag = async (name: string): Promise<string> =>
      (await inCode(site, 'tag').create({ name, slug: name })).documentId;
    const [first, second, old] = [await tag('first'), await tag('second'), await tag('old')];
    const till = await createTill(site, { customers: 'match' } as never);
    const sku = `CUP${database}`;
    await createItem(site, sku, 100);
    for (let round = 0; round < 6; round += 1) {
      const [kept, other] = await newPair({ email: null }, { tags: [old] });
      const tagging = (method: string, of: Row, id: string) =>
        site.request(method, `${CRM}/contacts/${of.documentId}/tags/${id}`);
      const [merged, sale, ofOther, ofKept, removed] = await Promise.all([
        merge(kept.documentId, other.documentId),
        till.sale([[sku, 1]], { total: 500, currency: 'EUR', customer: { email: other.email } }),
        tagging('POST', other, first),
        tagging('POST', kept, second),
        tagging('DELETE', other, old),
      ]);
      expect([merged.status, sale.status, ofKept.status]).toEqual([200, 202, 200]);
      expect([200, 404]).toContain(ofOther.status);
      expect([204, 404]).toContain(removed.status);
      const row = await rowOf(kept.documentId, ['tags']);
      const tags = idsOf(row?.tags);
      expect(tags).toContain(second);
      if (ofOther.status === 200) expect(tags).toContain(first);
      if (removed.status === 204) expect(tags).not.toContain(old);
      const isFollowed = async () => Number((await rowOf(kept.documentId))?.lifetime_value) === 5;
      await waitFor(isFollowed, 60_000, 'the value of the sale');
    }
  });

  it('answers 404 to a merge with one that is deleted meanwhile', async () => {
    for (let round = 0; round < 4; round += 1) {
      const [one, other] = await newPair();
      const [{ status }, gone] = await Promise.all([
        merge(one.documentId, other.documentId),
        site.request('DELETE', `${CRM}/contacts/${other.documentId}`),
      ]);
      expect([status, gone.status].sort()).toEqual(status === 200 ? [200, 404] : [204, 404]);
      expect(await rowOf(one.documentId)).not.toBeNull();
    }
  });

  it('has an import with the address of the other one find who is kept', async () => {
    for (let round = 0; round < 8; round += 1) {
      const [one, other] = await newPair({ email: null });
      const [{ status }, file] = await Promise.all([
        merge(one.documentId, other.documentId),
        site.request('POST', '/switchboard/contacts/import', {
          body: Buffer.from(`email,job_title\n${String(other.email)},Imported\n`),
          headers: { 'content-type': 'text/csv' },
        }),
      ]);
      expect([status, file.body.data.failed]).toEqual([200, 0]);
      const after = await rowOf(one.documentId);
      expect(after).toMatchObject({ email: other.email, job_title: 'Imported' });
      expect(await contacts().query('count', { where: { email: other.email } })).toBe(1);
    }
  });

  it('waits for a form or a sale that has found one of them by address', async () => {
    const [one, other] = await newPair();
    const finding = site.evaluate(
      async ({ strapi }, email) =>
        strapi.db.transaction(async () => {
          const customers = strapi.service('plugin::switchboard.customers');
          const documentId = await customers.attach({ email }, { create: false });
          await new Promise((resolve) => setTimeout(resolve, 500));
          return strapi.db.query('plugin::switchboard.contact').count({ where: { documentId } });
        }),
      String(other.email)
    );
    await sleep(150);
    const merging = merge(one.documentId, other.documentId);
    expect(await finding).toBe(1);
    expect((await merging).status).toBe(200);
  });
});
