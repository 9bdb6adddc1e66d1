import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { currentExecutor, inTransaction, table } from '../../database/connection';
import type { PlainTable } from '../../database/tables/plain-tables';
import { emailKey } from './email-key';

const TABLE = 'switchboard_email_locks';
const BUCKETS = 256;

/** Rows that are there to be locked and for nothing else. */
export const emailLockTable: PlainTable = {
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

const isSqlite = (strapi: Core.Strapi): boolean => strapi.db.dialect.client === 'sqlite';

/** The rows of some addresses, to lock; null where no address is given. */
const rowsOf = async (strapi: Core.Strapi, emails: readonly unknown[]) => {
  const keys = emails.map(emailKey).filter((key) => key !== null);
  const buckets = [...new Set(keys.map(bucketOf))];
  if (buckets.length === 0) return null;
  const executor = await currentExecutor(strapi);
  return { query: table(strapi, executor, TABLE).whereIn('id', buckets), count: buckets.length };
};

/** SQLite locks no rows: a transaction that begins with a write is the only writer from there on. */
const becomeWriter = async (query: Knex.QueryBuilder): Promise<void> => {
  await query.increment('uses', 1);
};

/**
 * Holds whoever comes with this address until the current transaction ends. A row that exists,
 * found by its primary key: that waits on every server and has no gap to lock. Call it before the
 * transaction reads, where that can be: MySQL goes on reading what was there when it first read.
 */
export const lockEmail = async (strapi: Core.Strapi, email: string): Promise<void> => {
  const rows = await rowsOf(strapi, [email]);
  if (!rows) return;
  if (isSqlite(strapi)) await becomeWriter(rows.query);
  else await rows.query.select('id').forUpdate();
};

/**
 * Does the same for many addresses, without waiting: who waits while it holds some of them could
 * wait for a transaction that waits for those, such as one that saves two forms.
 * @returns false where somebody holds one; the transaction is then to end and to begin again.
 */
export const tryLockEmails = async (
  strapi: Core.Strapi,
  emails: readonly string[]
): Promise<boolean> => {
  const rows = await rowsOf(strapi, emails);
  if (!rows) return true;
  if (isSqlite(strapi)) {
    await becomeWriter(rows.query);
    return true;
  }
  const locked = (await rows.query.select('id').forUpdate().skipLocked()) as unknown[];
  return locked.length === rows.count;
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
  if (typeof email !== 'string' || emailKey(email) === null || strapi.db.inTransaction())
    return work();
  return inTransaction(strapi, async () => {
    await lockEmail(strapi, email);
    return work();
  });
};
