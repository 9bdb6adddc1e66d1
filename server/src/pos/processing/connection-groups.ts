import type { Core } from '@strapi/strapi';
import { type Executor, table } from '../../database/connection';
import { type ConnectionRow, CONNECTIONS_TABLE } from '../tables';

/** The groups that these connections are in, by their digests. */
export const groupsOf = async (
  strapi: Core.Strapi,
  executor: Executor,
  ids: readonly number[]
): Promise<string[]> => {
  const rows = (await table(strapi, executor, CONNECTIONS_TABLE)
    .distinct('group_digest')
    .whereIn('id', [...ids])
    .whereNotNull('group_digest')) as { group_digest: string }[];
  return rows.map(({ group_digest: digest }) => digest);
};

/**
 * These connections and those of their groups, by id. Locked, they are so in the order of their ids:
 * two nodes never work on one group of sale and refunds at once, and never wait in a circle.
 */
export const connectionsOf = async (
  strapi: Core.Strapi,
  trx: Executor,
  ids: readonly number[],
  groups: readonly string[],
  { lock }: { lock: boolean }
): Promise<Map<number, ConnectionRow>> => {
  const query = table(strapi, trx, CONNECTIONS_TABLE)
    .select('*')
    .where((any) => {
      any.whereIn('id', [...ids]);
      if (groups.length > 0) any.orWhereIn('group_digest', [...groups]);
    })
    .orderBy('id');
  const rows = (await (lock ? query.forUpdate() : query)) as ConnectionRow[];
  return new Map(rows.map((row) => [Number(row.id), row]));
};
