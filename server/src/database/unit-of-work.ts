import type { Core } from '@strapi/strapi';
import { inTransaction } from './connection';
import { isDatabaseError } from './errors';
import { doom, inTurn } from './transactions';

/**
 * PostgreSQL takes no further statement of a transaction after an error, and does not commit it: then
 * nothing is there to be told of.
 */
const isRefused = (strapi: Core.Strapi, error: unknown): boolean =>
  strapi.db.dialect.client === 'postgres' && isDatabaseError(error);

/**
 * Runs a write and then publishes what it changed, in one transaction, as one turn of it. Where the
 * write fails within a caller's transaction, what it had written by then is published: the caller may
 * catch the error and commit. Where publishing fails, the transaction is never committed.
 * @throws what `work` or `publish` throws
 */
export const inTrackedUnit = <T>(
  strapi: Core.Strapi,
  work: () => Promise<T>,
  publish: () => Promise<void>
): Promise<T> => {
  const isPart = strapi.db.inTransaction();
  return inTransaction(strapi, () =>
    inTurn(strapi, async (turn) => {
      let result: T;
      try {
        result = await work();
      } catch (error) {
        if (isPart && !turn.isLost()) {
          await publish().catch((fault: unknown) => {
            if (!isRefused(strapi, fault)) doom(strapi, fault);
          });
        }
        throw error;
      }
      try {
        await publish();
      } catch (error) {
        if (!isRefused(strapi, error)) doom(strapi, error);
        throw error;
      }
      return result;
    })
  );
};
