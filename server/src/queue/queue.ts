import { randomUUID } from 'node:crypto';
import type { Knex } from 'knex';
import { rowsOf, type Statement } from '../database/connection';
import type { Database, Db, Tx } from '../database/db';
import type { SqlValue } from '../database/dialects/shared';
import { withTransientRetry } from '../database/retry';
import type { Column, PlainTable } from '../database/tables/plain-tables';
import { inChunks } from '../database/written-rows';
import { TimeSlice } from '../runtime/event-loop';
import { idsOf, queueDialectOf, READY, type Row } from './dialects';

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
  /** It takes one of the slots of its group's cap. */
  isCounted?: true;
}

/** `ready`: claimed when due. `blocked`: behind an earlier row of its key. `parked`: waits. `ended`: to be found. */
export const QUEUE_STATES = { ready: READY, blocked: 1, parked: 2, ended: 3 } as const;
export type QueueState = keyof typeof QUEUE_STATES;

/** Values of the columns that a kind of work has in addition to those of every queue. */
type OwnColumns = Readonly<Record<string, SqlValue>>;

/**
 * A queue's table: a row is something unfinished, and its `id` that of its row in the log. A claim writes only `owner`
 * and `leased_until`, which are in no index: a lease keeps due time and place, and PostgreSQL updates no index
 * (heap-only).
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
  /** The table whose rows are groups, and which of them are served. */
  groups: {
    tableName: string;
    where?: OwnColumns;
    /** A group that is always served, and that is no row. */
    always?: number;
    seen?: {
      /** Columns with their names, in SQL, of the group's row as `served`. */
      columns: string;
      /** Called for them. @returns when the group is due whose first row is due at that time */
      dueAt(group: number, columns: Readonly<Record<string, unknown>>, firstDueAt: number): number;
    };
  };
  /** How long a lease lasts without renewal, in milliseconds. */
  leaseMs: number;
}

/** The next place of a row: when it is due, epoch milliseconds, and in what state if it is not ready. */
export interface NextPlace {
  dueAt: number;
  state?: QueueState;
  columns?: OwnColumns;
}

export interface NewRow extends NextPlace {
  id: number;
  group: number;
  columns: OwnColumns;
  /** In a group with an order: it waits for earlier rows with the same one. null: for none. */
  orderingKey?: string | null;
}

/** For a row that is in the queue by now: it stays as it is, or gets the given values, even under a lease. */
export type IfQueued = 'ignore' | 'replace';

interface QueuedRow extends Pick<Lease, 'id' | 'group' | 'dueAt'> {
  state: QueueState;
  columns: Readonly<Record<string, unknown>>;
}

/** A row that may be under a lease. */
export type FoundRow = QueuedRow & {
  isHeld: boolean;
};

export type LeasedRow = QueuedRow & Lease;

export interface Outcome {
  lease: Pick<Lease, 'id' | 'owner' | 'isCounted'>;
  /** The row's next place; null: it is done and leaves the queue. All of one call have the same columns. */
  next: NextPlace | null;
}

/** Entries of the index that one look for groups reads. */
const LOOKED_AT_ONCE = 500;
/** Leases searched for the first that ends. Unbounded, PostgreSQL expects all rows and compiles the query: 180 ms. */
const LEASES_AT_ONCE = 2000;
const END_OF_TIME = Number.MAX_SAFE_INTEGER;

const FREE = { owner: null, leased_until: null } as const;

const STATES = Object.keys(QUEUE_STATES) as QueueState[];

/**
 * A database queue for any number of nodes: rows in groups that must not starve each other, each in the order of
 * `due_at` and `id`. Times are epoch milliseconds of the database's clock. A lease's holder writes its row only while
 * the lease holds; an unrenewed lease ends by itself, and the row is claimed again in its place.
 */
export class Queue {
  protected readonly dialect: ReturnType<typeof queueDialectOf>;
  protected readonly name: string;

  constructor(
    protected readonly database: Database,
    protected readonly options: QueueOptions
  ) {
    this.dialect = queueDialectOf(database.client);
    this.name = database.named(options.tableName);
  }

  now(): number {
    return this.database.clock.now();
  }

  /** Queues rows, in statements of bounded size: they are there if and only if `tx` commits. */
  async insert(db: Db, rows: readonly NewRow[], then?: IfQueued): Promise<void> {
    await db.insert(
      this.options.tableName,
      rows.map(({ id, group, ...place }) => ({ id, group_id: group, ...this.placed(place) })),
      then && { unique: ['id'], then }
    );
  }

  /**
   * When each group can next be claimed: its first free row is due, or the first lease ends if all due rows are leased.
   * Omits unserved groups and those without ready rows. Costs a few steps a group, however many rows it has.
   */
  async due(): Promise<Map<number, number>> {
    await this.database.clock.sync();
    const { always, seen } = this.options.groups;
    const due = new Map<number, number>();
    for await (const groups of this.pages((found) => this.dueAmong(found))) {
      for (const { id: group, free_at: free, lease_ends: ends, ...columns } of groups) {
        const id = Number(group);
        const first = Math.min(Number(free ?? END_OF_TIME), Number(ends ?? END_OF_TIME));
        if (first === END_OF_TIME) continue;
        if (id === always) due.set(id, first);
        else if (columns.served !== null) due.set(id, seen?.dueAt(id, columns, first) ?? first);
      }
    }
    return due;
  }

  /** Deleted groups with ready rows, which no process claims. */
  async lostGroups(): Promise<number[]> {
    const { tableName, always } = this.options.groups;
    const lost: number[] = [];
    // In one statement with the rows, so that a group that was made with them is there.
    const withGroups = ({ sql, bindings }: Statement): Statement => ({
      sql: `SELECT found.id, found.looked_at, known.id AS known
        FROM (${sql}) found LEFT JOIN ${this.database.named(tableName)} known ON known.id = found.id`,
      bindings,
    });
    for await (const found of this.pages(withGroups))
      lost.push(...idsOf(found.filter(({ id, known }) => known === null && Number(id) !== always)));
    return lost;
  }

  /** Leases due rows, up to a number per group, in the order of their due times. */
  claim(rooms: readonly GroupRoom[]): Promise<LeasedRow[]> {
    return withTransientRetry(() => this.leaseDue(rooms));
  }

  /** Prolongs leases to the time of a new one, each only while its owner still holds it. */
  async renew(leases: readonly Lease[]): Promise<void> {
    await this.setOwned(leases, { leased_until: this.now() + this.options.leaseMs });
  }

  /** Releases the leases of unprocessed rows, which keep their place. */
  async release(leases: readonly Lease[]): Promise<void> {
    await this.setOwned(leases, FREE);
  }

  /** Ends leases with the next place of each row, only while held; returns the ids still held, others are unchanged. */
  async settle(tx: Tx, outcomes: readonly Outcome[]): Promise<Set<number>> {
    const done = outcomes.flatMap(({ lease, next }) => (next ? [] : lease));
    const kept = outcomes.flatMap(({ lease: { id, owner }, next }) =>
      next ? { id, owner, set: this.placed(next) } : []
    );
    const deleted = await this.inParts(done, (part) =>
      this.dialect.deleteOwned(tx, this.name, part)
    );
    const moved = await tx.updateRows(this.options.tableName, kept);
    return new Set([...deleted.flat(), ...moved]);
  }

  /** Moves rows from one state to another and keeps their place; holders continue with them. */
  async setState(db: Db, ids: readonly number[], to: QueueState, from: QueueState): Promise<void> {
    await this.inParts(ids, (part) =>
      this.in(db)
        .whereIn('id', part)
        .where({ state: QUEUE_STATES[from] })
        .update({ state: QUEUE_STATES[to] })
    );
  }

  /** Makes unfinished rows ready and due now, leased ones too: their holder then fails to settle. Returns their ids. */
  async bringForward(tx: Db, ids: readonly number[], columns: OwnColumns = {}) {
    const found = [...(await this.lock(tx, ids)).values()];
    const forward = idsOf(found.filter(({ state }) => state !== 'ended'));
    await this.move(tx, forward, { dueAt: this.now(), columns });
    return new Set(forward);
  }

  /** Places a row, or removes it (null), unless it is due or leased or its own columns differ from `still`. */
  async reschedule(db: Db, row: NewRow, next: NextPlace | null, still: OwnColumns = {}) {
    const now = this.now();
    const waiting = this.free(this.in(db), now)
      .where({ id: row.id, ...still })
      .andWhere((notDue) => {
        notDue.whereNot({ state: QUEUE_STATES.ready }).orWhere('due_at', '>', now);
      });
    if (!next) await waiting.delete();
    else if ((await waiting.update(this.placed(next))) === 0) {
      const columns = { ...row.columns, ...next.columns };
      await this.insert(db, [{ ...row, ...next, columns }], 'ignore');
    }
  }

  async find(db: Db, ids: readonly number[], as = (rows: Knex.QueryBuilder) => rows) {
    const found = await this.inParts<number, Row[]>(ids, (part) =>
      as(this.in(db).whereIn('id', part))
    );
    const now = this.now();
    const rows = found.flat().map((row): FoundRow => {
      return { ...this.queuedOf(row), isHeld: Number(row.leased_until ?? 0) > now };
    });
    return new Map(rows.map((row) => [row.id, row]));
  }

  /** As `find`, locked until the transaction ends: in one order, so that two do not wait for each other in a circle. */
  lock(tx: Db, ids: readonly number[]): Promise<Map<number, FoundRow>> {
    const inOrder = [...ids].sort((a, b) => a - b);
    return this.find(tx, inOrder, (rows) => rows.orderBy('id').forUpdate());
  }

  /** Moves rows that the caller has locked to another place, even under a lease; null: they leave the queue. */
  async move(tx: Db, ids: readonly number[], next: NextPlace | null): Promise<void> {
    await this.inParts(ids, (part) => {
      const rows = this.in(tx).whereIn('id', part);
      return next ? rows.update(this.placed(next)) : rows.delete();
    });
  }

  /** Limits a query to rows without a lease. */
  free(rows: Knex.QueryBuilder, now = this.now()): Knex.QueryBuilder {
    return rows.andWhere((free) => {
      free.whereNull('leased_until').orWhere('leased_until', '<=', now);
    });
  }

  protected async leaseDue(rooms: readonly GroupRoom[]): Promise<LeasedRow[]> {
    const now = this.now();
    const lease = { now, until: now + this.options.leaseMs, owner: randomUUID() };
    const claimed = await this.dialect.claim(this.database, this.name, rooms, lease);
    return claimed
      .map((row) => this.leasedOf(row))
      .sort((a, b) => a.dueAt - b.dueAt || a.id - b.id);
  }

  protected in(db: Db): Knex.QueryBuilder {
    return db.table(this.options.tableName);
  }

  protected leasedOf(row: Row): LeasedRow {
    const lease = { owner: String(row.owner), leaseUntil: Number(row.leased_until) };
    return Object.assign(this.queuedOf(row), lease);
  }

  /** Runs a statement for each part of many, which their number bounds. @returns the answers */
  protected async inParts<T, Answer>(
    items: readonly T[],
    run: (part: T[]) => PromiseLike<Answer>
  ): Promise<Answer[]> {
    const slice = new TimeSlice();
    const answers: Answer[] = [];
    for (const part of inChunks(items)) {
      if (slice.isOver()) await slice.next();
      answers.push(await run(part));
    }
    return answers;
  }

  private queuedOf(row: Row): QueuedRow {
    const { id, group_id: group, state, due_at: dueAt, ...others } = row;
    const { owner: _owner, leased_until: _until, ...columns } = others;
    return {
      id: Number(id),
      group: Number(group),
      state: STATES[Number(state)] as QueueState,
      dueAt: Number(dueAt),
      columns,
    };
  }

  private placed({ dueAt, state = 'ready', columns }: NextPlace): OwnColumns {
    return { state: QUEUE_STATES[state], due_at: dueAt, ...FREE, ...columns };
  }

  private async setOwned(leases: readonly Lease[], set: OwnColumns): Promise<void> {
    if (leases.length === 0) return;
    const updates = leases.map(({ id, owner }) => ({ id, owner, set }));
    await this.database.retrying((tx) => tx.updateRows(this.options.tableName, updates));
  }

  /** Groups that have ready rows, by id, page by page; `seeing` wraps the statement that finds groups. */
  private async *pages(seeing: (found: Statement) => Statement): AsyncGenerator<Row[]> {
    const db = await this.database.current();
    const slice = new TimeSlice();
    for (let after = 0, looked = LOOKED_AT_ONCE; looked >= LOOKED_AT_ONCE;) {
      const found = this.dialect.groupsAfter(this.name, after, LOOKED_AT_ONCE);
      const groups = rowsOf<Row>(await db.prepared(seeing(found)));
      yield groups;
      looked = groups.reduce((sum, { looked_at: steps }) => sum + Number(steps), 0);
      after = Math.max(after, ...idsOf(groups));
      if (slice.isOver()) await slice.next();
    }
  }

  /**
   * When each group's first free row is due (`free_at`), and when the first lease of those due before it ends
   * (`lease_ends`). `served` is null if the group must not be worked on. Leases are read only if that row is not due
   * yet, so the cost depends on leased rows, not on waiting ones.
   */
  private dueAmong(groups: Statement): Statement {
    const { name } = this;
    const now = this.now();
    const served = Object.entries(this.options.groups.where ?? {});
    const seen = this.options.groups.seen?.columns ?? '';
    const before = `${name} WHERE state = ${READY} AND group_id = free.id
      AND due_at < COALESCE(free.free_at, ${END_OF_TIME})`;
    const some = `(SELECT leased_until FROM ${before} ORDER BY due_at, id LIMIT ${LEASES_AT_ONCE}) held`;
    const held = this.dialect.namesOuter ? some : before;
    const sql = `SELECT free.id, free.looked_at, free.free_at, served.id AS served,${seen && ` ${seen},`}
        CASE WHEN free.free_at <= ? THEN NULL ELSE (
          SELECT MIN(leased_until) FROM ${held}
        ) END AS lease_ends
      FROM (
        SELECT found.id, found.looked_at, (
          SELECT due_at FROM ${name} WHERE state = ${READY} AND group_id = found.id
            AND (leased_until IS NULL OR leased_until <= ?) ORDER BY due_at, id LIMIT 1
        ) AS free_at
        FROM (${groups.sql}) found LIMIT ${LOOKED_AT_ONCE}
      ) free
      LEFT JOIN ${this.database.named(this.options.groups.tableName)} served
        ON served.id = free.id ${served.map(([column]) => `AND served.${column} = ?`).join(' ')}
      ORDER BY free.id`;
    const bindings = [now, now, ...groups.bindings, ...served.map(([, value]) => value)];
    return { sql, bindings: bindings as Knex.RawBinding[] };
  }
}
