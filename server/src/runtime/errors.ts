/** What drivers put on their errors; each has some of it. */
interface DriverError extends Error {
  code?: unknown;
  errno?: unknown;
  sql?: unknown;
  sqlState?: unknown;
  severity?: unknown;
  constraint?: unknown;
  table?: unknown;
  column?: unknown;
}

/** How knex begins a message: with the statement, its values filled in. */
const STATEMENT =
  /^\s*(?:insert|update|delete|select|with|begin|commit|rollback|savepoint|release|create|alter|drop|lock|set|merge|replace)\b[\s\S]* - /i;

/** Whether an error is of a database or its driver: its text may hold a statement and its values. */
export const isDatabaseError = (error: unknown): error is DriverError => {
  if (!(error instanceof Error)) return false;
  const { code, errno, sql, sqlState, severity, name, message } = error as DriverError;
  return (
    name === 'SqliteError' ||
    name === 'KnexTimeoutError' ||
    sql !== undefined ||
    sqlState !== undefined ||
    (severity !== undefined && typeof code === 'string') ||
    (typeof code === 'string' && /^(?:SQLITE_|ER_)/.test(code) && code !== 'ER_') ||
    (errno !== undefined && typeof code === 'string' && code.startsWith('PROTOCOL_')) ||
    STATEMENT.test(message)
  );
};

/** The only parts of a driver's text that never hold a value: names that the schema has. */
const SAFE_PARTS = [
  /\b((?:UNIQUE|NOT NULL|CHECK|FOREIGN KEY) constraint failed(?:: [\w., ]{1,200})?)$/,
  /\b(no such (?:table|column): [\w.]{1,100})$/,
  /\b(database is locked)$/,
  // What drivers and the pool say of a connection; `isInfrastructureFault` reads it.
  /\b((?:Connection (?:terminated|ended|lost|is closed)|Client (?:was closed|has encountered)|Can't add new command|Cannot enqueue|Timeout acquiring a connection|Query read timeout)[\w :,.?']{0,160})$/i,
  /\b(for key '[\w.]{1,100}')$/,
  /- (Data too long for column '\w{1,64}') at row \d+$/,
];

const safePart = (message: string): string | undefined => {
  const end = message.slice(-300);
  for (const pattern of SAFE_PARTS) {
    const found = pattern.exec(end)?.[1];
    if (found) return found;
  }
  return undefined;
};

const word = (value: unknown): string | undefined =>
  typeof value === 'string' && /^[\w.:-]{1,100}$/.test(value) ? value : undefined;

/** A database's error in words that hold no value: code, constraint, table, column. */
export const describeDatabaseError = (error: DriverError): string => {
  const named = (['constraint', 'table', 'column'] as const).flatMap((key) => {
    const value = word(error[key]);
    return value ? [`${key} ${value}`] : [];
  });
  const parts = [word(error.code), safePart(error.message), ...named].filter(Boolean);
  return `the database refused a statement${parts.length > 0 ? ` (${parts.join(', ')})` : ''}`;
};

/** Where an error came from, without its text. */
export const framesOf = (error: Error): string =>
  (error.stack ?? '')
    .split('\n')
    .filter((line) => /^\s+at /.test(line))
    .join('\n');

/**
 * Takes the statement and its values out of a driver's error, in place: name, codes and the names
 * of the schema stay, so that whoever catches it can still tell what happened. What is thrown
 * through somebody else's write ends in the host's log as it is.
 */
export const dropStatement = (error: unknown): void => {
  if (!isDatabaseError(error)) return;
  const { code, severity } = error;
  const message = describeDatabaseError(error);
  const frames = framesOf(error);
  // `detail` and `where` quote the row, `sql` and `sqlMessage` the statement.
  for (const key of ['detail', 'where', 'hint', 'internalQuery', 'sql', 'sqlMessage', 'bindings']) {
    delete (error as unknown as Record<string, unknown>)[key];
  }
  error.message = message;
  error.stack = `${error.name}: ${message}\n${frames}`;
  Object.assign(error, { code, ...(severity !== undefined && { severity }) });
};
