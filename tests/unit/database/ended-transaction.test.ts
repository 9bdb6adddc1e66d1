import type { Tx } from '../../../server/src/database/db';
import { type SmallSite, startSmallSite } from '../../support/small-site';

const TABLE = 'switchboard_locations';

let site: SmallSite;
beforeEach(async () => {
  site = await startSmallSite();
});
afterEach(() => site.close());

it('an update of a transaction that has ended is not written into that of somebody else', async () => {
  let ended: Tx | undefined;
  await site.app.db.transaction(async (tx) => {
    ended = tx;
    await tx.table(TABLE).insert({ id: 1, name: 'a' });
  });
  await site.app.db.transaction(async () => {
    const late = ended?.updateRows(TABLE, [{ id: 1, set: { name: 'b' } }]);
    // The site's own watch on transactions (`watchTransactions`) has it written by itself instead.
    await expect(late).rejects.toThrow('Transaction query already complete');
  });
  expect(await (await site.app.db.current()).table(TABLE).pluck('name')).toEqual(['a']);
});
