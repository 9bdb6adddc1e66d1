import type { Core } from '@strapi/strapi';
import { knex } from 'knex';
import { Database } from '../../../server/src/database/db';

interface Sent {
  sql: string;
  options?: { name?: string };
  response?: unknown;
}

const GREETED_BY = 7;

/** A site on PostgreSQL with one connection. @param answering the server's process that answers */
const siteOn = (answering: number) => {
  const connection = knex({ client: 'pg' });
  const sent: Sent[] = [];
  let error: Error | undefined;
  const held = { processID: GREETED_BY };
  Object.assign(connection.client, {
    acquireConnection: async () => held,
    releaseConnection: async () => {},
    async _query(_connection: unknown, query: Sent) {
      sent.push(query);
      if (error && query.options?.name) throw error;
      const row = query.sql.includes('pg_backend_pid') ? { pid: answering } : { id: 1 };
      return Object.assign(query, { response: { rows: [row] } });
    },
  });
  const db = new Database({
    db: { connection, dialect: { client: 'postgres' }, getSchemaName: () => undefined },
  } as unknown as Core.Strapi).pool;
  const followUp = { name: 'queue', of: 'id, document_id', into: 'id', from: 'id' };
  return {
    insert: () => db.insertForIds('log', [{ document_id: 'a' }], { followUp }),
    failWith: (given: Error) => (error = given),
    names: () => sent.filter(({ sql }) => /INSERT/.test(sql)).map((one) => one.options?.name),
    questions: () => sent.filter(({ sql }) => sql.includes('pg_backend_pid')).length,
  };
};

describe('a statement that PostgreSQL may keep', () => {
  it('is kept by a connection to the server itself, which is found out once', async () => {
    const site = siteOn(GREETED_BY);
    expect([...(await site.insert())]).toEqual([['a', 1]]);
    await site.insert();
    const [name, again] = site.names();
    expect(name).toMatch(/^switchboard_\d+$/);
    expect(again).toBe(name);
    expect(site.questions()).toBe(1);
  });

  it('is not kept behind a pooler, where the next transaction may have another connection', async () => {
    const site = siteOn(GREETED_BY + 1);
    await site.insert();
    await site.insert();
    expect(site.names()).toEqual([undefined, undefined]);
  });

  it('is kept no more after an error: the site may have discarded it', async () => {
    const site = siteOn(GREETED_BY);
    await site.insert();
    site.failWith(new Error('prepared statement "switchboard_0" does not exist'));
    await expect(site.insert()).rejects.toThrow('refused');
    await site.insert();
    expect(site.names().at(-1)).toBeUndefined();
  });
});
