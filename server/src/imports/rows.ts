import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { isInfrastructureFault } from '../database/retry';
import type { App } from '../app';

/**
 * A request of the site is read, finds its user and asks the database a few times, a turn of the
 * event loop each. With one turn between two batches it would wait for a batch at each of them.
 */
const TURNS = 10;

/**
 * Lets others have the event loop and, on SQLite, the database's one connection. Its driver is
 * synchronous: a transaction there takes no turn at all, so nothing else would come in between.
 */
export const giveWay = async (): Promise<void> => {
  for (let turn = 0; turn < TURNS; turn += 1) await nextTurn();
};

/** A database that restarts, or is full for a moment, is waited for this long. */
const PAUSES_MS = [200, 1_000, 5_000];

/**
 * Does a row's work, and does it again after a pause where the database failed: that is no fault of
 * the row. A transaction of the caller's is over with the fault, so there it is not tried again.
 * @throws the database's fault where it stays: the import ends, and no row is blamed
 */
export const throughFaults = async <T>(app: App, work: () => Promise<T>): Promise<T> => {
  for (const pause of PAUSES_MS) {
    try {
      return await work();
    } catch (error) {
      if (!isInfrastructureFault(error) || app.db.inTransaction()) throw error;
      await sleep(pause);
    }
  }
  return work();
};

/** Rethrows what is no fault of a row. */
export const requireRowFault = (error: unknown): void => {
  if (isInfrastructureFault(error)) throw error;
};
