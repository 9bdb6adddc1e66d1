import type { Core } from '@strapi/strapi';
import { currentExecutor, inTransaction, table } from '../../database/connection';
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

const bucketOf = (key: string): number => (Number.parseInt(key.slice(0, 6), 16) % BUCKETS) + 1;

/**
 * Holds whoever comes with one of these addresses until the current transaction ends. Rows that
 * exist, found by their primary key and taken in its order: that waits on every server, has no gap
 * to lock, and two that ask for several addresses at once cannot wait for each other. Ask once a
 * transaction, and before it reads: MySQL goes on reading what was there when it first read.
 */
export const lockEmails = async (
  strapi: Core.Strapi,
  emails: readonly unknown[]
): Promise<void> => {
  const keys = emails.map(emailKey).filter((key) => key !== null);
  const buckets = [...new Set(keys.map(bucketOf))];
  if (buckets.length === 0) return;
  const executor = await currentExecutor(strapi);
  const rows = table(strapi, executor, TABLE).whereIn('id', buckets);
  // SQLite locks no rows. A transaction that begins with a write is the only writer from there on.
  if (strapi.db.dialect.client === 'sqlite') await rows.update({ uses: executor.raw('uses + 1') });
  else await rows.select('id').orderBy('id').forUpdate();
};

/**
 * Runs a write that gives a contact this address, under the address' lock and in a transaction that
 * begins with it. Within a caller's transaction there is no lock: one that makes several contacts
 * would take several, in an order of its own, and could wait for another such for ever. There the
 * unique index decides, once the first of them has ended.
 */
export const withEmailLock = <T>(
  strapi: Core.Strapi,
  email: unknown,
  work: () => Promise<T>
): Promise<T> => {
  if (emailKey(email) === null || strapi.db.inTransaction()) return work();
  return inTransaction(strapi, async () => {
    await lockEmails(strapi, [email]);
    return work();
  });
};
