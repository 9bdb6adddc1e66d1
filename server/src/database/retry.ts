import type { Core } from '@strapi/strapi';
import { inTransaction, type TransactionTools } from './connection';

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

export const isTransient = (error: unknown): boolean => {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown };
  return TRANSIENT.has(String(code ?? '')) || (cause !== undefined && isTransient(cause));
};

/**
 * PostgreSQL: an error before this one ended the transaction. Where a relation cannot be written, the
 * host first sets the row back in the same transaction, and the error of that stands for the first
 * one, which may have been a deadlock. It alone does not tell, so it is no infrastructure's fault.
 */
const hidesAnother = (error: unknown): boolean =>
  (error as { code?: unknown } | null)?.code === '25P02';

const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });

/**
 * Runs a whole transaction again when the database chose it as the victim of a deadlock. Never wrap
 * a part of a transaction: the rest of it is gone after such an error.
 */
export const withTransientRetry = async <T>(work: () => Promise<T>, tries = 10): Promise<T> => {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (attempt >= tries || !(isTransient(error) || hidesAnother(error))) throw error;
      await pause(Math.min(5 * 2 ** attempt, 500) * (0.5 + Math.random()));
    }
  }
};

/**
 * Runs `work` in a transaction of its own, and the whole of it again where the database chose it as
 * the victim of a deadlock: what a rolled-back try did, its events included, is gone with it. Within
 * a caller's transaction it is a part of that, which is the caller's to run again.
 */
export const inRetriedTransaction = <T>(
  strapi: Core.Strapi,
  work: (tools: TransactionTools) => Promise<T>
): Promise<T> => {
  const run = () => inTransaction(strapi, work);
  return strapi.db.inTransaction() ? run() : withTransientRetry(run);
};
