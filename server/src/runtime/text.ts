import { createHash } from 'node:crypto';
import type { Core } from '@strapi/strapi';

const LONGEST = 200;

const oneLine = (text: string): string =>
  redactText(text.slice(0, 4 * LONGEST))
    .replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ')
    .slice(0, LONGEST);

/** A parser quotes what it could not read, and a validator the value it was given. */
const withoutQuotes = (error: Error): string =>
  error instanceof SyntaxError || error.name === 'SyntaxError'
    ? 'what was read is not well-formed'
    : error.message.replace(/,? but the final value was:[\s\S]*$/, '');

/** Name, code and a capped line of an error without credentials; no driver's text, which holds a statement's values. */
export const errorText = (error: unknown): string => {
  if (!(error instanceof Error)) return oneLine(String(error));
  if (isDatabaseError(error)) return `${error.name}: ${describeDatabaseError(error)}`;
  const { code } = error as { code?: unknown };
  const known = typeof code === 'string' ? [error.name, code] : [error.name];
  const text = isDatabaseError(error.cause)
    ? describeDatabaseError(error.cause)
    : withoutQuotes(error);
  return oneLine([...known, text].filter(Boolean).join(' '));
};

/** Text in which nothing has to be replaced. */
const PLAIN = /^[ -~\u00a0-\u2027\u202a-\ud7ff\ue000-\uffff]*$/;

/** One line of text that every database takes, so that no write fails because of a label. */
export const lineOf = (value: unknown, maximum: number): string => {
  if (typeof value !== 'string' && typeof value !== 'number') return '';
  const text = String(value);
  const kept = PLAIN.test(text)
    ? text
    : text.replace(/\p{Surrogate}/gu, '\ufffd').replace(/[\p{Cc}\u2028\u2029]+/gu, ' ');
  const line = kept.trim();
  return line.length <= maximum ? line : [...line.slice(0, maximum * 2)].slice(0, maximum).join('');
};

let last = { at: NaN, text: '' };

/** ISO 8601 with an explicit numeric offset, such as `2030-01-31T09:15:00.000+00:00`. */
export const isoTime = (epochMs: number): string => {
  // Rows that are written together have one time, and writing it takes long.
  if (epochMs !== last.at)
    last = { at: epochMs, text: withOffset(new Date(epochMs).toISOString()) };
  return last.text;
};

/** As `isoTime`, for a time as JavaScript writes it, which ends in `Z`. */
export const withOffset = (text: string): string => `${text.slice(0, -1)}+00:00`;

/** As `isoTime`, for a stored time, which PostgreSQL and MySQL hand out as text. */
export const isoTimeOrNull = (epochMs: number | string | null | undefined): string | null =>
  epochMs === null || epochMs === undefined ? null : isoTime(Number(epochMs));

/** True for an object with keys: no null, no list. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The value of a text in JSON; undefined if it is no JSON. */
export const jsonIn = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/** SHA-256 in hex digits. */
export const digestOf = (content: string | Buffer): string =>
  createHash('sha256').update(content).digest('hex');

const cellOf = (value: string): string =>
  /[",\r\n]/.test(value) ? `"${value.replace(/"/g, '""')}"` : value;

/** A line of a CSV file (RFC 4180), with its end. */
export const csvLine = (cells: readonly (string | number)[]): string =>
  `${cells.map((cell) => cellOf(String(cell))).join(',')}\r\n`;

/**
 * A text as no spreadsheet takes it for a formula: one that begins like it gets an apostrophe in front. So does one that
 * has apostrophes there already, because the reader of imports removes one.
 */
export const noFormula = (text: string): string =>
  /^'*[=+\-@\t\r\n＝＋－＠]/.test(text) ? `'${text}` : text;

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

/** The beginning of the hour of UTC that a time is in; both in epoch milliseconds. */
export const hourOf = (at: number): number => Math.floor(at / HOUR_MS) * HOUR_MS;

export const REDACTED = '***';

const WORDS =
  'token|secret|passw(?:or)?d|passwd|pwd|api[-_]?key|access[-_]?key|signature|sig|auth|authorization|session|jwt|key|code|credential';

/** `name=value` in a query, a fragment, a form or a cookie, also percent-encoded once. */
const PAIR = new RegExp(
  `((?:^|[?&#;,\\s]|%3F|%26|%23)(?:[\\w.-]*[-_.])?(?:access|refresh|id|client|auth|bearer|x-amz-)?[-_]?(?:${WORDS})(?:=|%3D))(?:(?!%26|%23)[^&#;,\\s"'<>])+`,
  'gi'
);
/** `https://user:password@host`. */
const USERINFO = /(?<![a-z0-9+.-])([a-z0-9+.-]+:\/\/)[^/?#\s]+@/gi;
/** A scheme of the header Authorization, wherever it stands. */
const SCHEME = /\b(bearer|basic)(\s+)[\w.~+/=-]{6,}/gi;
/** Credentials of known shapes: JWTs, and prefixes of known issuers. A JWT ends at the next one, to stay linear. */
const SHAPES =
  /\beyJ(?:(?!-eyJ)[\w-]){5,}\.[\w-]{5,}(?:\.[\w-]*)?|\b(?:whsec_|sk_(?:live|test)_|rk_(?:live|test)_|xox[abeprs]-|gh[opusr]_|github_pat_|glpat-|pos_secret_)[\w+/=-]+/g;

/** Redacts credentials in shown or logged text: tokens in URLs, schemes, known shapes. Linear in the text's length. */
export const redactText = (text: string): string =>
  text
    .replace(USERINFO, `$1${REDACTED}@`)
    .replace(SCHEME, `$1$2${REDACTED}`)
    .replace(PAIR, `$1${REDACTED}`)
    .replace(SHAPES, REDACTED);

/** Properties that drivers put on their errors; each has some of them. */
type DriverError = Error &
  Partial<
    Record<
      'code' | 'errno' | 'sql' | 'sqlState' | 'severity' | 'constraint' | 'table' | 'column',
      unknown
    >
  >;

/** How knex begins a message: with the statement, its values filled in. */
const STATEMENT =
  /^\s*(?:insert|update|delete|select|with|begin|commit|rollback|savepoint|release|create|alter|drop|lock|set|merge|replace)\b[\s\S]* - /i;

/** True for an error of a database or its driver: its text may hold a statement and its values. */
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
  // Messages of drivers and the pool about a connection; `isInfrastructureFault` reads them.
  /\b((?:Connection (?:terminated|ended|lost|is closed)|Client (?:was closed|has encountered)|Can't add new command|Cannot enqueue|Timeout acquiring a connection|Query read timeout)[\w :,.?']{0,160})$/i,
  /\b(for key '[\w.]{1,100}')$/,
  /- (Data too long for column '\w{1,64}') at row \d+$/,
];

const safePart = (message: string): string | undefined => {
  const end = message.slice(-300);
  return SAFE_PARTS.map((pattern) => pattern.exec(end)?.[1]).find(Boolean);
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

/** The origin of an error, without its text. */
export const framesOf = (error: Error): string =>
  (error.stack ?? '')
    .split('\n')
    .filter((line) => /^\s+at /.test(line))
    .join('\n');

/** Removes statement and values from a driver's error, in place, as another write may log it; names and codes stay. */
export const dropStatement = (error: unknown): void => {
  if (!isDatabaseError(error)) return;
  const message = describeDatabaseError(error);
  const frames = framesOf(error);
  // `detail` and `where` quote the row, `sql` and `sqlMessage` the statement.
  for (const key of ['detail', 'where', 'hint', 'internalQuery', 'sql', 'sqlMessage', 'bindings']) {
    delete (error as unknown as Record<string, unknown>)[key];
  }
  error.message = message;
  error.stack = `${error.name}: ${message}\n${frames}`;
};

/**
 * Writes a `debug` line; null if the log omits that level, so `` debugLog(app)?.(`webhook ${id} …`) `` builds no text.
 * Lines have the plugin's ids, states, causes and times; never a body, address, secret, person or a till's own id.
 */
export const debugLog = ({ log }: Pick<Core.Strapi, 'log'>): ((line: string) => void) | null =>
  // A site may give its log levels of its own, and then there may be no `debug`.
  log.isDebugEnabled?.() === true ? (line) => void log.debug(`switchboard: ${line}`) : null;

/** For a `catch`: logs what could not be done, and why. */
export const logFailure =
  ({ log }: Pick<Core.Strapi, 'log'>, what: string, level: 'error' | 'warn' | 'debug' = 'error') =>
  (error: unknown): void =>
    void log[level](`switchboard: ${what}: ${errorText(error)}`);

/** A line for each of many; `lineOf` is called only if the level is on. */
export const debugEach = <T>(
  site: Pick<Core.Strapi, 'log'>,
  items: Iterable<T>,
  lineOf: (item: T) => string
): void => {
  const debug = debugLog(site);
  if (!debug) return;
  for (const item of items) debug(lineOf(item));
};
