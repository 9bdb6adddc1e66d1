import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import type { App } from '../../../server/src/app';
import { Database } from '../../../server/src/database/db';
import { matchingDeliveries } from '../../../server/src/webhooks/deliveries/log';
import { DELIVERIES_TABLE } from '../../../server/src/webhooks/tables';
import { openMemoryDatabase } from '../../support/memory-database';

/** As many as are read together, and some that come after them. */
const AT_ONCE = 1000;
const LATER = 5;

interface SqliteConnection {
  prepare(sql: string): { run(...values: unknown[]): unknown };
}

describe('all deliveries of the log that a filter leaves', () => {
  let connection: Knex;
  beforeEach(async () => {
    connection = openMemoryDatabase();
    await connection.schema.createTable(DELIVERIES_TABLE, (t) => {
      t.increments('id');
      t.integer('webhook_id');
      t.bigInteger('created_at');
      t.string('site_instance');
      for (const name of ['document_id', 'error', 'subject_type', 'subject_label']) t.string(name);
    });
    const rows = Array.from({ length: AT_ONCE + LATER }, (_, at) => ({
      id: at + 1,
      webhook_id: 1,
      created_at: at + 1,
    }));
    await connection.batchInsert(DELIVERIES_TABLE, rows, 100);
  });
  afterEach(() => connection.destroy());

  const read = async (): Promise<number[]> => {
    const database = new Database({
      db: { connection, dialect: { client: 'sqlite' }, getSchemaName: () => undefined },
    } as unknown as Core.Strapi);
    const app = {
      db: { client: 'sqlite', current: async () => database.pool },
      site: { isForeign: () => false },
    } as unknown as App;
    const selection = { filter: {}, search: null };
    const found: number[] = [];
    for await (const part of matchingDeliveries(app, selection, AT_ONCE + LATER)) {
      found.push(...part.map(({ id }) => id));
    }
    return found;
  };

  it('are read part by part, the newest first', async () => {
    const all = Array.from({ length: AT_ONCE + LATER }, (_, at) => AT_ONCE + LATER - at);
    expect(await read()).toEqual(all);
  });

  it('include those after a part of which a row was removed while it was read', async () => {
    const raw = (await connection.client.acquireConnection()) as SqliteConnection;
    await connection.client.releaseConnection(raw);
    const removed = AT_ONCE + LATER - 3;
    // Between the statement that finds the places of a part and the one that reads its rows.
    connection.once('query-response', () => {
      raw.prepare(`DELETE FROM ${DELIVERIES_TABLE} WHERE id = ?`).run(removed);
    });
    const found = await read();
    expect(found).not.toContain(removed);
    expect(found).toHaveLength(AT_ONCE + LATER - 1);
    expect(found.at(-1)).toBe(1);
  });
});
