import { isUtf8 } from 'node:buffer';

import { inOneGo, type Steps } from '../../runtime/steps';
import { formatPath } from './json-path';
import { JsonFault, JsonReader, type JsonValue } from './json-reader';

export type { JsonObject, JsonValue } from './json-reader';

/** What is wrong with a body, in plain words. */
export interface BodyIssue {
  /** `line_items[0].sku`; `body` if it is the body as a whole. */
  field: string;
  /** A whole sentence that begins with the field. */
  message: string;
}

export type StrictJson =
  | {
      ok: true;
      value: JsonValue;
      /**
       * Fields whose number was written with a fraction that a double cannot hold, such as
       * `1.00000000000000000001`: they read as whole numbers and are none. Those of the record's
       * own fields; what lies deeper is its sender's.
       */
      roundedToInteger: ReadonlySet<string>;
    }
  | { ok: false; issue: BodyIssue };

const refuse = (field: string, rule: string): { ok: false; issue: BodyIssue } => ({
  ok: false,
  issue: { field, message: `${field} ${rule}` },
});

const hasByteOrderMark = (bytes: Uint8Array): boolean =>
  bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;

/** A body's raw bytes as text: strict UTF-8 without a byte order mark, not empty. */
export const readText = (
  bytes: Uint8Array
): { ok: true; text: string } | { ok: false; issue: BodyIssue } => {
  if (bytes.length === 0) return refuse('body', 'must not be empty: send a JSON object');
  if (hasByteOrderMark(bytes)) return refuse('body', 'must not begin with a byte order mark');
  if (!isUtf8(bytes)) return refuse('body', 'must be valid UTF-8');
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
  return { ok: true, text };
};

/** Values between two places at which the reading may stop: some tenths of a millisecond. */
const VALUES_A_STEP = 500;

/** `parseStrictJson`, step by step. */
export function* strictJsonSteps(
  bytes: Uint8Array,
  depth: number,
  nodes: number
): Steps<StrictJson> {
  const read = readText(bytes);
  if (!read.ok) return read;
  try {
    const reader = new JsonReader(read.text, { depth, nodes });
    while (!reader.readOn(VALUES_A_STEP)) yield;
    return { ok: true, value: reader.value, roundedToInteger: reader.roundedToInteger };
  } catch (error) {
    if (error instanceof JsonFault) return refuse(formatPath(error.path), error.rule);
    throw error;
  }
}

/**
 * Reads a body's raw bytes as JSON (RFC 8259): strict UTF-8 without a byte order mark, no key twice
 * in one object however it is escaped, nested at most `maxDepth` deep (the body is the first). `-0`
 * reads as 0. A key `__proto__` becomes an ordinary own property.
 * Never throws.
 */
export const parseStrictJson = (bytes: Uint8Array, maxDepth: number): StrictJson =>
  inOneGo(strictJsonSteps(bytes, maxDepth, Infinity));
