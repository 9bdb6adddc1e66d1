import { type SmallSite, startSmallSite } from '../../support/small-site';

const TABLE = 'switchboard_locations';

let site: SmallSite;
beforeEach(async () => {
  site = await startSmallSite();
});
afterEach(() => site.close());

const names = async (): Promise<string[]> =>
  (await site.app.db.current()).table(TABLE).pluck('name');

/** Adds a location, and tells which there are then. */
const preview = (name: string): Promise<string[]> =>
  site.app.db.rolledBack(async (tx) => {
    await tx.table(TABLE).insert({ name });
    return names();
  });

it('work that is rolled back is seen by itself and leaves nothing behind', async () => {
  expect(await preview('a')).toEqual(['a']);
  expect(await names()).toEqual([]);
});

it('nor does it within a transaction, which keeps what it had written', async () => {
  await site.app.db.transaction(async (tx) => {
    await tx.table(TABLE).insert({ name: 'kept' });
    expect(await preview('a')).toEqual(['kept', 'a']);
    expect(await names()).toEqual(['kept']);
  });
  expect(await names()).toEqual(['kept']);
});
