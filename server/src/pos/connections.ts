import { CAME_FROM_ANOTHER_SITE } from '../database/site';
import { documentsOf } from '../database/tables/internal-types';
import { findInChunks } from '../database/written-rows';
import type { Big } from '../stock/tables';
import { CONNECTION, type ConnectionRow, CONNECTIONS_TABLE } from './tables';
import type { App } from '../app';
import type { Db, Tx } from '../database/db';

export interface MappedLocation {
  ref: string;
  location: number;
}

export const mappedLocations = (row: Pick<ConnectionRow, 'locations'>): MappedLocation[] =>
  JSON.parse(row.locations || '[]') as MappedLocation[];

export const connectionNames = async (db: Db, ids: readonly number[]) => {
  const rows = await findInChunks<Pick<ConnectionRow, 'id' | 'name'>>(ids, (some) =>
    db.table(CONNECTIONS_TABLE).select('id', 'name').whereIn('id', some)
  );
  return new Map(rows.map(({ id, name }) => [Number(id), name]));
};

/** Names the connections of rows. @returns how lists show one, by its id */
export const connectionsOf = async (db: Db, rows: readonly { connection_id: Big | null }[]) => {
  const ids = rows.flatMap(({ connection_id: id }) => (id === null ? [] : [Number(id)]));
  const names = await connectionNames(db, ids);
  return (id: Big) => ({ id: Number(id), name: names.get(Number(id)) ?? '' });
};

const groupsOf = async (db: Db, ids: readonly number[]): Promise<string[]> =>
  db
    .table(CONNECTIONS_TABLE)
    .whereIn('id', [...ids])
    .whereNotNull('group_digest')
    .distinct()
    .pluck('group_digest');

/**
 * A connection joined a group after the groups were read, so some members are not locked. The code is that of a
 * serialization failure, which makes the whole transaction run again with the groups read again.
 */
class GroupsChanged extends Error {
  readonly code = '40001';
}

export type Connections = ReadonlyMap<number, ConnectionRow>;

export const readConnections = async (
  db: Db,
  ids: readonly number[],
  groups: readonly string[],
  { lock }: { lock: boolean }
): Promise<Connections> => {
  const query = db
    .table(CONNECTIONS_TABLE)
    .select('*')
    .where((any) => {
      any.whereIn('id', [...ids]);
      if (groups.length > 0) any.orWhereIn('group_digest', [...groups]);
    })
    .orderBy('id');
  const rows = (await (lock ? query.forUpdate() : query)) as ConnectionRow[];
  return new Map(rows.map((row) => [Number(row.id), row]));
};

/** A connection and those of its group. Locks nothing. */
export const groupOf = async (db: Db, id: number): Promise<Connections> =>
  readConnections(db, [id], await groupsOf(db, [id]), { lock: false });

/**
 * Does work in a transaction that first locks these connections and their groups, in order of ids: two nodes never work
 * on one group at once, and never deadlock.
 * @throws an error that repeats it (`withTransientRetry`) if one of them has changed its group meanwhile
 */
export const withConnections = async <T>(
  app: App,
  ids: readonly number[],
  work: (tx: Tx, connections: Connections) => Promise<T>
): Promise<T> => {
  const groups = await groupsOf(await app.db.current(), ids);
  return app.db.transaction(async (tx) => {
    const connections = await readConnections(tx, ids, groups, { lock: true });
    for (const id of ids) {
      const digest = connections.get(id)?.group_digest ?? null;
      if (digest !== null && !groups.includes(digest)) {
        throw new GroupsChanged('A connection joined a group meanwhile.');
      }
    }
    return work(tx, connections);
  });
};

/** True if an import or a transfer brought this connection, and it was not settled yet. */
export const hasArrived = (app: App, row: ConnectionRow): boolean =>
  app.site.isForeign(row)
    ? Boolean(row.active) || row.disabled_reason !== CAME_FROM_ANOTHER_SITE
    : row.origin_id !== null && Number(row.origin_id) !== Number(row.id);

/** @returns whether it was switched off. */
const settle = async (app: App, row: ConnectionRow): Promise<boolean> => {
  if (app.site.isForeign(row)) {
    await documentsOf(app.strapi, CONNECTION).update({
      documentId: row.document_id,
      data: {
        origin_id: Number(row.id),
        active: false,
        disabled_reason: CAME_FROM_ANOTHER_SITE,
      },
    });
    return true;
  }
  // Restores the original id: records and used external ids refer to it, and under another id a till's record that was
  // applied would be applied again.
  await app.db.transaction(async (tx) => {
    const rows = () => tx.table(CONNECTIONS_TABLE);
    const isTaken = (await rows().where({ id: row.origin_id }).first()) !== undefined;
    await rows()
      .where({ id: row.id })
      .update(isTaken ? { origin_id: row.id } : { id: row.origin_id });
  });
  return false;
};

/** Deactivates connections from another site, restores the ids of re-imported ones; at boot and when a till sends. */
export const settleArrivedConnections = async (app: App): Promise<void> => {
  const db = await app.db.current();
  const rows = (await db
    .table(CONNECTIONS_TABLE)
    .whereNot('origin_id', db.knex.ref('id'))
    .orWhereNot('site_instance', app.site.instance)
    .orderBy('id')) as ConnectionRow[];
  const off: string[] = [];
  for (const row of rows) {
    if (!hasArrived(app, row)) continue;
    if (await settle(app, row)) off.push(`${row.id} ${JSON.stringify(row.name)}`);
  }
  if (off.length === 0) return;
  app.log.warn(
    `switchboard: switched off, because they came from another site: connections ${off.join(', ')}. ` +
      'Switch on the connections whose tills should report to this site.'
  );
};
