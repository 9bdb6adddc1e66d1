import { isTransient } from '../retry';

/** PostgreSQL: connection, authorization, resources, operator intervention, system; read-only; locks. */
const POSTGRES = /^(?:08|28|3D|53|57|58)[0-9A-Z]{3}$|^25006$|^25P03$|^55P03$/;
const SQLITE =
  /^SQLITE_(?:BUSY|LOCKED|FULL|IOERR|CANTOPEN|READONLY|PROTOCOL|NOMEM|CORRUPT|NOTADB)(?:_|$)/;
const SYSTEM =
  /^(?:ECONN(?:REFUSED|RESET|ABORTED)|ETIMEDOUT|EPIPE|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ENOSPC)$/;
const MYSQL = new Set([
  'ER_ACCESS_DENIED_ERROR',
  'ER_BAD_DB_ERROR',
  'ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION',
  'ER_CONNECTION_KILLED',
  'ER_CON_COUNT_ERROR',
  'ER_DBACCESS_DENIED_ERROR',
  'ER_DISK_FULL',
  'ER_FORCING_CLOSE',
  'ER_NORMAL_SHUTDOWN',
  'ER_OPTION_PREVENTS_STATEMENT',
  'ER_OUTOFMEMORY',
  'ER_OUT_OF_RESOURCES',
  'ER_QUERY_INTERRUPTED',
  'ER_QUERY_TIMEOUT',
  'ER_RECORD_FILE_FULL',
  'ER_SERVER_SHUTDOWN',
  'ER_STATEMENT_TIMEOUT',
  'ER_TOO_MANY_USER_CONNECTIONS',
  'ER_USER_LIMIT_REACHED',
]);
/** What drivers and the pool say without a code. */
const MESSAGES =
  /connection (?:terminated|ended|lost)|not queryable|closed state|acquiring a connection|acquire a connection|transaction query already complete|client was closed|connection is closed/i;

/**
 * Whether the database is away, locked, full or read-only, or the connection to it broke: nobody's
 * fault, so it counts no try. What a row itself is
 * refused for is not among these.
 */
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
