import type { ImportJob } from '../../shared/contracts/imports';
import type { LevelCheck } from '../../shared/contracts/stock';
import { createAdminRole, createAdminUser } from '../support/accounts';
import { databases, describeEach, itOnce } from '../support/databases';
import { type Site, startSite } from '../support/site';
import { waitFor } from '../support/wait';
import { admin, createItem, levelOf, rebuild } from './pos-till';

/** More than are looked at in one transaction. */
const ITEMS = 120;

describeEach(databases(), 'checking all levels', (database) => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({ database });
    const rows = Array.from({ length: ITEMS }, (_none, index) => `MANY-${index},7`);
    const { body } = await site.request('POST', '/switchboard/items/import', {
      body: `sku,quantity\n${rows.join('\n')}\n`,
      headers: { 'content-type': 'text/csv' },
    });
    expect(body.data).toMatchObject({ created: ITEMS, failed: 0 });
    await createItem(site, 'SAID, "SO"', 12);
  }, 240_000);
  afterAll(() => site?.stop(), 60_000);

  const skew = (sku: string, by: number): Promise<unknown> =>
    site.control('sql', {
      statement: `UPDATE switchboard_levels SET quantity = quantity + ${by} WHERE item_id = (SELECT id FROM switchboard_items WHERE sku = '${sku}')`,
    });
  const start = (body: unknown = {}): Promise<LevelCheck> =>
    admin(site, 'POST', '/levels/check', body, 202);
  const ended = (id: number): Promise<ImportJob> =>
    waitFor(
      async () => {
        const job: ImportJob = await admin(site, 'GET', `/imports/${id}`);
        return job.state === 'running' ? undefined : job;
      },
      60_000,
      'the check to end'
    );
  const check = async (body: unknown = {}): Promise<ImportJob> => ended((await start(body)).id);
  const differences = async (id: number): Promise<string[]> => {
    const { text } = await site.request('GET', `/switchboard/imports/${id}/rejects`);
    return text.split('\r\n');
  };
  const HEADER = 'level_id,sku,location,quantity,should_be';

  it('answers at once, with how many levels there are to look at', async () => {
    const job = await start();
    expect(job).toMatchObject({
      id: expect.any(Number),
      kind: 'levels',
      state: 'running',
      dry_run: true,
      total: 0,
      levels: ITEMS + 1,
      made_by: expect.any(String),
      finished_at: null,
    });
    expect(await ended(job.id)).toMatchObject({
      state: 'done',
      total: ITEMS + 1,
      unchanged: ITEMS + 1,
      updated: 0,
      created: 0,
      failed: 0,
      error: null,
      finished_at: expect.any(String),
    });
    expect(await differences(job.id)).toEqual([HEADER, '']);
  });

  itOnce(database)('lists no text that a spreadsheet would take for a formula', async () => {
    await createItem(site, '=1+1', 3);
    await skew('=1+1', -5);
    const { id } = await check({ mend: true });
    expect(await differences(id)).toEqual([
      HEADER,
      expect.stringMatching(/^\d+,'=1\+1,\w+,-2,3$/),
      '',
    ]);
    await site.control('sql', {
      statement: `DELETE FROM switchboard_levels WHERE item_id = (SELECT id FROM switchboard_items WHERE sku = '=1+1')`,
    });
  });

  it('finds what differs and changes nothing, then mends it', async () => {
    await skew('MANY-3', 5);
    await skew(`MANY-${ITEMS - 1}`, -9);
    await skew('SAID, "SO"', 1);
    const found = [
      HEADER,
      expect.stringMatching(/^\d+,MANY-3,main,12,7$/),
      expect.stringMatching(/^\d+,MANY-119,main,-2,7$/),
      expect.stringMatching(/^\d+,"SAID, ""SO""",main,13,12$/),
      '',
    ];
    const checked = await check();
    expect(checked).toMatchObject({ total: ITEMS + 1, updated: 3, unchanged: ITEMS - 2 });
    expect(await differences(checked.id)).toEqual(found);
    expect(await levelOf(site, 'MANY-3')).toBe(12);
    // The route that waits says the same, as it always did.
    expect(await rebuild(site)).toEqual({
      levels: ITEMS + 1,
      differences: [
        expect.objectContaining({ sku: 'MANY-3', location: 'main', quantity: 12, should_be: 7 }),
        expect.objectContaining({ sku: 'MANY-119', quantity: -2, should_be: 7 }),
        expect.objectContaining({ sku: 'SAID, "SO"', quantity: 13, should_be: 12 }),
      ],
      mended: false,
    });

    const mended = await check({ mend: true });
    expect(mended).toMatchObject({ dry_run: false, state: 'done', updated: 3 });
    expect(await differences(mended.id)).toEqual(found);
    expect(await levelOf(site, 'MANY-3')).toBe(7);
    expect(await levelOf(site, `MANY-${ITEMS - 1}`)).toBe(7);
    expect(await check()).toMatchObject({ updated: 0, unchanged: ITEMS + 1 });
  });

  itOnce(database)('says of one whose process has died that it is to be run again', async () => {
    const { id } = await check();
    await site.control('sql', {
      statement: `UPDATE switchboard_imports SET state = 'running', finished_at = NULL, seen_at = 0 WHERE id = ${id}`,
    });
    expect(await admin(site, 'GET', `/imports/${id}`)).toMatchObject({
      state: 'failed',
      error: 'The process that checked the levels has ended. Check them again.',
    });
  });

  itOnce(database)('is for those who may change the stock, as the rebuild is', async () => {
    const { id } = await check();
    const actions = (...names: string[]) => names.map((name) => `plugin::switchboard.${name}`);
    const asUserWith = async (...names: string[]) =>
      createAdminUser(site, { role: await createAdminRole(site, actions(...names)) });
    const reader = await asUserWith('stock.read', 'stock.import');
    const keeper = await asUserWith('stock.manage');
    const statuses = async (as: { token: string }): Promise<number[]> => [
      (await site.request('POST', '/switchboard/levels/check', { as, body: {} })).status,
      (await site.request('GET', `/switchboard/imports/${id}`, { as })).status,
      (await site.request('GET', `/switchboard/imports/${id}/rejects`, { as })).status,
    ];
    expect(await statuses(reader)).toEqual([403, 403, 403]);
    expect(await statuses(keeper)).toEqual([202, 200, 200]);
  });

  itOnce(database)('refuses what is no choice', async () => {
    await admin(site, 'POST', '/levels/check', { mend: 'yes' }, 400);
  });
});
