import type { Core } from '@strapi/strapi';
import type { TransactionTools } from '../connection';
import { inRetriedTransaction } from '../retry';

const CODES = new Set(['23505', 'ER_DUP_ENTRY', 'SQLITE_CONSTRAINT_UNIQUE']);

/** Whether a statement failed at a unique index. @param index what its name, or its columns on SQLite, match */
export const isDuplicate = (error: unknown, index?: RegExp): boolean => {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  if (!CODES.has(String(code)) && !/unique constraint/i.test(String(message))) return false;
  return index?.test(String(message)) ?? true;
};

/**
 * Runs `work`, which asks whether a name is taken before it takes it, in a transaction of its own.
 * Where somebody takes the name in between, the unique index fails it: it is run again, finds the
 * name taken and says so.
 */
export const inUniqueTransaction = async <T>(
  strapi: Core.Strapi,
  work: (tools: TransactionTools) => Promise<T>
): Promise<T> => {
  try {
    return await inRetriedTransaction(strapi, work);
  } catch (error) {
    if (!isDuplicate(error) || strapi.db.inTransaction()) throw error;
    return inRetriedTransaction(strapi, work);
  }
};
