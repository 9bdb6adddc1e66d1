import type { Core } from '@strapi/strapi';
import { currentExecutor } from '../connection';
import { inTurn } from '../transactions';

let serial = 0;

/**
 * Runs a part of the current transaction that may fail without costing the rest: after an error
 * PostgreSQL takes no further statement until the transaction goes back to before it. Several that are
 * begun side by side take turns: a savepoint that is released takes those with it that came after it.
 * @throws what `work` throws, with its changes undone; the database's error where they cannot be
 */
export const inSavepoint = <T>(strapi: Core.Strapi, work: () => Promise<T>): Promise<T> =>
  inTurn(strapi, async (turn) => {
    const executor = await currentExecutor(strapi);
    serial += 1;
    const name = `switchboard_${serial}`;
    await executor.raw(`SAVEPOINT ${name}`);
    try {
      const result = await work();
      await turn.ended();
      await executor.raw(`RELEASE SAVEPOINT ${name}`);
      return result;
    } catch (error) {
      await turn.undo();
      // A deadlock's victim has no transaction left; the caller is to hear of the deadlock, not of that.
      if (!turn.isLost()) await executor.raw(`ROLLBACK TO SAVEPOINT ${name}`);
      throw error;
    }
  });
