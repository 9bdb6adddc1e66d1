import { knex, type Knex } from 'knex';

/** An empty SQLite in memory, for tests that make the tables which they need; to be destroyed by them. */
export const openMemoryDatabase = (): Knex =>
  knex({
    client: 'better-sqlite3',
    connection: { filename: ':memory:' },
    useNullAsDefault: true,
  });
