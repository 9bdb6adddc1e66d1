import { AsyncLocalStorage } from 'node:async_hooks';
import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { dropStatement } from '../runtime/text';
import { isLost, noteFault, type QueryClient, withConnection } from './transactions';

/** Runs statements: a knex instance or an open transaction. */
export type Executor = Knex | Knex.Transaction;

/** A query builder on a table of the site's schema (PostgreSQL sites may use one that is not public). */
export const table = (strapi: Core.Strapi, executor: Executor, name: string): Knex.QueryBuilder => {
  const schema = strapi.db.getSchemaName();
  const builder = schema ? executor(name).withSchema(schema) : executor(name);
  // Its errors may end in the host's log, with every value that was to be written.
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
  /** Its text and columns stay the same, and PostgreSQL, where planning takes longer than running it, may keep the plan. */
  isKept?: boolean;
}

export type Detached = <T>(work: () => T) => T;

/** Runs work in a clean asynchronous context from boot; otherwise a loop runs in a caller's ended transaction. */
export const createDetached = (): Detached => AsyncLocalStorage.snapshot() as Detached;

interface Prepared {
  readonly reader: boolean;
  all(bindings: readonly unknown[]): unknown[];
  run(bindings: readonly unknown[]): unknown;
}

/** By connection: a statement is its connection's, and goes with it. */
const prepared = new WeakMap<object, Map<string, Prepared>>();
/** Statements kept by a connection: different columns make different statements. */
const KEPT = 200;

const prepareOnce = (connection: { prepare(sql: string): Prepared }, sql: string): Prepared => {
  const statements = prepared.get(connection) ?? new Map<string, Prepared>();
  prepared.set(connection, statements);
  const known = statements.get(sql);
  if (known) return known;
  if (statements.size >= KEPT) statements.clear();
  const statement = connection.prepare(sql);
  statements.set(sql, statement);
  return statement;
};

/** Runs a SQLite statement that is prepared once and kept, so use it only for a small set of different statements. */
const runOnSqlite = (executor: Executor, connection: unknown, { sql, bindings }: Statement) => {
  try {
    const statement = prepareOnce(connection as Parameters<typeof prepareOnce>[0], sql);
    // SQLite knows no booleans, and its driver takes none.
    const values = bindings.map((value) => (typeof value === 'boolean' ? Number(value) : value));
    return statement.reader ? statement.all(values) : statement.run(values);
  } catch (error) {
    dropStatement(error);
    noteFault(executor, connection, error);
    throw error;
  }
};

/** A transaction that has ended is the query builder's to refuse. */
const isPrepared = (executor: Executor): boolean =>
  executor.client.driverName === 'better-sqlite3' &&
  !(executor as Partial<Knex.Transaction>).isCompleted?.() &&
  !isLost(executor);

/** PostgreSQL's connections, and whether they may keep statements. */
const keeping = new WeakMap<object, boolean>();
/** The names of kept statements, by their texts. */
const names = new Map<string, string>();

const nameOf = (sql: string): string => {
  const name = names.get(sql) ?? `switchboard_${names.size}`;
  names.set(sql, name);
  return name;
};

/** A pooler such as PgBouncer may send each transaction to another server process; the one that it names is made up. */
const isDirect = async (connection: { processID?: unknown }, client: QueryClient) => {
  const { response } = await client.query(connection, { sql: 'SELECT pg_backend_pid() AS pid' });
  const isSame = rowsOf<{ pid: number }>(response)[0]?.pid === connection.processID;
  keeping.set(connection, isSame);
  return isSame;
};

/** Takes over the wait for the answer to a statement that was sent; false: it does not. */
export type Leave<Answer> = (answer: Promise<Answer>) => boolean;

/**
 * Runs a statement without the query builder, which costs as much as one; asks the pool before this returns.
 * @param leave may take the answer to a kept statement; then the caller gets an empty one at once
 */
export const runPrepared = (
  executor: Executor,
  statement: Statement,
  leave?: Leave<unknown>
): Promise<unknown> => {
  const { sql, bindings, isKept = false } = statement;
  const isSqlite = executor.client.driverName === 'better-sqlite3';
  if (isSqlite && !isPrepared(executor)) return rawStatement(executor, sql, bindings).then();
  return withConnection(executor as Knex, async (connection, client) => {
    if (isSqlite) return runOnSqlite(executor, connection, statement);
    const held = connection as object;
    const mayKeep = isKept && (keeping.get(held) ?? (await isDirect(held, client)));
    const name = mayKeep && nameOf(sql);
    const query = { sql, bindings, ...(name && { options: { name } }) };
    const answer = client.query(connection, query).then(
      ({ response }) => response,
      (error: unknown) => {
        // The site may have discarded what the connection kept.
        if (isKept) keeping.set(held, false);
        dropStatement(error);
        throw error;
      }
    );
    return mayKeep && leave?.(answer) ? { rows: [] } : answer;
  });
};

/** Repeats a filler up to a power of two: so statements of few different lengths are prepared. */
export const padded = <T>(values: readonly T[], filler: T | undefined = values.at(-1)): T[] => {
  const length = 2 ** Math.ceil(Math.log2(Math.max(1, values.length)));
  return [...values, ...Array<T>(length - values.length).fill(filler as T)];
};

type Written = { changes: number; lastInsertRowid: number | bigint };

/** Runs a statement of SQLite's that writes, for each row of values. @returns how many rows each wrote, and its last id */
export const runForEach = async (
  executor: Executor,
  sql: string,
  rows: readonly (readonly Knex.RawBinding[])[]
): Promise<Written[]> => {
  if (isPrepared(executor)) {
    return withConnection(
      executor as Knex,
      (connection) =>
        rows.map((bindings) => runOnSqlite(executor, connection, { sql, bindings })) as Written[]
    );
  }
  const answers: Written[] = [];
  for (const bindings of rows)
    answers.push((await rawStatement(executor, sql, bindings)) as Written);
  return answers;
};

export interface StatementSize {
  /** Rows are put together into one statement up to this. */
  batch: number;
  /** A statement with one row that is larger would be refused. */
  largest: number;
}

const MIB = 1024 * 1024;
/** The rest of a statement besides its one large value. */
const OVERHEAD = 64 * 1024;

/**
 * Reads how large a statement may be. MySQL and MariaDB close the connection, and so lose the transaction, beyond
 * `max_allowed_packet` (16 MB; 1 MB on old servers). Others take any size that a text column holds.
 */
export const readStatementSize = async (executor: Executor, client: string) => {
  if (client !== 'mysql') return { batch: MIB, largest: 128 * MIB };
  const [row] = rowsOf<{ n: number | string }>(
    await executor.raw('SELECT @@max_allowed_packet AS n')
  );
  const packet = Number(row?.n) || 16 * MIB;
  // The driver writes values into the statement and escapes them: at most twice their size.
  return { batch: Math.min(MIB, Math.floor(packet / 4)), largest: packet - OVERHEAD };
};

const ESCAPED = /[\0\b\t\n\r\u001a"'\\]/g;

export const bytesInStatement = (text: string): number =>
  Buffer.byteLength(text) + (text.match(ESCAPED)?.length ?? 0);

export const bytesOf = (values: Readonly<Record<string, unknown>>): number => {
  let bytes = 0;
  for (const value of Object.values(values)) {
    bytes += typeof value === 'string' ? Buffer.byteLength(value) : 8;
  }
  return bytes;
};

/** Puts items together so that no part has more of them than `count` nor, but for a lone one, more bytes. */
export const inParts = <T>(
  items: readonly T[],
  limits: { count: number; bytes: number },
  sizeOf: (item: T) => number
): T[][] => {
  const parts: T[][] = [];
  let bytes = 0;
  for (const item of items) {
    const size = sizeOf(item);
    const part = parts.at(-1);
    if (part && part.length < limits.count && bytes + size <= limits.bytes) {
      part.push(item);
      bytes += size;
    } else {
      parts.push([item]);
      bytes = size;
    }
  }
  return parts;
};
