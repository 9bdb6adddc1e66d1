import { AsyncLocalStorage } from 'node:async_hooks';
import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { dropStatement } from '../runtime/errors';

/** A knex instance or an open transaction: whatever statements run on. */
export type Executor = Knex | Knex.Transaction;

/** A query builder on a table of the site's schema (PostgreSQL sites may use one that is not public). */
export const table = (strapi: Core.Strapi, executor: Executor, name: string): Knex.QueryBuilder => {
  const schema = strapi.db.getSchemaName();
  const builder = schema ? executor(name).withSchema(schema) : executor(name);
  // What it throws may end in the host's log, with every value that was to be written.
  return builder.on('query-error', dropStatement);
};

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

export type Detached = <T>(work: () => T) => T;

/**
 * A runner that gives work a clean asynchronous context. Made at boot, outside any request: a loop
 * woken from a write would otherwise go on "inside" that write's finished transaction.
 */
export const createDetached = (): Detached => AsyncLocalStorage.snapshot() as Detached;
