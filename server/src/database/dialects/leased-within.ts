import type { Knex } from 'knex';
import type { Executor } from '../connection';
import { dropStatement } from '../errors';
import { type ClaimTable, type LeasedSpan, qualified } from './types';

/** Counts rows of a group that somebody holds, as `leased`: one range of the index is looked at. */
export const leasedWithin = (
  executor: Executor,
  table: Pick<ClaimTable, 'name' | 'schema' | 'groupColumn'>,
  group: number,
  { from, until, except }: LeasedSpan
): Knex.QueryBuilder =>
  executor(qualified(table))
    .count({ leased: '*' })
    .where(table.groupColumn, group)
    .whereBetween('due_at', [from, until])
    .whereNotNull('owner')
    .whereNotIn('id', [...except])
    .on('query-error', dropStatement);

/** How many that found. */
export const countOf = async (counting: Knex.QueryBuilder): Promise<number> => {
  const [counted] = (await counting) as { leased: number | string }[];
  return Number(counted?.leased ?? 0);
};
