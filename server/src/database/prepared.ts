import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import type { Executor, Pool, Statement } from './connection';
import { dropStatement } from './errors/database-error';

/** What is used of a connection of SQLite's driver. */
interface SqliteConnection {
  prepare(sql: string): { all(bindings: readonly unknown[]): unknown[] };
}

type Prepared = ReturnType<SqliteConnection['prepare']>;

/** By connection: a statement is its connection's, and goes with it. */
const prepared = new WeakMap<object, Map<string, Prepared>>();

const prepareOnce = (connection: SqliteConnection, sql: string): Prepared => {
  const statements = prepared.get(connection) ?? new Map<string, Prepared>();
  prepared.set(connection, statements);
  let statement = statements.get(sql);
  if (!statement) {
    statement = connection.prepare(sql);
    statements.set(sql, statement);
  }
  return statement;
};

/** SQLite knows no booleans, and its driver takes none. */
const asBinding = (value: Knex.RawBinding): unknown =>
  typeof value === 'boolean' ? Number(value) : value;

/**
 * Runs a statement on a connection that the caller holds. On SQLite it is prepared once: its driver's
 * query builder would do it anew each time, which costs many times what a small statement does. So
 * only for statements of which there are few different ones.
 * @returns what the driver answers, as `rowsOf` reads it
 */
export const runOnConnection = async (
  knex: Knex,
  connection: unknown,
  { sql, bindings }: Statement
): Promise<unknown> => {
  if (knex.client.driverName !== 'better-sqlite3') {
    return knex.raw(sql, bindings).connection(connection);
  }
  try {
    return prepareOnce(connection as SqliteConnection, sql).all(bindings.map(asBinding));
  } catch (error) {
    dropStatement(error);
    throw error;
  }
};

/** The same with the connection of a transaction, or one of the pool's. */
export const runPrepared = async (
  strapi: Core.Strapi,
  executor: Executor,
  { sql, bindings }: Statement
): Promise<unknown> => {
  if (strapi.db.dialect.client !== 'sqlite') return executor.raw(sql, bindings);
  const knex = executor as Knex;
  const pool = knex.client as Pool;
  const connection = await pool.acquireConnection();
  try {
    return await runOnConnection(knex, connection, { sql, bindings });
  } finally {
    await pool.releaseConnection(connection);
  }
};

/**
 * Runs a statement on a connection of its own, beside whatever the caller does next. The pool is
 * asked before this returns, so that a transaction that is opened next waits behind it. Never within
 * a transaction: who holds a connection must not wait for another one.
 */
export const runApart = async (
  strapi: Core.Strapi,
  statement: (knex: Knex) => Statement
): Promise<unknown> => {
  const knex = strapi.db.connection as Knex;
  const asked = statement(knex);
  const pool = knex.client as Pool;
  const connection = await pool.acquireConnection();
  try {
    return await runOnConnection(knex, connection, asked);
  } finally {
    await pool.releaseConnection(connection);
  }
};
