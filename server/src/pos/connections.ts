import type { Core } from '@strapi/strapi';
import { type Executor, table } from '../database/connection';
import { type ConnectionRow, CONNECTIONS_TABLE } from './tables';

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
 * A connection joined a group after its groups were read, so that some members are not locked. The whole
 * transaction is to be run again, with its groups read anew, as after a serialization failure: it has
 * that code.
 */
class GroupsChanged extends Error {
  readonly code = '40001';
  constructor() {
    super('A connection joined a group meanwhile.');
  }
}

/**
 * These connections and those of their groups, by id. Locked, they are so in the order of their ids:
 * two nodes never work on one group of sale and refunds at once, and never wait in a circle.
 * @throws an error after which the transaction is run again (`withTransientRetry`) where one that is
 *   locked is in another group by now
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
  const wanted = new Set(ids);
  const isOther = ({ id, group_digest: digest }: ConnectionRow): boolean =>
    wanted.has(Number(id)) && digest !== null && !groups.includes(digest);
  if (lock && rows.some(isOther)) throw new GroupsChanged();
  return new Map(rows.map((row) => [Number(row.id), row]));
};
