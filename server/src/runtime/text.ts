import { describeDatabaseError, isDatabaseError } from './errors';
import { redactText } from './redact';

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

/**
 * What of an error may go into a log: its name, its code and a capped message of one line, without
 * credentials. Never a driver's text: it holds the whole statement with its values, which are
 * payloads and secrets.
 */
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

/**
 * One line of text that every database takes, whatever a site's own fields hold: the write must not
 * fail because of a label.
 */
export const lineOf = (value: unknown, maximum: number): string => {
  if (typeof value !== 'string' && typeof value !== 'number') return '';
  const line = String(value)
    .replace(/\p{Surrogate}/gu, '\ufffd')
    .replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .trim();
  return line.length <= maximum ? line : [...line.slice(0, maximum * 2)].slice(0, maximum).join('');
};

/** ISO 8601 with an explicit numeric offset, such as `2030-01-31T09:15:00.000+00:00`. */
export const isoTime = (epochMs: number): string =>
  new Date(epochMs).toISOString().replace('Z', '+00:00');

/** The same for a stored time, which PostgreSQL and MySQL hand out as text. */
export const isoTimeOrNull = (epochMs: number | string | null | undefined): string | null =>
  epochMs === null || epochMs === undefined ? null : isoTime(Number(epochMs));

/** Whether a value is an object with keys: no null, no list. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const cellOf = (value: string): string =>
  /[",\r\n]/.test(value) ? `"${value.replace(/"/g, '""')}"` : value;

/** A line of a CSV file (RFC 4180), with its end. */
export const csvLine = (cells: readonly (string | number)[]): string =>
  `${cells.map((cell) => cellOf(String(cell))).join(',')}\r\n`;

/** A text as no spreadsheet takes it for a formula: one that begins like it gets an apostrophe in front. */
export const noFormula = (text: string): string => (/^[=+\-@\t\r]/.test(text) ? `'${text}` : text);

export const HOUR_MS = 3_600_000;

/** The beginning of the hour of UTC that a time is in; both in epoch milliseconds. */
export const hourOf = (at: number): number => Math.floor(at / HOUR_MS) * HOUR_MS;
