import type { Core } from '@strapi/strapi';
import { setTimeout as pause } from 'node:timers/promises';
import { inTransaction } from '../../database/connection';
import { withTransientRetry } from '../../database/retry';
import { inSavepoint } from '../../database/errors/savepoint';
import { AddressesHeldError } from './insert-contacts';

/** How often held addresses are tried again; together about half a second. */
const TRIES = 20;
const PAUSE_MS = 50;

const withPatience = async <T>(work: () => Promise<T>): Promise<T> => {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (attempt >= TRIES || !(error instanceof AddressesHeldError)) throw error;
      await pause(PAUSE_MS * Math.random());
    }
  }
};

/**
 * One transaction of the import's own, run again where somebody holds an address that it needs, or
 * where the database chose it as a deadlock's victim. Within a caller's transaction nothing can be
 * run again; what fails there is undone, so that the rest of it can go on.
 */
export const inImportTransaction = <T>(strapi: Core.Strapi, work: () => Promise<T>): Promise<T> =>
  strapi.db.inTransaction()
    ? inSavepoint(strapi, work)
    : withPatience(() => withTransientRetry(() => inTransaction(strapi, work)));
