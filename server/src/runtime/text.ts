import { describeDatabaseError, isDatabaseError } from '../database/errors';
import { redactText } from '../secrets/redact';

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
