import type { Core } from '@strapi/strapi';
import { knex } from 'knex';
import { Database } from '../../../server/src/database/db';

interface Asked {
  sql: string;
  response?: unknown;
}

it('rows that follow others on MySQL are read by the key, so that no other row is locked', async () => {
  const connection = knex({ client: 'mysql2' });
  const asked: string[] = [];
  Object.assign(connection.client, {
    acquireConnection: async () => ({}),
    releaseConnection: async () => {},
    async _query(_connection: unknown, query: Asked) {
      asked.push(query.sql);
      query.response = [[{ id: 7, document_id: 'a', n: 16_777_216 }], []];
      return query;
    },
  });
  const db = new Database({
    db: { connection, dialect: { client: 'mysql' }, getSchemaName: () => undefined },
  } as unknown as Core.Strapi).pool;
  const followUp = {
    name: 'queue',
    of: 'id, document_id, webhook_id',
    into: 'id, group_id',
    from: 'id, webhook_id',
  };
  const ids = await db.insertForIds('log', [{ document_id: 'a', webhook_id: 1 }], { followUp });
  expect([...ids]).toEqual([['a', 7]]);
  expect(asked.at(-1)).toMatch(
    /^INSERT INTO queue .* FROM log made FORCE INDEX \(PRIMARY\) WHERE id/s
  );
});
