import { createAdminRole, createAdminUser } from '../support/accounts';
import { describeEach, anyDatabase } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import { admin, createItem, createTill, levelOf, settled } from './pos-till';

describeEach(anyDatabase(), 'importing items and contacts', (database) => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({ database });
    await admin(site, 'POST', '/locations', { name: 'North', code: 'north' });
  }, 120_000);
  afterAll(() => site?.stop(), 60_000);

  const upload = (kind: string, csv: string, query = '', as?: { token: string }) =>
    site.request('POST', `/switchboard/${kind}/import${query}`, {
      body: csv,
      headers: { 'content-type': 'text/csv' },
      ...(as && { as }),
    });
  const itemOf = async (sku: string) =>
    (await admin(site, 'GET', `/items?search=${sku}`)).find(
      (item: { sku: string }) => item.sku === sku
    );
  const rejects = async (id: number): Promise<string> =>
    (await site.request('GET', `/switchboard/imports/${id}/rejects`)).text;

  const ITEMS =
    'SKU;GTIN;Name;Low at;quantity;quantity.north\n' +
    'IMP-1;4006381333931;One;2;10;5\n' +
    'IMP-2;;Two;;;\n' +
    'IMP-3;;Three;x;1;\n' +
    ';;Nothing;;;\n' +
    'IMP-4;;"Four, ""4""";;1;2;9\n';

  it('a dry run says what would be, and changes nothing', async () => {
    const { status, body } = await upload('items', ITEMS, '?dry_run=true');
    expect(status).toBe(200);
    expect(body.data).toMatchObject({
      id: expect.any(Number),
      kind: 'items',
      state: 'done',
      dry_run: true,
      total: 5,
      created: 2,
      updated: 0,
      unchanged: 0,
      failed: 3,
    });
    expect(await admin(site, 'GET', '/items?search=IMP-')).toEqual([]);
    expect(await admin(site, 'GET', `/imports/${body.data.id}`)).toMatchObject({
      id: body.data.id,
      created: 2,
      failed: 3,
      made_by: expect.any(String),
      finished_at: expect.any(String),
    });
  });

  it('a dry run refuses what the import itself will: a GTIN that two rows give', async () => {
    // More than go in one transaction, and the same GTIN in another length.
    const between = Array.from({ length: 60 }, (_none, index) => `TWICE-${index},\n`).join('');
    const csv = `sku,gtin\nTWICE-A,96385074\n${between}TWICE-B,00000096385074\nTWICE-A,96385074\n`;
    const dry = await upload('items', csv, '?dry_run=true');
    expect(dry.body.data).toMatchObject({ total: 63, created: 61, updated: 1, failed: 1 });
    expect(dry.body.data.issues).toEqual([
      { line: 63, sku: 'TWICE-B', message: 'gtin: is taken already' },
    ]);
    const moved = 'sku,gtin\nMOVED-A,96385074\nMOVED-A,4006381333948\nMOVED-B,96385074\n';
    const free = await upload('items', moved, '?dry_run=true');
    expect(free.body.data).toMatchObject({ created: 2, updated: 1, failed: 0 });
    const { body } = await upload('items', csv);
    expect(body.data).toMatchObject({ created: 61, failed: 1, issues: dry.body.data.issues });
  });

  it('makes items with their opening, for which lines wait, and completes known ones', async () => {
    const till = await createTill(site);
    const sale = await till.sale([['IMP-1', 3]]);
    await settled(site, sale.body.event_id, 'needs_mapping');
    const { body } = await upload('items', ITEMS);
    expect(body.data).toMatchObject({ state: 'done', dry_run: false, created: 2, failed: 3 });
    expect(await itemOf('IMP-1')).toMatchObject({ gtin: '4006381333931', name: 'One', low_at: 2 });
    await settled(site, sale.body.event_id, 'applied');
    expect(await levelOf(site, 'IMP-1', 'main')).toBe(7);
    expect(await levelOf(site, 'IMP-1', 'north')).toBe(5);

    const again = await upload('items', 'sku,name,quantity\nIMP-1,Uno,99\nIMP-2,,\n');
    expect(again.body.data).toMatchObject({ total: 2, created: 0, updated: 1, unchanged: 1 });
    expect(await itemOf('IMP-1')).toMatchObject({ gtin: '4006381333931', name: 'Uno' });
    expect(await levelOf(site, 'IMP-1', 'main')).toBe(7);
  });

  it('gives rejected rows back as they came, with their line and their fault', async () => {
    await createItem(site, 'TAKEN', 0, { gtin: '5012345678900' });
    const { body } = await upload(
      'items',
      `${ITEMS}IMP-9;5012345678900;Nine;;;\nIMP-8;;Eight;;;\n`
    );
    expect(body.data).toMatchObject({ created: 1, updated: 1, unchanged: 1, failed: 4 });
    expect((await rejects(body.data.id)).split('\r\n')).toEqual([
      'line,error,SKU,GTIN,Name,Low at,quantity,quantity.north',
      expect.stringMatching(/^4,"?low_at: must be a number"?,IMP-3,,Three,x,1,$/),
      '5,sku: is missing,,,Nothing,,,',
      '6,has 7 cells for 6 columns,IMP-4,,"Four, ""4""",,1,2,9',
      expect.stringMatching(/^7,gtin: is taken already,IMP-9,/),
      '',
    ]);
    expect(body.data.issues).toHaveLength(4);
  });

  it('writes rejected rows so that no spreadsheet calculates them, and reads them again', async () => {
    const csv = 'sku,name,low_at\nFORMULA-1,"=HYPERLINK(""x"")",0x10\n';
    const { body } = await upload('items', csv);
    expect(body.data).toMatchObject({ created: 0, failed: 1 });
    const text = await rejects(body.data.id);
    expect(text).toContain(`FORMULA-1,"'=HYPERLINK(""x"")",0x10`);
    const mended = text.replace(/^line,error,/, '').replace(/^2,.*?(?=FORMULA)/m, '');
    const again = await upload('items', mended.replace('0x10', '3'));
    expect(again.body.data).toMatchObject({ created: 1, failed: 0 });
    expect(await itemOf('FORMULA-1')).toMatchObject({ name: '=HYPERLINK("x")', low_at: 3 });
  });

  it('imports nothing of a file that is not UTF-8, and names its first bad line', async () => {
    const rows = Array.from({ length: 200 }, (_none, at) => `LATIN-${at},Tee`).join('\n');
    const csv = Buffer.from(`sku,name\n${rows}\nLATIN-X,Caf\xe9\n`, 'latin1');
    for (const query of ['', '?dry_run=true', '?wait=false']) {
      const { status, body } = await upload('items', csv as unknown as string, query);
      expect([status, body.error.message]).toEqual([
        400,
        expect.stringContaining('file: line 202 is not UTF-8'),
      ]);
    }
    expect(await admin(site, 'GET', '/items?search=LATIN-')).toEqual([]);
  });

  /** Has the database fail as often as said for what is named so, and then work again. */
  const failFor = (name: string, times: number): Promise<void> =>
    site.evaluate(
      ({ strapi, state }, [named, often]) => {
        const fault = () => Object.assign(new Error('connection lost'), { code: 'ECONNRESET' });
        state.faults = { named, left: often };
        const fails = (given: unknown): boolean => {
          if (given !== state.faults.named || state.faults.left <= 0) return false;
          state.faults.left -= 1;
          return true;
        };
        if (state.failing) return;
        state.failing = true;
        const items = strapi.service('plugin::switchboard.stock-items');
        const createItem = items.createItem.bind(items);
        items.createItem = (input: { sku: string }) =>
          fails(input.sku) ? Promise.reject(fault()) : createItem(input);
        strapi.db.lifecycles.subscribe({
          models: ['plugin::switchboard.contact'],
          beforeCreate({ params }: { params: { data: { email?: string } } }) {
            if (fails(params.data.email)) throw fault();
          },
          beforeCreateMany({ params }: { params: { data: { email?: string }[] } }) {
            if (params.data.some(({ email }) => fails(email))) throw fault();
          },
        });
      },
      [name, times] as const
    );

  it.each([
    ['items', 'sku,name\nFAULT-1,One\nFAULT-2,Two\n', 'FAULT-1'],
    ['contacts', 'email,owner_id\nfault-1@x.test,1\nfault-2@x.test,1\n', 'fault-1@x.test'],
  ])('%s: a fault of the database is no fault of the row', async (kind, csv, name) => {
    // Two tries: together, and alone.
    await failFor(name, 2);
    for (const query of ['?dry_run=true', '']) {
      const { status, body } = await upload(kind, csv, query);
      expect([status, body.data.created, body.data.failed]).toEqual([200, 2, 0]);
      await failFor(name, 0);
    }
    const lost = csv.replaceAll('1', '3').replaceAll(',3', ',1').replace('One', 'Uno');
    await failFor(name.replace('1', '3'), 1_000);
    const { body } = await upload(kind, lost, '?wait=false');
    await waitFor(
      async () => (await admin(site, 'GET', `/imports/${body.data.id}`)).state !== 'running',
      60_000,
      'the import to end'
    );
    const job = await admin(site, 'GET', `/imports/${body.data.id}`);
    expect(job).toMatchObject({ state: 'failed', failed: 0, error: expect.any(String) });
    expect((await rejects(body.data.id)).trim().split('\r\n')).toHaveLength(1);
    await failFor(name, 0);
  });

  it('answers at once where nobody waits, and says how it gets on', async () => {
    const rows = Array.from({ length: 120 }, (_value, index) => `LATER-${index},Later ${index}`);
    const { status, body } = await upload('items', `sku,name\n${rows.join('\n')}\n`, '?wait=false');
    expect(status).toBe(202);
    const { id } = body.data;
    await waitFor(
      async () => (await admin(site, 'GET', `/imports/${id}`)).state === 'done',
      60_000,
      'the import to be done'
    );
    expect(await admin(site, 'GET', `/imports/${id}`)).toMatchObject({ total: 120, created: 120 });
  });

  it('tries contacts without making any, and keeps their rejects', async () => {
    const csv = 'email,first_name,tags\nann@x.test,Ann,New\nbad,Bob,\nANN@x.test,Anna,\n';
    const dry = await upload('contacts', csv, '?dry_run=true');
    expect(dry.body.data).toMatchObject({ dry_run: true, total: 3, created: 1, failed: 1 });
    const found = await site.request('GET', '/api/fw-crm/v1/contacts?email=ann@x.test');
    expect(found.body.data).toEqual([]);
    const tags = await site.request('GET', '/api/fw-crm/v1/tags');
    expect(tags.body.data).toEqual([]);
    const { body } = await upload('contacts', csv);
    expect(body.data).toMatchObject({ kind: 'contacts', created: 1, failed: 1 });
    expect(await rejects(body.data.id)).toMatch(/^line,error,email,first_name,tags\r\n3,.*bad,Bob/);
    const known = await upload('contacts', csv, '?dry_run=true');
    expect(known.body.data).toMatchObject({ created: 0, failed: 1 });
  });

  it.each([
    ['items', '', 400],
    ['items', 'name\nx\n', 400],
    ['items', 'sku,price\nx,1\n', 400],
    ['items', 'sku,sku\nx,1\n', 400],
    ['contacts', 'name\nx\n', 400],
  ])('%s: the header of %j is refused', async (kind, csv, expected) => {
    for (const query of ['', '?dry_run=true', '?wait=false']) {
      const { status, body } = await upload(kind, csv, query);
      expect(status).toBe(expected);
      expect(body.error.message).toMatch(/^header: /);
    }
  });

  it('refuses other options and types, and knows no other import', async () => {
    expect((await upload('items', 'sku\nx\n', '?dry_run=maybe')).status).toBe(400);
    const json = await site.request('POST', '/switchboard/items/import', { body: {} });
    expect(json.status).toBe(400);
    expect((await site.request('GET', '/switchboard/imports/999999')).status).toBe(404);
    expect((await site.request('GET', '/switchboard/imports/999999/rejects')).status).toBe(404);
  });

  it('is for those who may import, and shows each their own kind', async () => {
    const done = await upload('items', 'sku\nMINE\n');
    const role = await createAdminRole(site, ['plugin::switchboard.crm.import']);
    const reader = await createAdminUser(site, { role });
    const denied = await upload('items', 'sku\nTHEIRS\n', '', reader);
    expect(denied.status).toBe(403);
    const path = `/switchboard/imports/${done.body.data.id}`;
    expect((await site.request('GET', path, { as: reader })).status).toBe(403);
  });
});
