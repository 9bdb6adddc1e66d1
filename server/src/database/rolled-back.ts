import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { inTransaction } from './connection';

/** Ends a transaction that must not be committed, and carries what was found out in it. */
class RolledBack extends Error {
  constructor(readonly found: unknown) {
    super('A preview was rolled back.');
  }
}

/** Does work that must leave nothing behind: its transaction is rolled back, and its result kept. */
export const inRolledBack = async <T>(
  strapi: Core.Strapi,
  work: (trx: Knex.Transaction) => Promise<T>
): Promise<T> => {
  try {
    return await inTransaction<never>(strapi, async ({ trx }) => {
      throw new RolledBack(await work(trx));
    });
  } catch (error) {
    if (error instanceof RolledBack) return error.found as T;
    throw error;
  }
};
