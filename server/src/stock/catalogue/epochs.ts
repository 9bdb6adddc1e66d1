import { randomBytes } from 'node:crypto';
import type { Core } from '@strapi/strapi';
import { currentExecutor, type Executor, table } from '../../database/connection';
import type { Big } from '../tables';
import { EPOCHS_TABLE } from './tables';

/**
 * An epoch begins where a process gives its first number. A database that a backup took the place of
 * gives numbers again that it has given before, to other changes; but the processes that are started
 * with it do so in epochs that nobody has a cursor of. So a cursor has its epoch beside its number, and
 * is good up to where that ended.
 */

const KEPT = 500;
/** Of numbers that an earlier version gave. */
const NONE = '0'.repeat(8);

interface EpochRow {
  id: number;
  token: string;
  /** The last number before it. */
  number: Big;
}

const epochs = (strapi: Core.Strapi, executor: Executor) => table(strapi, executor, EPOCHS_TABLE);

/**
 * Begins an epoch, in a transaction in which nobody else gives numbers. Those of long ago are forgotten:
 * their cursors start over.
 * @param number  the last that was given
 */
export const beginEpoch = async (
  strapi: Core.Strapi,
  trx: Executor,
  number: number
): Promise<void> => {
  await epochs(strapi, trx).insert({ token: randomBytes(4).toString('hex'), number });
  const old = (await epochs(strapi, trx)
    .select('id')
    .orderBy('id', 'desc')
    .offset(KEPT)
    .limit(KEPT)) as { id: number }[];
  if (old.length === 0) return;
  await epochs(strapi, trx)
    .whereIn(
      'id',
      old.map(({ id }) => id)
    )
    .delete();
};

/** The epoch that cursors are of now: eight hexadecimal digits. */
export const currentEpoch = async (strapi: Core.Strapi): Promise<string> => {
  const row = (await epochs(strapi, await currentExecutor(strapi))
    .orderBy('id', 'desc')
    .first()) as EpochRow | undefined;
  return row?.token ?? NONE;
};

/** Whether this database has given a number in an epoch: else its past is another one. */
export const wasGiven = async (
  strapi: Core.Strapi,
  number: number,
  token: string
): Promise<boolean> => {
  const executor = await currentExecutor(strapi);
  const after = epochs(strapi, executor).orderBy('id');
  if (token !== NONE) {
    const epoch = (await epochs(strapi, executor)
      .where({ token })
      .orderBy('id', 'desc')
      .first()) as EpochRow | undefined;
    if (!epoch) return false;
    after.where('id', '>', epoch.id);
  }
  const next = (await after.first()) as EpochRow | undefined;
  return next === undefined || number <= Number(next.number);
};
