import type { Core } from '@strapi/strapi';
import { currentExecutor } from '../connection';

let serial = 0;

/**
 * Runs a part of the current transaction that may fail without costing the rest: after an error
 * PostgreSQL takes no further statement until the transaction goes back to before it.
 * @throws what `work` throws, with its changes undone.
 */
export const inSavepoint = async <T>(strapi: Core.Strapi, work: () => Promise<T>): Promise<T> => {
  const executor = await currentExecutor(strapi);
  serial += 1;
  const name = `switchboard_${serial}`;
  await executor.raw(`SAVEPOINT ${name}`);
  try {
    const result = await work();
    await executor.raw(`RELEASE SAVEPOINT ${name}`);
    return result;
  } catch (error) {
    // A deadlock's victim has no transaction left; the caller is to hear of the deadlock, not of that.
    await executor.raw(`ROLLBACK TO SAVEPOINT ${name}`).catch(() => {});
    throw error;
  }
};
