import { padded, rowsOf, runForEach, type Statement } from '../database/connection';
import type { Database, Tx } from '../database/db';
import type { GroupRoom, Lease } from './queue';

/** The state of rows that are claimed once they are due. */
export const READY = 0;

/** How a claim holds what it takes. Times are epoch milliseconds. */
interface NewLease {
  now: number;
  until: number;
  owner: string;
}

export type Row = Record<string, unknown>;
type Held = Pick<Lease, 'id' | 'owner'>;

/** The statements of a queue that are not the same on every database. `table` is its name in SQL. */
interface QueueDialect {
  /** Ends a query that locks its rows and skips locked ones. Empty: the first write locks the whole database. */
  forUpdate: string;
  /** A query within FROM may name what is outside of it. */
  namesOuter: boolean;
  /** Groups after `after` with ready rows, and the index entries that each took: `limit` in all, fewer at the end. */
  groupsAfter(table: string, after: number, limit: number): Statement;
  /** Leases rows that are due and free, up to a number per group, longest due first. */
  claim(
    database: Database,
    table: string,
    rooms: readonly GroupRoom[],
    lease: NewLease
  ): Promise<Row[]>;
  /** Deletes rows, each only while its owner holds it. @returns the ids of those. */
  deleteOwned(tx: Tx, table: string, leases: readonly Held[]): Promise<number[]>;
}

/** The claimable rows of a group, as the queue's index has them; takes the bindings of `bindingsOf`. */
export const freeRows = (
  table: string,
  { columns = 'id', group = '?', limit = '?' } = {}
): string =>
  `SELECT ${columns} FROM ${table} WHERE state = ${READY} AND group_id = ${group} AND due_at <= ?
   AND (leased_until IS NULL OR leased_until <= ?) ORDER BY due_at, id LIMIT ${limit}`;

const FOR_UPDATE = ' FOR UPDATE SKIP LOCKED';

const bindingsOf = (rooms: readonly GroupRoom[], now: number): number[] =>
  rooms.flatMap(({ group, limit }) => [group, now, now, limit]);

export const idsOf = (rows: readonly { id?: unknown }[]): number[] =>
  rows.map(({ id }) => Number(id));

export const marks = (values: readonly unknown[], mark = '?'): string =>
  values.map(() => mark).join(', ');

/** Steps from group to group, each step one look at the index. */
const steppingThrough = (table: string, after: number, limit: number): Statement => {
  const next = (than: string): string =>
    `(SELECT group_id FROM ${table} WHERE state = ${READY} AND group_id > ${than} ORDER BY group_id LIMIT 1)`;
  return {
    sql: `WITH RECURSIVE found(id, nth) AS (
        SELECT ${next('?')}, 1
        UNION ALL
        SELECT ${next('found.id')}, nth + 1 FROM found WHERE id IS NOT NULL AND nth < ${limit}
      ) SELECT id, 1 AS looked_at FROM found WHERE id IS NOT NULL`,
    bindings: [after],
  };
};

/** One statement that locks the rows and skips those that another process is about to claim. */
const postgres: QueueDialect = {
  forUpdate: FOR_UPDATE,
  namesOuter: true,

  groupsAfter: steppingThrough,

  async claim(database, table, rooms, { now, until, owner }) {
    const free = freeRows(table, { group: 'room.id', limit: 'room.size' });
    const db = await database.current();
    // An array, so that the planner expects few rows, runs the query once, and takes the key's index.
    return db.rows(
      `UPDATE ${table} SET owner = ?, leased_until = ? WHERE id = ANY(ARRAY(
         SELECT due.id FROM unnest(?::int[], ?::int[]) AS room(id, size)
         CROSS JOIN LATERAL (${free}${FOR_UPDATE}) due)) RETURNING *`,
      [owner, until, rooms.map(({ group }) => group), rooms.map(({ limit }) => limit), now, now]
    );
  },

  async deleteOwned(tx, table, leases) {
    const deleted = await tx.rows<Row>(
      `DELETE FROM ${table} AS ended USING unnest(?::bigint[], ?::text[]) AS held(id, owner)
       WHERE ended.id = held.id AND ended.owner = held.owner RETURNING ended.id`,
      [idsOf(leases), leases.map(({ owner }) => owner)]
    );
    return idsOf(deleted);
  },
};

const NO_ROOM: GroupRoom = { group: 0, limit: 0 };

/** There is only one writer, so no other sees the rows between the inner query and the update. */
const sqlite: QueueDialect = {
  forUpdate: '',
  namesOuter: true,

  groupsAfter: steppingThrough,

  async claim(database, table, rooms, { now, until, owner }) {
    const db = await database.current();
    const all = padded(rooms, NO_ROOM);
    const free = `SELECT id FROM (${freeRows(table)})`;
    const sql = `UPDATE ${table} SET owner = ?, leased_until = ?
      WHERE id IN (${all.map(() => free).join(' UNION ALL ')}) RETURNING *`;
    return rowsOf(await db.prepared({ sql, bindings: [owner, until, ...bindingsOf(all, now)] }));
  },

  async deleteOwned(tx, table, leases) {
    const changed = await runForEach(
      tx.knex,
      `DELETE FROM ${table} WHERE id = ? AND owner = ?`,
      leases.map(({ id, owner }) => [id, owner])
    );
    return leases.flatMap(({ id }, at) => (changed[at]?.changes === 1 ? id : []));
  },
};

/** No `UPDATE … RETURNING`: rows are locked, then written, in one short transaction. */
const mysql: QueueDialect = {
  forUpdate: FOR_UPDATE,
  namesOuter: false,

  /** Reads a bounded range: neither server skips from group to group, or only by statistics, which a queue outruns. */
  groupsAfter: (table, after, limit) => ({
    sql: `SELECT group_id AS id, COUNT(*) AS looked_at FROM (
        SELECT group_id FROM ${table} WHERE state = ${READY} AND group_id > ? ORDER BY group_id LIMIT ${limit}
      ) entries GROUP BY group_id`,
    bindings: [after],
  }),

  claim(database, table, rooms, { now, until, owner }) {
    const free = `(${freeRows(table, { columns: '*' })}${FOR_UPDATE})`;
    // At READ COMMITTED there are no gap locks, so writing and enqueuing do not wait for each other.
    return database.transaction(async (tx) => {
      const found = rooms.map(() => free).join(' UNION ALL ');
      const rows = await tx.rows<Row>(found, bindingsOf(rooms, now));
      if (rows.length > 0) {
        const update = `UPDATE ${table} SET owner = ?, leased_until = ? WHERE id IN (${marks(rows)})`;
        await tx.raw(update, [owner, until, ...idsOf(rows)]);
      }
      return rows.map((row) => ({ ...row, owner, leased_until: until }));
    });
  },

  async deleteOwned(tx, table, leases) {
    const found = await tx.rows<Row>(
      `SELECT id FROM ${table} WHERE (id, owner) IN (${marks(leases, '(?, ?)')}) ORDER BY id FOR UPDATE`,
      leases.flatMap(({ id, owner }) => [id, owner])
    );
    if (found.length > 0) {
      await tx.raw(`DELETE FROM ${table} WHERE id IN (${marks(found)})`, idsOf(found));
    }
    return idsOf(found);
  },
};

const dialects: Readonly<Record<string, QueueDialect>> = { postgres, sqlite, mysql };

/** @param client the host's name of the database; MariaDB is `mysql` */
export const queueDialectOf = (client: string): QueueDialect => {
  const dialect = dialects[client];
  if (!dialect) throw new Error(`Switchboard has no queue on ${client}`);
  return dialect;
};
