import { setTimeout as sleep } from 'node:timers/promises';
import type { Knex } from 'knex';
import { errors } from '@strapi/utils';
import { errorText } from '../runtime/text';

/** Codes of errors after which the same transaction may simply be run again. */
const TRANSIENT = new Set([
  '40P01', // PostgreSQL: deadlock detected
  '40001', // PostgreSQL: serialization failure
  'ER_LOCK_DEADLOCK',
  'ER_LOCK_WAIT_TIMEOUT',
  'ER_CHECKREAD', // MariaDB: the row has changed since it was read
  'SQLITE_BUSY',
  'SQLITE_BUSY_SNAPSHOT',
]);

const isTransient = (error: unknown): boolean => {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown };
  return TRANSIENT.has(String(code ?? '')) || (cause !== undefined && isTransient(cause));
};

/** PostgreSQL: an earlier error, possibly a deadlock that the host hides by this one, aborted the transaction. */
const hidesAnother = (error: unknown): boolean =>
  (error as { code?: unknown } | null)?.code === '25P02';

/** Repeats a whole transaction after a deadlock. Never wrap a part of one: the rest is lost after such an error. */
export const withTransientRetry = async <T>(work: () => Promise<T>, tries = 10): Promise<T> => {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (attempt >= tries || !(isTransient(error) || hidesAnother(error))) throw error;
      await sleep(Math.min(5 * 2 ** attempt, 500) * (0.5 + Math.random()));
    }
  }
};

const CODES = new Set(['23505', 'ER_DUP_ENTRY', 'SQLITE_CONSTRAINT_UNIQUE']);

/** True if a unique index refused a statement. @param index matches its name, or its columns on SQLite */
export const isDuplicate = (error: unknown, index?: RegExp): boolean => {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  if (!CODES.has(String(code)) && !/unique constraint/i.test(String(message))) return false;
  return index?.test(String(message)) ?? true;
};

const REFERENCE = /^(23503|ER_NO_REFERENCED_ROW_2|SQLITE_CONSTRAINT_FOREIGNKEY)$/;

/** True if a row refers to one that another writer has deleted since it was looked for. */
export const isReferenceGone = (error: unknown): boolean =>
  REFERENCE.test(String((error as { code?: unknown } | null)?.code));

/** PostgreSQL: connection, authorization, resources, operator intervention, system; read-only; locks. */
const POSTGRES = /^(?:08|28|3D|53|57|58)[0-9A-Z]{3}$|^25006$|^25P03$|^55P03$/;
const SQLITE =
  /^SQLITE_(?:BUSY|LOCKED|FULL|IOERR|CANTOPEN|READONLY|PROTOCOL|NOMEM|CORRUPT|NOTADB)(?:_|$)/;
const SYSTEM =
  /^(?:ECONN(?:REFUSED|RESET|ABORTED)|ETIMEDOUT|EPIPE|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ENOSPC)$/;
const MYSQL = new Set([
  ...['ER_ACCESS_DENIED_ERROR', 'ER_BAD_DB_ERROR', 'ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION'],
  ...['ER_CONNECTION_KILLED', 'ER_CON_COUNT_ERROR', 'ER_DBACCESS_DENIED_ERROR', 'ER_DISK_FULL'],
  ...['ER_FORCING_CLOSE', 'ER_NORMAL_SHUTDOWN', 'ER_OPTION_PREVENTS_STATEMENT', 'ER_OUTOFMEMORY'],
  ...['ER_OUT_OF_RESOURCES', 'ER_QUERY_INTERRUPTED', 'ER_QUERY_TIMEOUT', 'ER_RECORD_FILE_FULL'],
  ...['ER_SERVER_SHUTDOWN', 'ER_STATEMENT_TIMEOUT', 'ER_TOO_MANY_USER_CONNECTIONS'],
  ...['ER_USER_LIMIT_REACHED'],
]);
/** Messages of drivers and the pool without a code. */
const MESSAGES =
  /connection (?:terminated|ended|lost)|not queryable|closed state|acquiring a connection|acquire a connection|transaction query already complete|client was closed|connection is closed/i;

/** True if the database is unreachable, locked, full or read-only; then no attempt is counted. False for row errors. */
export const isInfrastructureFault = (error: unknown): boolean => {
  if (isTransient(error)) return true;
  if (!(error instanceof Error)) return false;
  const { code, errors, cause } = error as { code?: unknown; errors?: unknown; cause?: unknown };
  if (error.name === 'KnexTimeoutError' || MESSAGES.test(error.message)) return true;
  if (typeof code === 'string') {
    if (POSTGRES.test(code) || SQLITE.test(code) || SYSTEM.test(code)) return true;
    if (MYSQL.has(code) || code.startsWith('PROTOCOL_')) return true;
  }
  // Several addresses of one host were tried, or a layer above put the driver's error into its own.
  if (Array.isArray(errors) && errors.length > 0) return errors.every(isInfrastructureFault);
  return cause !== undefined && isInfrastructureFault(cause);
};

const EVERY_MS = 60_000;

/** Logs errors of a loop. Repeated database faults get one line at first and one a minute, with a count. */
export const createFaultLog = (log: { error(message: string): void }, now = Date.now) => {
  let lastAt = Number.NEGATIVE_INFINITY;
  let unsaid = 0;
  return (what: string, error: unknown): void => {
    if (isInfrastructureFault(error)) {
      if (now() - lastAt < EVERY_MS) {
        unsaid += 1;
        return;
      }
      lastAt = now();
    }
    const more = unsaid > 0 ? ` (and ${unsaid} times more since the last such line)` : '';
    unsaid = 0;
    log.error(`${what}: ${errorText(error)}${more}`);
  };
};

/** The first row of a query. @throws NotFoundError (404), `<what> not found`, if there is none */
export const firstOrNotFound = async <Row>(
  query: Knex.QueryBuilder,
  what: string
): Promise<Row> => {
  const row = (await query.first()) as Row | undefined;
  if (!row) throw new errors.NotFoundError(`${what} not found`);
  return row;
};

export const countOf = async (query: Knex.QueryBuilder): Promise<number> => {
  const [row] = (await query.count({ n: '*' })) as { n: number | string }[];
  return Number(row?.n ?? 0);
};
