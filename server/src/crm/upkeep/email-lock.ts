import type { Core } from '@strapi/strapi';
import { currentExecutor, table } from '../../database/connection';
import type { TableModel } from '../../room';
import { emailKey } from './email-key';

const TABLE = 'switchboard_email_locks';
const BUCKETS = 256;

/** Rows that are there to be locked and for nothing else. */
export const emailLockTable: TableModel = {
  uid: 'plugin::switchboard.email-lock',
  singularName: 'switchboard_email_lock',
  tableName: TABLE,
  attributes: { id: { type: 'increments' }, uses: { type: 'biginteger' } },
};

/** Makes the rows once; another node may be doing the same. */
export const prepareEmailLocks = async (strapi: Core.Strapi): Promise<void> => {
  const executor = await currentExecutor(strapi);
  const rows = Array.from({ length: BUCKETS }, (_none, index) => ({ id: index + 1, uses: 0 }));
  await table(strapi, executor, TABLE).insert(rows).onConflict('id').ignore();
};

/**
 * Holds whoever comes with the same address until the current transaction ends. An update of a row
 * that exists, found by its primary key: that waits on every database and, having no gap to lock,
 * cannot dead-lock against another address. Inserting the address itself would.
 */
export const lockEmail = async (strapi: Core.Strapi, email: string): Promise<void> => {
  const executor = await currentExecutor(strapi);
  const bucket = Number.parseInt((emailKey(email) ?? '0').slice(0, 6), 16) % BUCKETS;
  await table(strapi, executor, TABLE)
    .where({ id: bucket + 1 })
    .update({ uses: executor.raw('?? + 1', ['uses']) });
};
