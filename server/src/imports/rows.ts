import { setImmediate as nextTurn } from 'node:timers/promises';

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
