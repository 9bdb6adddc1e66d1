import type { Core } from '@strapi/strapi';
import { knex } from 'knex';
import { Database } from '../../../server/src/database/db';

const FOLLOW_UP = {
  name: 'queue',
  of: 'id, document_id, kind',
  into: 'id, kind',
  from: 'id, kind',
};

it.each([1, 2, 99, 100, 101, 250])('of %i rows on SQLite each has its own', async (count) => {
  const connection = knex({
    client: 'better-sqlite3',
    connection: { filename: ':memory:' },
    useNullAsDefault: true,
  });
  try {
    await connection.raw(
      'CREATE TABLE log (id INTEGER PRIMARY KEY AUTOINCREMENT, document_id TEXT, kind TEXT)'
    );
    await connection.raw('CREATE TABLE queue (id INTEGER PRIMARY KEY, kind TEXT)');
    await connection('log').insert({ document_id: 'earlier', kind: 'other' });
    const db = new Database({
      db: { connection, dialect: { client: 'sqlite' }, getSchemaName: () => undefined },
    } as unknown as Core.Strapi).pool;
    const rows = Array.from({ length: count }, (_row, at) => ({
      document_id: `document-${at}`,
      kind: `kind-${at}`,
    }));
    const ids = await db.insertForIds('log', rows, { followUp: FOLLOW_UP });
    expect([...ids.keys()]).toEqual(rows.map((row) => row.document_id));
    const log = await connection('log').whereNot({ document_id: 'earlier' }).orderBy('id');
    expect(log).toEqual(rows.map((row) => ({ id: ids.get(row.document_id), ...row })));
    expect(await connection('queue').orderBy('id')).toEqual(
      log.map(({ id, kind }) => ({ id, kind }))
    );
  } finally {
    await connection.destroy();
  }
});
