import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { TimeSlice } from '../runtime/event-loop';
import { DatabaseClock, Site } from './site';
import {
  bytesOf,
  type Executor,
  inParts,
  type Leave,
  rawStatement,
  readStatementSize,
  rowsOf,
  runPrepared,
  type Statement,
  type StatementSize,
  table,
} from './connection';
import { mysql } from './dialects/mysql';
import { postgres } from './dialects/postgres';
import {
  type Conflict,
  type Dialect,
  type FollowUp,
  type InsertedRow,
  type MadeRow,
  type RowUpdate,
} from './dialects/shared';
import { sqlite } from './dialects/sqlite';
import { dropStatement, isDatabaseError } from '../runtime/text';
import { isDuplicate, withTransientRetry } from './retry';
import { currentTurn, inTurn, leavingToCommit, openingOurs } from './transactions';

const DIALECTS: Readonly<Record<string, Dialect>> = { sqlite, postgres, mysql };

const ROWS_AT_ONCE = 100;
const UPDATED_AT_ONCE = 200;

interface Following {
  /** Rows of another table. */
  followUp?: FollowUp;
  ids?: Map<string, number>;
  leave?: Leave<void>;
}

/**
 * Statements on the site's pool or in one of its transactions. SQLite has one connection: a statement outside the open
 * transaction waits for it for ever, so code that may run in a transaction takes a `Db` or asks for the current one.
 */
export class Db {
  constructor(
    /** The query builder's own: the pool or the transaction. */
    readonly knex: Executor,
    protected readonly database: Database
  ) {}

  /** The host's name of the database: `sqlite`, `postgres`, or `mysql`, which MariaDB is too. */
  get client(): string {
    return this.database.client;
  }

  /** The schema of a site on PostgreSQL, if it is not the default one. */
  get schema(): string | undefined {
    return this.database.schema;
  }

  get dialect(): Dialect {
    return this.database.dialect;
  }

  /** A table's name in the text of a statement. */
  named(tableName: string): string {
    return this.database.named(tableName);
  }

  get site(): Site {
    return this.database.site;
  }

  /** A query builder on a table of the site's schema; its errors do not hold its values. */
  table(name: string): Knex.QueryBuilder {
    return table(this.database.strapi, this.knex, name);
  }

  /** A query over the rows of another one of ours; its errors do not hold its values. */
  from(query: Knex.QueryBuilder): Knex.QueryBuilder {
    return (this.knex as Knex)
      .queryBuilder()
      .from(query.clone().as('found'))
      .on('query-error', dropStatement);
  }

  /** A raw statement; its errors do not hold its values. */
  raw(sql: string, bindings: readonly Knex.RawBinding[] = []): Knex.Raw {
    return rawStatement(this.knex, sql, bindings);
  }

  /** The end of a query whose rows are locked until its transaction ends. */
  get forUpdate(): string {
    return this.client === 'sqlite' ? '' : ' FOR UPDATE';
  }

  /** The rows of a statement with `?` for each value, and its names written out. */
  async rows<T>(sql: string, bindings: readonly Knex.RawBinding[] = []): Promise<T[]> {
    return rowsOf<T>(await this.prepared({ sql, bindings }));
  }

  /** The rows with these ids, in a statement of few different lengths. */
  byIds<T>(tableName: string, columns: string, ids: readonly number[]): Promise<T[]> {
    const any = this.dialect.anyOf('id', ids);
    const sql = `SELECT ${columns} FROM ${this.named(tableName)} WHERE ${any.sql}`;
    return this.rows<T>(sql, any.bindings);
  }

  /** The id of the newest row of a table; 0: there is none. */
  async newestId(tableName: string): Promise<number> {
    const [row] = (await this.table(tableName).max({ id: 'id' })) as { id: unknown }[];
    return Number(row?.id ?? 0);
  }

  /** Runs a statement of ours past the query builder: only for those of which there are few different ones. */
  prepared(statement: Statement): Promise<unknown> {
    return runPrepared(this.knex, statement);
  }

  /** The capacity of one statement, in bytes; read once a process. */
  async statementSize(): Promise<StatementSize> {
    this.database.size ??= await readStatementSize(this.knex, this.client);
    return this.database.size;
  }

  /** Runs a statement for each part of some items, none longer than the database takes. */
  async inParts<T>(
    items: readonly T[],
    { count, valuesOf }: { count: number; valuesOf(item: T): Readonly<Record<string, unknown>> },
    run: (part: readonly T[]) => Promise<void>
  ): Promise<void> {
    if (items.length <= 1) return items.length === 0 ? undefined : run(items);
    const { batch } = await this.statementSize();
    const slice = new TimeSlice();
    const sizeOf = (item: T): number => bytesOf(valuesOf(item));
    for (const part of inParts(items, { count, bytes: batch }, sizeOf)) {
      if (slice.isOver()) await slice.next();
      await run(part);
    }
  }

  /** Inserts rows of equal columns, in order and in bounded statements. Rows skipped on conflict still use up ids. */
  insert(tableName: string, rows: readonly InsertedRow[], conflict?: Conflict): Promise<void> {
    const columns = Object.keys(rows[0] ?? {});
    const target = { name: tableName, schema: this.schema, columns, conflict };
    return this.inParts(rows, { count: ROWS_AT_ONCE, valuesOf: (row) => row }, (part) =>
      this.dialect.insert(this.knex, target, part)
    );
  }

  /** As `insert`, for hundreds of rows. Adds row ids by document id to `ids`; with `leave`, once what it gets resolves. */
  async insertForIds(
    tableName: string,
    rows: readonly (InsertedRow & { document_id: string })[],
    { followUp, ids = new Map(), leave }: Following = {}
  ): Promise<Map<string, number>> {
    const target = { name: tableName, schema: this.schema, columns: Object.keys(rows[0] ?? {}) };
    const keep = (made: readonly MadeRow[]): void => {
      for (const { id, document_id: key } of made) ids.set(key, Number(id));
    };
    const left = leave && ((made: Promise<readonly MadeRow[]>) => leave(made.then(keep)));
    const also = { followUp, leave: left };
    await this.inParts(rows, { count: ROWS_AT_ONCE, valuesOf: (row) => row }, async (part) => {
      keep(await this.dialect.insertForIds(this.knex, target, part, also));
    });
    return ids;
  }

  /** Makes a query read committed rows, not MySQL's older snapshot. Only for rows locked by this transaction. */
  latest(query: Knex.QueryBuilder): Knex.QueryBuilder {
    return this.client === 'mysql' ? query.forShare() : query;
  }
}

/** A transaction, or a part of a caller's transaction. */
export class Tx extends Db {
  declare readonly knex: Knex.Transaction;
  constructor(
    knex: Knex.Transaction,
    database: Database,
    /** Runs `callback` when the outermost transaction has committed; never when it rolls back. */
    readonly onCommit: (callback: () => void) => void,
    private readonly isPart: boolean
  ) {
    super(knex, database);
  }

  /** Hands the answer to the transaction's last statement to its commit, which waits for it. */
  get leave(): Leave<unknown> | undefined {
    return leavingToCommit(this.knex, this.isPart);
  }

  /** Writes rows of equal columns in bounded statements, owned ones only while held; returns the ids still held. */
  async updateRows(tableName: string, rows: readonly RowUpdate[]): Promise<Set<number>> {
    const table = { name: tableName, schema: this.schema };
    const held = new Set<number>();
    const limits = { count: UPDATED_AT_ONCE, valuesOf: ({ set }: RowUpdate) => set };
    await this.inParts(rows, limits, async (part) => {
      for (const id of await this.dialect.updateRows(this.knex, table, part)) held.add(id);
    });
    return held;
  }
}

/** Ends a transaction that must not be committed, and carries what was found out in it. */
class RolledBack extends Error {
  constructor(readonly found: unknown) {
    super('A preview was rolled back.');
  }
}

/** The driver waits for a lock without giving the event loop back, so the whole site waits. */
const LONGEST_WAIT_MS = 1000;

const ADVICE = 'see docs/databases.md of strapi-plugin-switchboard';

/** Work that takes many names may meet another taken one on each attempt. */
const UNIQUE_TRIES = 5;

let savepoints = 0;

/** The site's database; ARCHITECTURE.md describes which transactions may be nested. */
export class Database {
  readonly clock: DatabaseClock;

  readonly site: Site;

  /** Outside of any transaction: for work that no transaction has started, such as that of timers. */
  readonly pool: Db;

  size: StatementSize | undefined;

  constructor(readonly strapi: Core.Strapi) {
    this.clock = new DatabaseClock(strapi);
    this.site = new Site(strapi);
    this.pool = new Db(strapi.db.connection, this);
  }

  get client(): string {
    return this.strapi.db.dialect.client;
  }

  get schema(): string | undefined {
    return this.strapi.db.getSchemaName();
  }

  named(tableName: string): string {
    return this.schema ? `"${this.schema}".${tableName}` : tableName;
  }

  get dialect(): Dialect {
    const dialect = DIALECTS[this.client];
    if (!dialect) throw new Error(`Switchboard does not know the database ${this.client}`);
    return dialect;
  }

  /** True if the current asynchronous context is within a transaction of any origin. */
  inTransaction(): boolean {
    return this.strapi.db.inTransaction();
  }

  /** The transaction of the current asynchronous context, or the pool if there is none. */
  async current(): Promise<Db> {
    if (!this.inTransaction()) return this.pool;
    const known = currentTurn(this.strapi)?.transaction?.trx;
    return new Db(known ?? (await this.strapi.db.transaction()).get(), this);
  }

  /** Runs `work` in the current transaction, or in a new one, which reads committed rows on every database. */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    const isPart = this.inTransaction();
    return openingOurs(() =>
      this.strapi.db.transaction(({ trx, onCommit }) =>
        work(new Tx(trx as Knex.Transaction, this, onCommit as Tx['onCommit'], isPart))
      )
    ) as Promise<T>;
  }

  /** Runs `work` in a transaction and repeats it after a deadlock; within a caller's transaction it is not repeated. */
  retrying<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    const run = (): Promise<T> => this.transaction(work);
    return this.inTransaction() ? run() : withTransientRetry(run);
  }

  /** As `retrying`, for work that checks a name before taking it; on a unique violation it runs again and sees it. */
  async unique<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.retrying(work);
      } catch (error) {
        if (attempt >= UNIQUE_TRIES || !isDuplicate(error) || this.inTransaction()) throw error;
      }
    }
  }

  /** Does work, keeps its result and rolls back: its own transaction, or within a caller's to a savepoint before it. */
  async rolledBack<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    const isPart = this.inTransaction();
    try {
      return await this.transaction<never>((tx) => {
        const undone = async (): Promise<never> => {
          throw new RolledBack(await work(tx));
        };
        return isPart ? this.savepoint(undone) : undone();
      });
    } catch (error) {
      if (error instanceof RolledBack) return error.found as T;
      throw error;
    }
  }

  /**
   * Runs a part of the transaction that may fail; PostgreSQL refuses further statements after an error without a
   * savepoint. Concurrent savepoints take turns: releasing one releases those opened after it.
   * @throws the error of `work`, with its changes undone; the database's error if they cannot be
   */
  savepoint<T>(work: () => Promise<T>): Promise<T> {
    return inTurn(this.strapi, async (turn) => {
      const { knex } = await this.current();
      savepoints += 1;
      const name = `switchboard_${savepoints}`;
      await knex.raw(`SAVEPOINT ${name}`);
      try {
        const result = await work();
        await turn.ended();
        await knex.raw(`RELEASE SAVEPOINT ${name}`);
        return result;
      } catch (error) {
        await turn.undo();
        // A deadlock's victim has no transaction left; the caller gets the deadlock's error.
        if (!turn.isLost()) await knex.raw(`ROLLBACK TO SAVEPOINT ${name}`);
        throw error;
      }
    });
  }

  /**
   * Runs a write and publishes what it changed, as one turn of one transaction. If the write fails in a caller's
   * transaction, its changes so far are published, as the caller may still commit. If that fails, nothing commits.
   */
  unitOfWork<T>(work: () => Promise<T>, publish: (tx: Tx) => Promise<void>): Promise<T> {
    const isPart = this.inTransaction();
    return this.transaction((tx) =>
      inTurn(this.strapi, async (turn) => {
        const published = (): Promise<void> =>
          publish(tx).catch((error: unknown) => {
            // PostgreSQL does not commit after an error of its own: then there is nothing to publish.
            if (this.client !== 'postgres' || !isDatabaseError(error)) turn.refuseCommit(error);
            throw error;
          });
        let result: T;
        try {
          result = await work();
        } catch (error) {
          if (isPart && !turn.isLost()) await published().catch(() => {});
          throw error;
        }
        await published();
        return result;
      })
    );
  }

  /** Runs `callback` after the current transaction commits, or at once if there is none. */
  afterCommit(callback: () => void): void {
    if (this.inTransaction()) void this.transaction(async ({ onCommit }) => onCommit(callback));
    else callback();
  }

  /**
   * Runs a statement on its own connection, concurrently. The pool is asked before this returns, so a later transaction
   * queues behind it. Never call it in a transaction: a holder of a connection must not wait for another.
   */
  apart(statement: Statement): Promise<unknown> {
    return runPrepared(this.pool.knex, statement);
  }

  /** Boot warnings about a site's SQLite; none about one in memory, null of another database. */
  async sqliteWarnings(): Promise<string[] | null> {
    if (this.client !== 'sqlite') return null;
    const { knex } = await this.current();
    const read = async (pragma: string): Promise<Record<string, unknown>> =>
      (await knex.raw<Record<string, unknown>[]>(`PRAGMA ${pragma}`))[0] ?? {};
    const { file } = await read('database_list');
    if (!file) return [];
    const mode = String((await read('journal_mode')).journal_mode);
    const wait = Number((await read('busy_timeout')).timeout);
    const faults = [
      mode.toLowerCase() !== 'wal' &&
        `SQLite runs without its write-ahead log (journal_mode is ${mode}): set it to WAL`,
      wait > LONGEST_WAIT_MS &&
        `SQLite waits up to ${wait} ms for a lock, and the whole site with it: set busy_timeout to 50`,
    ];
    return faults.flatMap((fault) => (fault ? `${fault}; ${ADVICE}.` : []));
  }
}
