import type { Core } from '@strapi/strapi';
import { Database, type Tx } from '../../../server/src/database/db';
import { readTrialCounts, saveTrialCounts } from '../../../server/src/stock/counts';
import { TRIAL_COUNTS_TABLE } from '../../../server/src/stock/tables';
import { openMemoryDatabase } from '../../support/memory-database';

it('an older count of test mode that commits later leaves the newer one', async () => {
  const connection = openMemoryDatabase();
  try {
    await connection.schema.createTable(TRIAL_COUNTS_TABLE, (t) => {
      t.increments('id');
      t.integer('item_id');
      t.integer('location_id');
      t.bigInteger('at');
      t.unique(['item_id', 'location_id']);
    });
    const strapi = {
      db: { connection, dialect: { client: 'sqlite' }, getSchemaName: () => undefined },
    } as unknown as Core.Strapi;
    const db = new Database(strapi).pool as Tx;
    const place = { item: 1, location: 2 };
    for (const at of [50, 70, 60]) await saveTrialCounts(db, [{ ...place, at }]);
    expect([...(await readTrialCounts(db, [place])).values()]).toEqual([70]);
  } finally {
    await connection.destroy();
  }
});
