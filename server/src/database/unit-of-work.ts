import type { App } from '../app';
import { isDatabaseError } from '../runtime/errors';
import { doom, inTurn } from './transactions';

/**
 * PostgreSQL takes no further statement of a transaction after an error, and does not commit it: then
 * nothing is there to be told of.
 */
const isRefused = (app: App, error: unknown): boolean =>
  app.db.client === 'postgres' && isDatabaseError(error);

/**
 * Runs a write and then publishes what it changed, in one transaction, as one turn of it. Where the
 * write fails within a caller's transaction, what it had written by then is published: the caller may
 * catch the error and commit. Where publishing fails, the transaction is never committed.
 * @throws what `work` or `publish` throws
 */
export const inTrackedUnit = <T>(
  app: App,
  work: () => Promise<T>,
  publish: () => Promise<void>
): Promise<T> => {
  const isPart = app.db.inTransaction();
  return app.db.transaction(() =>
    inTurn(app.strapi, async (turn) => {
      let result: T;
      try {
        result = await work();
      } catch (error) {
        if (isPart && !turn.isLost()) {
          await publish().catch((fault: unknown) => {
            if (!isRefused(app, fault)) doom(app.strapi, fault);
          });
        }
        throw error;
      }
      try {
        await publish();
      } catch (error) {
        if (!isRefused(app, error)) doom(app.strapi, error);
        throw error;
      }
      return result;
    })
  );
};
