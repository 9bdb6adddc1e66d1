import { AsyncLocalStorage } from 'node:async_hooks';
import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { dropStatement } from './errors';
import { openingOurs } from './transactions';

/** A knex instance or an open transaction: whatever statements run on. */
export type Executor = Knex | Knex.Transaction;

/**
 * What statements have to run on here and now: the transaction of the current asynchronous context,
 * or the pool. With the host's single SQLite connection, a statement that bypasses the open
 * transaction waits for it for ever, so nothing in this plugin calls `strapi.db.connection` itself.
 */
export const currentExecutor = async (strapi: Core.Strapi): Promise<Executor> =>
  strapi.db.inTransaction() ? (await strapi.db.transaction()).get() : strapi.db.connection;

/** A query builder on a table of the site's schema (PostgreSQL sites may use one that is not public). */
export const table = (strapi: Core.Strapi, executor: Executor, name: string): Knex.QueryBuilder => {
  const schema = strapi.db.getSchemaName();
  const builder = schema ? executor(name).withSchema(schema) : executor(name);
  // What it throws may end in the host's log, with every value that was to be written.
  return builder.on('query-error', dropStatement);
};

/** A query over the rows of another one of ours; like `table`, its errors do not hold its values. */
export const fromQuery = (executor: Executor, query: Knex.QueryBuilder): Knex.QueryBuilder =>
  (executor as Knex)
    .queryBuilder()
    .from(query.clone().as('found'))
    .on('query-error', dropStatement);

/** The rows of a raw statement's answer, which each driver gives in a shape of its own. */
export const rowsOf = <T>(answer: unknown): T[] => {
  if (!Array.isArray(answer)) return (answer as { rows: T[] }).rows;
  return (Array.isArray(answer[0]) ? answer[0] : answer) as T[];
};

/** A raw statement of ours; like `table`, its errors do not hold its values. */
export const rawStatement = (
  executor: Executor,
  sql: string,
  bindings: readonly Knex.RawBinding[]
): Knex.Raw => executor.raw(sql, bindings).on('query-error', dropStatement) as Knex.Raw;

/** A statement with `?` for each binding, as knex's `raw` takes it. */
export interface Statement {
  sql: string;
  bindings: readonly Knex.RawBinding[];
}

/** Where connections come from: the pool, or in a transaction its own. */
export interface Pool {
  acquireConnection(): Promise<unknown>;
  releaseConnection(connection: unknown): Promise<void>;
}

export interface TransactionTools {
  trx: Knex.Transaction;
  /** Runs when the outermost transaction has committed; never when it rolls back. */
  onCommit(callback: () => void): void;
}

/**
 * Runs `work` in the current transaction, or in one of its own, committed when it resolves. One of its
 * own reads what is committed at each statement, on MySQL and MariaDB too.
 */
export const inTransaction = <T>(
  strapi: Core.Strapi,
  work: (tools: TransactionTools) => Promise<T>
): Promise<T> =>
  openingOurs(() =>
    strapi.db.transaction(({ trx, onCommit }) =>
      work({ trx: trx as Knex.Transaction, onCommit: onCommit as TransactionTools['onCommit'] })
    )
  ) as Promise<T>;

/** Runs `callback` after the current transaction commits, or at once where there is none. */
export const afterCommit = (strapi: Core.Strapi, callback: () => void): void => {
  if (!strapi.db.inTransaction()) {
    callback();
    return;
  }
  void strapi.db.transaction(async ({ onCommit }) => {
    onCommit(callback);
  });
};

export type Detached = <T>(work: () => T) => T;

/**
 * A runner that gives work a clean asynchronous context. Made at boot, outside any request: a loop
 * woken from a write would otherwise go on "inside" that write's finished transaction.
 */
export const createDetached = (): Detached => AsyncLocalStorage.snapshot() as Detached;
