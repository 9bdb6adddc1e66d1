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

/**
 * The place of a row in a queue. `ready`: it is claimed once it is due. `blocked`: an earlier row of its ordering key goes
 * first. `parked`: it waits until somebody makes it ready. `ended`: nobody works on it any more, and it is kept to be found.
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
  /** How long a lease lasts that nobody renews, in milliseconds. */
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
/**
 * Leases of a group among which the first that ends is looked for; beyond that many the regular look finds
 * it. Without a bound PostgreSQL expects to read all that waits, and compiles the query: 180 ms of 1,000,000.
 */
const LEASES_AT_ONCE = 2000;
const END_OF_TIME = Number.MAX_SAFE_INTEGER;

const FREE = { owner: null, leased_until: null } as const;

const STATES = Object.keys(QUEUE_STATES) as QueueState[];

/**
 * A queue of work in a table of the site's database, for any number of nodes: rows in groups that must
 * not starve each other, each group in the order of `due_at` and `id`. Times are epoch milliseconds of
 * the database's clock. The holder of a lease writes its row only while that lease holds; a lease that
 * nobody renews ends by itself, and the row is claimed again in its place.
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
   * When something of each group can next be claimed: when its first free row is due or, where all
   * that is due is leased, when the first of those leases ends. Groups of which nothing is ready and
   * that are not served are absent. Costs a few steps a group, however many rows it has.
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

  /** Groups in which rows are ready and that are gone: nobody claims of them. */
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

  /** Leases rows that are due, so many of each group, and in the order in which they have been due. */
  claim(rooms: readonly GroupRoom[]): Promise<LeasedRow[]> {
    return withTransientRetry(() => this.leaseDue(rooms));
  }

  /** Prolongs leases to the time of a new one, each only while its owner still holds it. */
  async renew(leases: readonly Lease[]): Promise<void> {
    await this.setOwned(leases, { leased_until: this.now() + this.options.leaseMs });
  }

  /** Gives rows back unworked: they are in their place, and held by nobody. */
  async release(leases: readonly Lease[]): Promise<void> {
    await this.setOwned(leases, FREE);
  }

  /**
   * Ends leases with what comes next of each row, each only while its owner holds it.
   * @returns the ids that were still held; of the others nothing has changed
   */
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

  /** Gives rows of a state another one, in the place that they have; who holds one goes on with it. */
  async setState(db: Db, ids: readonly number[], to: QueueState, from: QueueState): Promise<void> {
    await this.inParts(ids, (part) =>
      this.in(db)
        .whereIn('id', part)
        .where({ state: QUEUE_STATES[from] })
        .update({ state: QUEUE_STATES[to] })
    );
  }

  /**
   * Makes rows ready and due now, but for those that have ended: a row under a lease too, whose holder
   * then fails to settle it.
   * @returns the ids of those that are in the queue and have not ended
   */
  async bringForward(tx: Db, ids: readonly number[], columns: OwnColumns = {}) {
    const found = [...(await this.lock(tx, ids)).values()];
    const forward = idsOf(found.filter(({ state }) => state !== 'ended'));
    await this.move(tx, forward, { dueAt: this.now(), columns });
    return new Set(forward);
  }

  /**
   * Sets where a row goes on that is not due yet and that nobody holds, or that is not in the queue; null: it leaves
   * the queue. A row that is due, or whose own columns are not `still` what they were, stays as it is.
   */
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

  /** Keeps only those rows of a query that nobody holds. */
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

  /**
   * Groups that have ready rows, in the order of their ids, page by page.
   * @param seeing the statement that reads more of the groups that one finds
   */
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
   * When the first row of each group is due that nobody holds (`free_at`), and when the first lease ends
   * of those due before it (`lease_ends`). `served` is null if the group is not to be worked on now. The
   * first free row is looked for past leased ones at the head, and the leases only if that one is not due
   * yet: the cost depends on the leased rows, not on the waiting ones.
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
