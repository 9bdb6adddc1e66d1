import { randomUUID } from 'node:crypto';
import type { Knex } from 'knex';
import { rowsOf } from '../database/connection';
import type { Database, Db, Tx } from '../database/db';
import type { UpdatedTable, ColumnType, RowUpdate, SqlValue } from '../database/dialects/shared';
import { withTransientRetry } from '../database/retry';
import type { Column, PlainTable } from '../database/tables/plain-tables';
import { TimeSlice } from '../runtime/event-loop';
import { queueDialectOf, READY } from './dialects';

/** How many rows of a group to claim. */
export interface GroupRoom {
  group: number;
  limit: number;
}

/** Work under a lease. `owner` is the token of this lease; only with it can the work be settled. */
export interface Lease {
  id: number;
  group: number;
  owner: string;
  /** When it was due, epoch milliseconds; a lease does not change that. */
  dueAt: number;
  /** Epoch milliseconds. */
  leaseUntil: number;
}

/**
 * The place of a row in a queue. `ready`: it is claimed once it is due. `blocked`: an earlier row of its
 * ordering key goes first. `parked`: it waits until somebody makes it ready. `ended`: nobody works on it
 * any more, and it is kept to be found.
 */
export const QUEUE_STATES = { ready: READY, blocked: 1, parked: 2, ended: 3 } as const;
export type QueueState = keyof typeof QUEUE_STATES;

/** Values of the columns that a kind of work has in addition to those of every queue. */
type OwnColumns = Readonly<Record<string, SqlValue>>;

/**
 * The table of a queue. A row says that something is not done; `id` is the id of the row of the log that
 * it is about. A claim only writes `owner` and `leased_until`, which are in no index, so a lease changes
 * neither when a row is due nor its place, and PostgreSQL adds no entry to any index (heap-only).
 * @param indexName of the index by which rows are claimed
 */
export const queueTable = (
  tableName: string,
  indexName: string,
  columns: Readonly<Record<string, Column>>,
  indexes: PlainTable['indexes'] = []
): PlainTable => ({
  tableName,
  attributes: {
    id: { type: 'key' },
    group_id: { type: 'integer' },
    state: { type: 'integer' },
    due_at: { type: 'biginteger' },
    owner: { type: 'string', column: { args: [36] } },
    leased_until: { type: 'biginteger' },
    ...columns,
  },
  indexes: [{ name: indexName, columns: ['state', 'group_id', 'due_at', 'id'] }, ...indexes],
  // Each row is leased about once, and is longer then.
  fillFactor: 40,
});

export interface QueueOptions {
  tableName: string;
  /** Types of the table's own columns. */
  columns: Readonly<Record<string, ColumnType>>;
  /** The table whose rows are groups, and which of them are served. */
  groups: {
    tableName: string;
    where?: OwnColumns;
    /** A group that is always served, and that is no row. */
    always?: number;
    /** Further values that a look reads of a group. */
    seen?: {
      /** Columns with their names, in SQL, of the group's row as `served`. */
      columns: string;
      /** Called for them. @returns when the group is due whose first row is due at that time */
      dueAt(group: number, columns: Readonly<Record<string, unknown>>, firstDueAt: number): number;
    };
  };
  /** How long a lease lasts that nobody renews, in milliseconds. */
  leaseMs: number;
}

type Row = Record<string, unknown>;

/** A row that is to be queued. */
export interface NewRow {
  /** The id of the log's row. */
  id: number;
  group: number;
  /** Epoch milliseconds. */
  dueAt: number;
  columns: OwnColumns;
}

/** The next place of a row: when it is due, epoch milliseconds, and in what state if it is not ready. */
export interface NextPlace {
  dueAt: number;
  state?: QueueState;
  columns?: OwnColumns;
}

/** A row that may have been queued in another state. */
export type MissingRow = NewRow & Pick<NextPlace, 'state'>;

export interface QueuedRow {
  id: number;
  group: number;
  state: QueueState;
  dueAt: number;
  /** Its own columns, as the database gives them. */
  columns: Readonly<Record<string, unknown>>;
}

/** A row that may be under a lease. */
export type FoundRow = QueuedRow & {
  /** Somebody's lease on it is running. */
  isHeld: boolean;
};

export type LeasedRow = QueuedRow & Lease;

export interface Outcome {
  lease: Pick<Lease, 'id' | 'owner'>;
  /** The row's next place; null: it is done and leaves the queue. All of one call have the same columns. */
  next: NextPlace | null;
}

const AT_ONCE = 200;
/** Entries of the index that one look for groups reads. */
const LOOKED_AT_ONCE = 500;
/** Later than anything is due. */
const END_OF_TIME = Number.MAX_SAFE_INTEGER;

const STATES = Object.keys(QUEUE_STATES) as QueueState[];

interface DueGroup {
  id: number | string;
  looked_at: number | string;
  /** When the first row is due that nobody holds. */
  free_at: number | string | null;
  /** When the first lease ends of the rows that are due before that one. */
  lease_ends: number | string | null;
  /** null: its rows are not to be worked on now. */
  served: number | null;
  [column: string]: unknown;
}

/**
 * A queue of work in a table of the site's database, for any number of nodes: rows in groups that must
 * not starve each other, each group in the order of `due_at` and `id`. Times are epoch milliseconds of
 * the database's clock. The holder of a lease writes its row only while that lease holds; a lease that
 * nobody renews ends by itself, and the row is claimed again in its place.
 */
export class Queue {
  protected readonly dialect;
  protected readonly rows: UpdatedTable;
  /** The table's name in SQL. */
  protected readonly name: string;

  constructor(
    protected readonly database: Database,
    protected readonly options: QueueOptions
  ) {
    this.dialect = queueDialectOf(database.client);
    this.rows = {
      name: options.tableName,
      schema: database.schema,
      columns: {
        ...options.columns,
        group_id: 'integer',
        state: 'integer',
        due_at: 'bigint',
        owner: 'text',
        leased_until: 'bigint',
      },
    };
    this.name = this.named(options.tableName);
  }

  now(): number {
    return this.database.clock.now();
  }

  /** Queues rows, in statements of bounded size: they are there if and only if `tx` commits. */
  async insert(db: Db, rows: readonly NewRow[]): Promise<void> {
    await db.insert(
      this.options.tableName,
      rows.map(({ id, group, dueAt, columns }) => ({
        ...{ id, group_id: group, state: QUEUE_STATES.ready, due_at: dueAt },
        ...columns,
      }))
    );
  }

  /** As `insert`, in any state; an existing row gets the given values, even under a lease. */
  requeue(db: Db, rows: readonly MissingRow[]): Promise<void> {
    return this.inParts(rows, async (part) => {
      await this.in(db)
        .insert(part.map((row) => this.valuesOf(row)))
        .onConflict('id')
        .merge();
    });
  }

  /** As `requeue`; a row that is in the queue by now stays as it is. */
  insertMissing(db: Db, rows: readonly MissingRow[]): Promise<void> {
    return this.inParts(rows, async (part) => {
      await this.in(db)
        .insert(part.map((row) => this.valuesOf(row)))
        .onConflict('id')
        .ignore();
    });
  }

  /**
   * When something of each group can next be claimed: when its first free row is due or, where all
   * that is due is leased, when the first of those leases ends. Groups of which nothing is ready and
   * that are not served are absent. Costs a few steps a group, however many rows it has.
   */
  async due(): Promise<Map<number, number>> {
    await this.database.clock.sync();
    const db = await this.database.current();
    const { always, seen } = this.options.groups;
    const due = new Map<number, number>();
    const slice = new TimeSlice();
    for (let after = 0; ;) {
      const groups = await this.dueGroupsAfter(db, after);
      let looked = 0;
      for (const group of groups) {
        const id = Number(group.id);
        const first = Math.min(
          Number(group.free_at ?? END_OF_TIME),
          Number(group.lease_ends ?? END_OF_TIME)
        );
        looked += Number(group.looked_at);
        if (first === END_OF_TIME) continue;
        if (id === always) due.set(id, first);
        else if (group.served !== null) due.set(id, seen?.dueAt(id, group, first) ?? first);
      }
      if (looked < LOOKED_AT_ONCE) return due;
      after = Number(groups.at(-1)?.id);
      if (slice.isOver()) await slice.next();
    }
  }

  /** Groups in which rows are ready and that are gone: nobody claims of them. */
  async lostGroups(): Promise<number[]> {
    const db = await this.database.current();
    const { tableName, always } = this.options.groups;
    const lost: number[] = [];
    for (let after = 0; ;) {
      const { sql, bindings } = this.dialect.groupsAfter(this.name, after, LOOKED_AT_ONCE);
      const found = await db.rows<Pick<DueGroup, 'id' | 'looked_at'>>(sql, bindings);
      const ids = found.map(({ id }) => Number(id)).sort((a, b) => a - b);
      // Read after the rows, so that a group that was made with them is there.
      const known = (await db.table(tableName).whereIn('id', ids).pluck('id')) as number[];
      const there = new Set([...known.map(Number), always]);
      lost.push(...ids.filter((id) => !there.has(id)));
      const looked = found.reduce((sum, { looked_at: steps }) => sum + Number(steps), 0);
      if (looked < LOOKED_AT_ONCE) return lost;
      after = ids.at(-1) ?? after;
    }
  }

  /**
   * Leases rows that are due, so many of each group: those first that have been due longest. They come
   * in that order.
   */
  claim(rooms: readonly GroupRoom[]): Promise<LeasedRow[]> {
    return withTransientRetry(async () => this.leaseDue(await this.database.current(), rooms));
  }

  /**
   * Leases one row for as long as that, in whatever state it is, and due or not.
   * @returns `held` where somebody else's lease on it is still running
   */
  async claimOne(id: number, forMs: number, within?: Db): Promise<LeasedRow | 'held' | 'absent'> {
    const now = this.now();
    const owner = randomUUID();
    const db = within ?? (await this.database.current());
    const updated = await this.in(db)
      .where({ id })
      .andWhere((free) => {
        free.whereNull('leased_until').orWhere('leased_until', '<=', now);
      })
      .update({ owner, leased_until: now + forMs });
    const row = (await this.in(db).where({ id }).first()) as Row | undefined;
    if (!row) return 'absent';
    return updated === 1 && row.owner === owner ? this.leasedOf(row) : 'held';
  }

  /** As `claimOne`, of a row that need not be in the queue: then it is, under the lease. */
  async hold(db: Db, row: NewRow, forMs: number): Promise<LeasedRow | 'held'> {
    const known = await this.claimOne(row.id, forMs, db);
    if (known !== 'absent') return known;
    const owner = randomUUID();
    await this.in(db)
      .insert({ ...this.valuesOf(row), owner, leased_until: this.now() + forMs })
      .onConflict('id')
      .ignore();
    const made = (await this.in(db).where({ id: row.id, owner }).first()) as Row | undefined;
    return made ? this.leasedOf(made) : 'held';
  }

  /** Prolongs leases to the time of a new one, each only while its owner still holds it. */
  async renew(leases: readonly Lease[]): Promise<void> {
    const leased_until = this.now() + this.options.leaseMs;
    await this.updateOwned(
      await this.database.current(),
      leases.map(({ id, owner }) => ({ id, owner, set: { leased_until } }))
    );
  }

  /** Gives rows back unworked: they are in their place, and held by nobody. */
  async release(leases: readonly Lease[]): Promise<void> {
    await this.updateOwned(
      await this.database.current(),
      leases.map(({ id, owner }) => ({ id, owner, set: { owner: null, leased_until: null } }))
    );
  }

  /**
   * Ends leases with what comes next of each row, each only while its owner holds it.
   * @returns the ids that were still held; of the others nothing has changed
   */
  async settle(tx: Tx, outcomes: readonly Outcome[]): Promise<Set<number>> {
    const held = new Set<number>();
    const done: Outcome['lease'][] = [];
    const kept: RowUpdate[] = [];
    for (const { lease, next } of outcomes) {
      if (!next) done.push(lease);
      else kept.push({ id: lease.id, owner: lease.owner, set: this.placed(next) });
    }
    await this.inParts(done, async (part) => {
      for (const id of await this.dialect.deleteOwned(tx.knex, this.name, part)) held.add(id);
    });
    if (kept.length > 0) for (const id of await this.updateOwned(tx, kept)) held.add(id);
    return held;
  }

  /** Gives rows another state, in the place that they have; who holds one goes on with it. */
  setState(db: Db, ids: readonly number[], to: QueueState, from?: QueueState): Promise<void> {
    return this.inParts(ids, async (part) => {
      await this.in(db)
        .whereIn('id', [...part])
        .andWhere(from === undefined ? {} : { state: QUEUE_STATES[from] })
        .update({ state: QUEUE_STATES[to] });
    });
  }

  /**
   * Makes rows ready and due now, but for those that have ended: a row under a lease too, whose holder
   * then fails to settle it.
   * @returns the ids of those that are in the queue and have not ended
   */
  async bringForward(
    db: Db,
    ids: readonly number[],
    columns: OwnColumns = {},
    dueAt = this.now()
  ): Promise<Set<number>> {
    const found = new Set<number>();
    await this.inParts(ids, async (part) => {
      // Locked in one order: two that bring the same rows forward do not wait for each other in a circle.
      const some = (await this.in(db)
        .whereIn('id', [...part])
        .whereNot({ state: QUEUE_STATES.ended })
        .orderBy('id')
        .forUpdate()
        .pluck('id')) as (number | string)[];
      if (some.length === 0) return;
      await this.in(db).whereIn('id', some).update(this.placed({ dueAt, columns }));
      for (const id of some) found.add(Number(id));
    });
    return found;
  }

  /**
   * Sets where a row goes on that is not due yet and that nobody holds, or that is not in the queue;
   * null: it leaves the queue. A row that is due, or whose own columns are not `still` what they were,
   * stays as it is.
   */
  async reschedule(
    db: Db,
    row: NewRow,
    next: NextPlace | null,
    still: OwnColumns = {}
  ): Promise<void> {
    const waiting = this.in(db)
      .where({ id: row.id, ...still })
      .andWhere((notDue) => {
        notDue.whereNot({ state: QUEUE_STATES.ready }).orWhere('due_at', '>', this.now());
      })
      .andWhere((free) => {
        free.whereNull('leased_until').orWhere('leased_until', '<=', this.now());
      });
    if (!next) return void (await waiting.delete());
    if ((await waiting.update(this.placed(next))) > 0) return;
    await this.insertMissing(db, [
      { ...row, ...next, columns: { ...row.columns, ...next.columns } },
    ]);
  }

  /** The rows with these ids that are in the queue. */
  find(db: Db, ids: readonly number[]): Promise<Map<number, FoundRow>> {
    return this.read(db, ids, (rows) => rows);
  }

  /** As `find`, locked until the transaction ends. */
  lock(tx: Tx, ids: readonly number[]): Promise<Map<number, FoundRow>> {
    return this.read(tx, ids, (rows) => rows.orderBy('id').forUpdate());
  }

  /** Moves rows that the caller has locked to another place, even under a lease; null: they leave the queue. */
  async move(tx: Tx, ids: readonly number[], next: NextPlace | null): Promise<void> {
    await this.inParts(ids, async (part) => {
      const rows = this.in(tx).whereIn('id', [...part]);
      await (next ? rows.update(this.placed(next)) : rows.delete());
    });
  }

  protected async leaseDue(db: Db, rooms: readonly GroupRoom[]): Promise<LeasedRow[]> {
    const now = this.now();
    const lease = { now, until: now + this.options.leaseMs, owner: randomUUID() };
    const claimed = await this.dialect.claim(db.knex, this.name, rooms, lease);
    return claimed
      .map((row) => this.leasedOf(row))
      .sort((a, b) => a.dueAt - b.dueAt || a.id - b.id);
  }

  private async read(
    db: Db,
    ids: readonly number[],
    as: (rows: Knex.QueryBuilder) => Knex.QueryBuilder
  ): Promise<Map<number, FoundRow>> {
    const found = new Map<number, FoundRow>();
    await this.inParts(ids, async (part) => {
      const rows = (await as(this.in(db).whereIn('id', [...part]))) as Row[];
      for (const row of rows) {
        const isHeld = Number(row.leased_until ?? 0) > this.now();
        found.set(Number(row.id), { ...this.queuedOf(row), isHeld });
      }
    });
    return found;
  }

  protected named(tableName: string): string {
    const { schema } = this.database;
    return schema ? `"${schema}".${tableName}` : tableName;
  }

  protected in(db: Db): Knex.QueryBuilder {
    return db.table(this.options.tableName);
  }

  private queuedOf(row: Row): QueuedRow {
    const own = Object.keys(this.options.columns).map((column) => [column, row[column]]);
    return {
      id: Number(row.id),
      group: Number(row.group_id),
      state: STATES[Number(row.state)] as QueueState,
      dueAt: Number(row.due_at),
      columns: Object.fromEntries(own) as QueuedRow['columns'],
    };
  }

  protected leasedOf(row: Row): LeasedRow {
    return {
      ...this.queuedOf(row),
      owner: String(row.owner),
      leaseUntil: Number(row.leased_until),
    };
  }

  private valuesOf({ id, group, ...place }: MissingRow): OwnColumns {
    return { id, group_id: group, ...this.placed(place) };
  }

  private placed({ dueAt, state = 'ready', columns }: NextPlace): OwnColumns {
    const free = { state: QUEUE_STATES[state], due_at: dueAt, owner: null, leased_until: null };
    return { ...free, ...columns };
  }

  /** Runs a statement for each part of many: rows of a queue are small, so that their number bounds it. */
  protected async inParts<T>(
    items: readonly T[],
    run: (part: readonly T[]) => Promise<void>
  ): Promise<void> {
    const slice = new TimeSlice();
    for (let at = 0; at < items.length; at += AT_ONCE) {
      if (slice.isOver()) await slice.next();
      await run(items.slice(at, at + AT_ONCE));
    }
  }

  private async updateOwned(db: Db, updates: readonly RowUpdate[]): Promise<Set<number>> {
    const held = new Set<number>();
    await this.inParts(updates, async (part) => {
      const ids = await db.dialect.updateRows(db.knex, this.rows, part);
      for (const id of ids) held.add(id);
    });
    return held;
  }

  /**
   * Groups after a group that have ready rows. The first free row of each is looked for, past leased ones
   * at the head, and the leases only if that one is not due yet: the cost depends on the leased rows, not
   * on the waiting ones.
   */
  private async dueGroupsAfter(db: Db, after: number): Promise<DueGroup[]> {
    const { name } = this;
    const now = this.now();
    const groups = this.dialect.groupsAfter(name, after, LOOKED_AT_ONCE);
    const served = Object.entries(this.options.groups.where ?? {});
    const seen = this.options.groups.seen?.columns ?? '';
    const sql = `SELECT free.id, free.looked_at, free.free_at, served.id AS served,${seen && ` ${seen},`}
        CASE WHEN free.free_at <= ? THEN NULL ELSE (
          SELECT MIN(CASE WHEN leased_until > due_at THEN leased_until ELSE due_at END) FROM ${name}
          WHERE state = ${READY} AND group_id = free.id AND due_at < COALESCE(free.free_at, ${END_OF_TIME})
        ) END AS lease_ends
      FROM (
        SELECT found.id, found.looked_at, (
          SELECT due_at FROM ${name} WHERE state = ${READY} AND group_id = found.id
            AND (leased_until IS NULL OR leased_until <= ?) ORDER BY due_at, id LIMIT 1
        ) AS free_at
        FROM (${groups.sql}) found LIMIT ${LOOKED_AT_ONCE}
      ) free
      LEFT JOIN ${this.named(this.options.groups.tableName)} served
        ON served.id = free.id ${served.map(([column]) => `AND served.${column} = ?`).join(' ')}
      ORDER BY free.id`;
    const bindings = [now, now, ...groups.bindings, ...served.map(([, value]) => value)];
    return rowsOf(await db.prepared({ sql, bindings: bindings as Knex.RawBinding[] }));
  }
}
