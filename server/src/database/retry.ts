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

export const isTransient = (error: unknown): boolean =>
  TRANSIENT.has(String((error as { code?: unknown } | null)?.code ?? ''));

const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });

/**
 * Runs a whole transaction again when the database chose it as the victim of a deadlock. Never wrap
 * a part of a transaction: the rest of it is gone after such an error.
 */
export const withTransientRetry = async <T>(work: () => Promise<T>, tries = 5): Promise<T> => {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (attempt >= tries || !isTransient(error)) throw error;
      await pause(5 * 2 ** attempt * (0.5 + Math.random()));
    }
  }
};
