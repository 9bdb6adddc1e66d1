import type { Knex } from 'knex';
import {
  type Executor,
  padded,
  rawStatement,
  rowsOf,
  runForEach,
  runPrepared,
  type Statement,
} from '../database/connection';
import type { GroupRoom, Lease } from './queue';

/** The state of rows that are claimed once they are due. */
export const READY = 0;

/** How a claim holds what it takes. Times are epoch milliseconds. */
export interface NewLease {
  now: number;
  until: number;
  owner: string;
}

type Row = Record<string, unknown>;
type Held = Pick<Lease, 'id' | 'owner'>;

/** The statements of a queue that are not the same on every database. `table` is its name in SQL. */
export interface QueueDialect {
  /** The end of a query whose rows are kept for its transaction, past those that others have. */
  forUpdate: string;
  /** false: the first write of a transaction locks the whole database, and a query locks nothing. */
  hasRowLocks: boolean;
  /**
   * A query for groups after a group that have ready rows, in the order of their ids: `id`, and
   * `looked_at`, how many entries of the index that took. These sum up to `limit` at most, and to less
   * only where there are no more groups.
   */
  groupsAfter(table: string, after: number, limit: number): Statement;
  /** Leases rows that are due and free, so many of each group, those first that have been due longest. */
  claim(
    executor: Executor,
    table: string,
    rooms: readonly GroupRoom[],
    lease: NewLease
  ): Promise<Row[]>;
  /** Deletes rows, each only while its owner holds it. @returns the ids of those. */
  deleteOwned(
    trx: Knex.Transaction,
    table: string,
    leases: readonly Held[]
  ): Promise<Iterable<number>>;
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

const idsOf = (rows: readonly Row[]): number[] => rows.map(({ id }) => Number(id));

const marks = (values: readonly unknown[], mark = '?'): string => values.map(() => mark).join(', ');

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

/** One statement: the rows are locked, those that somebody else is about to take are passed over. */
const postgres: QueueDialect = {
  forUpdate: FOR_UPDATE,
  hasRowLocks: true,

  groupsAfter: steppingThrough,

  async claim(executor, table, rooms, { now, until, owner }) {
    const [only, ...others] = rooms;
    const isOne = only !== undefined && others.length === 0;
    const free = isOne
      ? `${freeRows(table)}${FOR_UPDATE}`
      : `SELECT due.id FROM unnest(?::int[], ?::int[]) AS room(id, size) CROSS JOIN LATERAL (
           ${freeRows(table, { group: 'room.id', limit: 'room.size' })}${FOR_UPDATE}
         ) due`;
    const bindings = isOne
      ? bindingsOf(rooms, now)
      : [rooms.map(({ group }) => group), rooms.map(({ limit }) => limit), now, now];
    // An array, so that the planner expects few rows, runs the query once, and takes the key's index.
    const answer = await rawStatement(
      executor,
      `UPDATE ${table} SET owner = ?, leased_until = ? WHERE id = ANY(ARRAY(${free})) RETURNING *`,
      [owner, until, ...bindings] as unknown as Knex.RawBinding[]
    );
    return rowsOf<Row>(answer);
  },

  async deleteOwned(trx, table, leases) {
    const answer = await rawStatement(
      trx,
      `DELETE FROM ${table} AS ended USING unnest(?::bigint[], ?::text[]) AS held(id, owner)
       WHERE ended.id = held.id AND ended.owner = held.owner RETURNING ended.id`,
      [leases.map(({ id }) => id), leases.map(({ owner }) => owner)] as unknown as Knex.RawBinding[]
    );
    return idsOf(rowsOf<Row>(answer));
  },
};

const NO_ROOM: GroupRoom = { group: 0, limit: 0 };

/** There is one writer: nobody sees the rows between the inner query and the update. */
const sqlite: QueueDialect = {
  forUpdate: '',
  hasRowLocks: false,

  groupsAfter: steppingThrough,

  async claim(executor, table, rooms, { now, until, owner }) {
    const all = padded(rooms, NO_ROOM);
    const free = `SELECT id FROM (${freeRows(table)})`;
    const sql = `UPDATE ${table} SET owner = ?, leased_until = ?
      WHERE id IN (${all.map(() => free).join(' UNION ALL ')}) RETURNING *`;
    const bindings = [owner, until, ...bindingsOf(all, now)];
    return rowsOf<Row>(await runPrepared(executor, { sql, bindings }));
  },

  async deleteOwned(trx, table, leases) {
    const changed = await runForEach(
      trx,
      `DELETE FROM ${table} WHERE id = ? AND owner = ?`,
      leases.map(({ id, owner }) => [id, owner])
    );
    return leases.flatMap(({ id }, at) => (changed[at] === 1 ? id : []));
  },
};

/** No `UPDATE … RETURNING`: rows are locked, then written, in one short transaction. */
const mysql: QueueDialect = {
  forUpdate: FOR_UPDATE,
  hasRowLocks: true,

  /**
   * Neither server steps from group to group by a value that it has just found, and whether a grouping
   * skips over rows hangs on statistics that a queue outruns: so what is read is bounded.
   */
  groupsAfter: (table, after, limit) => ({
    sql: `SELECT group_id AS id, COUNT(*) AS looked_at FROM (
        SELECT group_id FROM ${table} WHERE state = ${READY} AND group_id > ? ORDER BY group_id LIMIT ${limit}
      ) entries GROUP BY group_id`,
    bindings: [after],
  }),

  async claim(executor, table, rooms, { now, until, owner }) {
    const free = `(${freeRows(table, { columns: '*' })}${FOR_UPDATE})`;
    const work = async (trx: Knex.Transaction): Promise<Row[]> => {
      const sql = rooms.map(() => free).join(' UNION ALL ');
      const rows = rowsOf<Row>(await rawStatement(trx, sql, bindingsOf(rooms, now)));
      if (rows.length === 0) return [];
      const ids = idsOf(rows);
      await rawStatement(
        trx,
        `UPDATE ${table} SET owner = ?, leased_until = ? WHERE id IN (${marks(ids)})`,
        [owner, until, ...ids]
      );
      return rows.map((row) => ({ ...row, owner, leased_until: until }));
    };
    return (executor as Knex.Transaction).isTransaction
      ? work(executor as Knex.Transaction)
      : // READ COMMITTED: no gap locks, so claiming and inserting do not wait for each other.
        (executor as Knex).transaction(work, { isolationLevel: 'read committed' });
  },

  async deleteOwned(trx, table, leases) {
    const pairs = leases.flatMap(({ id, owner }) => [id, owner]);
    const found = await rawStatement(
      trx,
      `SELECT id FROM ${table} WHERE (id, owner) IN (${marks(leases, '(?, ?)')}) ORDER BY id FOR UPDATE`,
      pairs
    );
    const held = idsOf(rowsOf<Row>(found));
    if (held.length > 0) {
      await rawStatement(trx, `DELETE FROM ${table} WHERE id IN (${marks(held)})`, held);
    }
    return held;
  },
};

const dialects: Readonly<Record<string, QueueDialect>> = { postgres, sqlite, mysql };

/** @param client the host's name of the database; MariaDB is `mysql` */
export const queueDialectOf = (client: string): QueueDialect => {
  const dialect = dialects[client];
  if (!dialect) throw new Error(`Switchboard has no queue on ${client}`);
  return dialect;
};
