import type { Core } from '@strapi/strapi';
import { type Executor, rowsOf } from './connection';

/** What one statement may carry, in bytes of values. */
export interface StatementSize {
  /** Rows are put together into one statement up to this. */
  batch: number;
  /** A statement with one row that is larger would be refused. */
  largest: number;
}

const MIB = 1024 * 1024;
/** The rest of a statement beside its one large value. */
const OVERHEAD = 64 * 1024;

const sizes = new WeakMap<Core.Strapi, StatementSize>();

/**
 * Asked once a process. MySQL and MariaDB refuse a statement beyond `max_allowed_packet` (16 MB, 1 MB
 * on old servers) and close the connection, which costs the caller the transaction: so it has to be
 * known before. The others take whatever a text column holds.
 */
export const statementSize = async (
  strapi: Core.Strapi,
  executor: Executor
): Promise<StatementSize> => {
  const known = sizes.get(strapi);
  if (known) return known;
  let size: StatementSize = { batch: MIB, largest: 128 * MIB };
  if (strapi.db.dialect.client === 'mysql') {
    const [row] = rowsOf<{ n: number | string }>(
      await executor.raw('SELECT @@max_allowed_packet AS n')
    );
    const packet = Number(row?.n) || 16 * MIB;
    // The driver writes values into the statement and escapes them: at most twice their size.
    size = { batch: Math.min(MIB, Math.floor(packet / 4)), largest: packet - OVERHEAD };
  }
  sizes.set(strapi, size);
  return size;
};

const ESCAPED = /[\0\b\t\n\r\u001a"'\\]/g;

/** Bytes of a text in a statement, escapes included. */
export const bytesInStatement = (text: string): number => {
  const bytes = Buffer.byteLength(text);
  return bytes + (text.match(ESCAPED)?.length ?? 0);
};

/** Rough bytes of a row's values. */
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
  let part: T[] = [];
  let bytes = 0;
  for (const item of items) {
    const size = sizeOf(item);
    if (part.length > 0 && (part.length >= limits.count || bytes + size > limits.bytes)) {
      parts.push(part);
      part = [];
      bytes = 0;
    }
    part.push(item);
    bytes += size;
  }
  if (part.length > 0) parts.push(part);
  return parts;
};
