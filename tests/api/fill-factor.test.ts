import { randomUUID } from 'node:crypto';
import type { Core } from '@strapi/strapi';
import { knex, type Knex } from 'knex';
import { ensureTables } from '../../server/src/database/tables/plain-tables';
import { queueTable } from '../../server/src/queue/queue';
import { createDatabase, describeEach, dropDatabase, serverDatabases } from '../support/databases';
import { SERVERS } from '../support/servers';

const wanted = queueTable('some_queue', 'some_queue_due', {});
const postgres = serverDatabases().filter((kind) => kind === 'postgres');

/** Pages of a table keep room for updates, whoever has made the table, and whenever. */
describeEach(postgres, 'the fill factor of a table', () => {
  const role = `swb_t_${randomUUID().slice(0, 8)}`;
  let name: string;
  let connection: Knex;
  let warnings: string[];

  const boot = () =>
    ensureTables(
      {
        db: {
          connection,
          dialect: { client: 'postgres' },
          getSchemaName: () => undefined,
          getSchemaConnection: () => connection.schema,
        },
        log: { warn: (line: string) => warnings.push(line) },
      } as unknown as Core.Strapi,
      [wanted]
    );
  const options = async (): Promise<string[] | null> => {
    const { rows } = (await connection.raw(
      "SELECT reloptions FROM pg_class WHERE oid = 'some_queue'::regclass"
    )) as { rows: { reloptions: string[] | null }[] };
    return rows[0]?.reloptions ?? null;
  };

  beforeEach(async () => {
    warnings = [];
    name = await createDatabase('postgres');
    const { host, port, user, password } = SERVERS.postgres;
    connection = knex({
      client: 'pg',
      connection: { host, port, user, password, database: name },
      pool: { min: 1, max: 1 },
    });
  });
  afterEach(async () => {
    await connection.destroy();
    await dropDatabase('postgres', name);
  });

  it('is set with the table, and of a table that is there without one', async () => {
    await boot();
    expect(await options()).toEqual(['fillfactor=40']);
    await connection.raw('ALTER TABLE some_queue RESET (fillfactor)');
    await boot();
    expect(await options()).toEqual(['fillfactor=40']);
    expect(warnings).toEqual([]);
  });

  it('stays as the owner has set it', async () => {
    await boot();
    await connection.raw('ALTER TABLE some_queue SET (fillfactor = 90)');
    await boot();
    expect(await options()).toEqual(['fillfactor=90']);
  });

  it('stays as it is if the role of the site does not own the table', async () => {
    await boot();
    await connection.raw('ALTER TABLE some_queue RESET (fillfactor)');
    await connection.raw(`CREATE ROLE ${role}`);
    try {
      await connection.raw(`GRANT ALL ON some_queue TO ${role}`);
      await connection.raw(`SET ROLE ${role}`);
      await boot();
      expect(await options()).toBeNull();
      expect(warnings).toEqual([
        expect.stringContaining('the fill factor of some_queue could not be set to 40: '),
      ]);
    } finally {
      await connection.raw('RESET ROLE');
      await connection.raw(`DROP OWNED BY ${role}`);
      await connection.raw(`DROP ROLE ${role}`);
    }
  });
});
