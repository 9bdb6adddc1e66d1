import { AsyncLocalStorage } from 'node:async_hooks';
import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { describeDatabaseError, isDatabaseError, logFailure } from '../runtime/text';

interface Transaction {
  readonly trx: Knex.Transaction;
  /** Each of its statements reads what is committed by then, not what was when it first read. */
  readonly isFresh: boolean;
  /** The plugin opened it: without the plugin, its statements would have none. */
  readonly isOurs: boolean;
  /** Opened during a call of the document service, by the host for that call, or by the site. */
  readonly isCalls: boolean;
  /** The database has rolled it back by itself: statements and a commit would say something else. */
  lost: Error | null;
  /** Its last error, unless it went back to before that. */
  fault: unknown;
  /** The driver's, once a statement has run on it. */
  connection?: unknown;
  /** Statements whose answers the commit waits for. */
  left?: Promise<unknown>;
  /** A savepoint was set: what is undone up to it says nothing to the commit. */
  hasSavepoint?: boolean;
  /** It went back to a savepoint, perhaps one of the site's own, which knows no turns. */
  wentBack?: boolean;
  /** True if it was committed; resolves once it has ended. */
  readonly ended: Promise<boolean>;
}

/** The transaction is rolled back, though the code at work in it may have caught the reason. */
class LostTransactionError extends Error {
  /** The code of the error that did it, if there was one. */
  readonly code: string | undefined;

  constructor(cause: unknown, what = 'The database rolled the transaction back') {
    const { code } = (cause ?? {}) as { code?: unknown };
    // The database's own message may hold a statement and its values.
    const reason = isDatabaseError(cause) ? `: ${describeDatabaseError(cause)}` : '';
    super(`${what}${reason}`);
    this.name = 'LostTransactionError';
    this.code = typeof code === 'string' ? code : undefined;
  }
}

interface QueryObject {
  sql: string;
  bindings?: readonly unknown[];
  /** For the driver. */
  options?: object;
  response?: unknown;
}

export interface QueryClient {
  driverName: string;
  on(event: 'query', listener: (query: QueryObject) => void): void;
  query(connection: unknown, statement: string | QueryObject): Promise<QueryObject>;
  _query(connection: unknown, statement: QueryObject): Promise<QueryObject>;
  acquireConnection(): Promise<unknown>;
  releaseConnection(connection: unknown): Promise<void>;
}

type Ending = (value?: unknown) => Promise<unknown>;

interface Transactor {
  client: QueryClient;
  executionPromise: Promise<unknown>;
  isCompleted(): boolean;
  commit: Ending;
  rollback: Ending;
}

interface HostTools {
  trx: Knex.Transaction;
  commit(): Promise<void>;
  rollback(): Promise<void>;
  onCommit(callback: () => void): void;
}

const turns = new AsyncLocalStorage<Turn>();
const inCall = new AsyncLocalStorage<true>();
const newest = new AsyncLocalStorage<true>();
const transactions = new WeakMap<object, Transaction>();
/** True while the plugin calls the host's `transaction`, which looks at it at once. */
let isOpeningOurs = false;

/** Errors after which MySQL and MariaDB have rolled back the whole transaction, not only the statement. */
const ENDS_TRANSACTION = new Set(['ER_LOCK_DEADLOCK', 'ER_CHECKREAD']);

const hasEnded = (connection: unknown): boolean =>
  (connection as { inTransaction?: boolean }).inTransaction === false;

/** Takes note of an error of a statement, which may have ended the whole transaction. */
export const noteFault = (executor: object, connection: unknown, error: unknown): void => {
  const transaction = transactions.get(executor);
  if (!transaction) return;
  transaction.fault ??= error;
  const { code } = error as { code?: unknown };
  const { driverName } = (transaction.trx as unknown as Transactor).client;
  // If the disk is full, or cannot be written, SQLite may end the transaction by itself.
  const isOver =
    driverName === 'better-sqlite3' ? hasEnded(connection) : ENDS_TRANSACTION.has(String(code));
  if (isOver) transaction.lost ??= new LostTransactionError(error);
};

/** PostgreSQL refuses a statement because one before it failed. */
const ABORTED = '25P02';

const GOES_BACK = /^\s*rollback\s+(?:work\s+|transaction\s+)?to\b/i;

const LOCKS = /\b(?:for update|for share|lock in share mode)\b/i;

/** A locking read sees what is committed now; see `readNewest`. */
const asNewest = (transaction: Transaction, statement: string | QueryObject) => {
  if (transaction.isFresh || typeof statement === 'string' || !newest.getStore()) return statement;
  const { sql } = statement;
  if (!/^\s*select\b/i.test(sql) || LOCKS.test(sql)) return statement;
  return { ...statement, sql: `${sql} lock in share mode` };
};

type OnConnection<T> = (connection: unknown, pool: QueryClient) => T;

const withPooled = async <T>(pool: QueryClient, work: OnConnection<T>): Promise<Awaited<T>> => {
  const connection = await pool.acquireConnection();
  try {
    return await work(connection, pool);
  } finally {
    await pool.releaseConnection(connection);
  }
};

/** Runs work with a connection of the pool, asked before this returns, or at once with a transaction's. */
export const withConnection = <T>(executor: Knex, work: OnConnection<T>) => {
  const pool = executor.client as QueryClient;
  const own = transactions.get(executor)?.connection;
  return own === undefined ? withPooled(pool, work) : work(own, pool);
};

interface Pipelining {
  /** Newer drivers of PostgreSQL can send a statement before the one before it is answered. */
  pipeline?: boolean;
  connectionParameters?: { query_timeout?: unknown };
  once(event: 'drain', listener: () => void): void;
}

/** Sends without waiting for answers, until all have come. */
const sendAhead = (connection: Pipelining): void => {
  if (connection.pipeline) return;
  connection.pipeline = true;
  connection.once('drain', () => (connection.pipeline = false));
};

/**
 * A function that leaves the answer to a transaction's last statement to its commit: both share the way to the server
 * and back. It returns false if a savepoint could undo the statement and not the commit.
 * @param isPart others' statements may follow, which would get the error of one that fails
 */
export const leavingToCommit = (executor: object, isPart: boolean) => {
  const transaction = transactions.get(executor);
  if (!transaction || (isPart && !transaction.isCalls)) return undefined;
  return (answer: Promise<unknown>): boolean => {
    answer.catch(() => {}); // Thrown by the commit, or where it is awaited.
    const { pipeline, connectionParameters } = transaction.connection as Pipelining;
    // A statement that the driver gives up after a time must not have its commit behind it.
    const isSafe = pipeline !== undefined && !connectionParameters?.query_timeout;
    if (transaction.hasSavepoint || !isSafe) return false;
    transaction.left = Promise.all([transaction.left, answer]);
    transaction.left.catch(() => {});
    return true;
  };
};

/** Resolves once the transaction that an executor is has ended: true if it was committed. */
export const endOf = (executor: object) => transactions.get(executor)?.ended;

const noteSavepoint = (transaction: Transaction, sql: string): void => {
  transaction.wentBack ||= GOES_BACK.test(sql);
  transaction.hasSavepoint ||= /^\s*savepoint\b/i.test(sql);
};

/**
 * Watches a transaction's statements for false commits: knex resolves a refused COMMIT, PostgreSQL answers COMMIT of a
 * failed transaction with ROLLBACK, and MySQL runs on without a transaction after a deadlock.
 */
const watch = (
  strapi: Core.Strapi,
  trx: Knex.Transaction,
  given: Pick<Transaction, 'isFresh' | 'isOurs' | 'isCalls'>
): Transaction => {
  let settle = (_isCommitted: boolean): void => {};
  const ended = new Promise<boolean>((resolve) => (settle = resolve));
  const transaction: Transaction = { ...given, trx, lost: null, fault: null, ended };
  transactions.set(trx, transaction);
  const transactor = trx as unknown as Transactor;
  const { client } = transactor;
  const isMysql = strapi.db.dialect.client === 'mysql';
  const query = client.query.bind(client);
  // Emitted for nested transactions too, which have clients of their own.
  client.on('query', ({ sql }) => noteSavepoint(transaction, sql));

  client.query = async (connection, statement) => {
    transaction.connection ??= connection;
    const sql = typeof statement === 'string' ? statement : statement.sql;
    if (transaction.isOurs && transactor.isCompleted() && (await ended)) {
      // It comes from unawaited work, which without the plugin would run outside a transaction.
      return withConnection(strapi.db.connection, (own, pool) => pool.query(own, statement));
    }
    if (transaction.lost && !/^ROLLBACK;?$/i.test(sql)) throw transaction.lost;
    try {
      const sent = isMysql ? asNewest(transaction, statement) : statement;
      const left = sql === 'COMMIT;' ? transaction.left : undefined;
      if (left) sendAhead(connection as Pipelining);
      const answer = await query(connection, sent);
      const { command } = (answer?.response ?? {}) as { command?: unknown };
      if (left) await left;
      if (sql === 'COMMIT;' && command === 'ROLLBACK') {
        throw new LostTransactionError(transaction.fault);
      }
      if (GOES_BACK.test(sql)) transaction.fault = null;
      return answer;
    } catch (error) {
      const { fault, left } = transaction;
      noteFault(trx, connection, error);
      // The statement that failed was not waited for.
      if (left && (error as { code?: unknown }).code === ABORTED) throw fault ?? error;
      // SQLite leaves a transaction open whose commit it refuses.
      if (sql === 'COMMIT;' && client.driverName === 'better-sqlite3' && !hasEnded(connection)) {
        await client._query(connection, { sql: 'ROLLBACK' }).catch(() => {});
      }
      throw error;
    }
  };

  const { commit, rollback } = transactor;
  transactor.commit = async (value) => {
    try {
      const [answer] = await Promise.all([commit(value), transactor.executionPromise]);
      settle(true);
      return answer;
    } finally {
      settle(false);
    }
  };
  transactor.rollback = async (error) => rollback(error).finally(() => settle(false));
  return transaction;
};

const rolledBack = (cause: unknown = null): Error =>
  new LostTransactionError(cause, 'The transaction was rolled back');

/** A part of a transaction, such as a write with its events. Parts run one after the other; the outermost is the whole. */
export class Turn {
  /** Why the transaction must not be committed. */
  private doom: Error | null = null;
  /** false: nothing more begins in it. */
  isOpen = true;
  private isUndone = false;
  /** Ends with the last one that takes a turn in this one; null: none does. */
  private last: Promise<void> | null = null;

  /** @param transaction null: there is none, and turns need not wait */
  constructor(
    readonly transaction: Transaction | null,
    readonly parent: Turn | null = null
  ) {}

  /** Resolves when all that was begun in it has ended, also what began meanwhile. */
  async ended(): Promise<void> {
    while (this.last) await this.last;
  }

  /** Lets nothing more begin in it, nor follow its commit. To be called before the database goes back. */
  undo(): Promise<void> {
    this.isOpen = false;
    this.isUndone = true;
    return this.ended();
  }

  /** True if the database has rolled back the whole transaction. */
  isLost(): boolean {
    return Boolean(this.transaction?.lost);
  }

  /** Makes the transaction roll back in the end, unless it goes back to before this. */
  refuseCommit(error: unknown): void {
    this.doom ??= error instanceof Error ? error : new Error(String(error));
  }

  /** True if the database went back to before it. */
  isGone(): boolean {
    return this.isUndone || (this.parent?.isGone() ?? false);
  }

  /** Runs work to the end of all that takes turns in it. */
  async whole<T>(work: () => T | Promise<T>): Promise<T> {
    try {
      const result = await turns.run(this, work);
      while (this.last) await this.last;
      // From this very moment on nothing more begins in it.
      this.isOpen = false;
      if (this.doom) throw rolledBack(this.doom);
      return result;
    } finally {
      // If the work failed, waiting parts fail; one that is under way ends before the rollback.
      this.isOpen = false;
      await this.ended();
    }
  }

  /** Runs a part of it in its turn. @throws LostTransactionError if the transaction was rolled back meanwhile */
  async part<T>(work: (turn: Turn) => Promise<T>): Promise<T> {
    if (!this.isOpen) {
      if (await this.transaction?.ended) return work(new Turn(null));
      throw rolledBack();
    }
    const turn = new Turn(this.transaction, this);
    const before = this.last;
    let leave = (): void => {};
    const own = new Promise<void>((resolve) => (leave = resolve));
    this.last = own;
    try {
      if (before) await before;
      if (!this.isOpen) throw rolledBack();
      return await turns.run(turn, () => work(turn));
    } finally {
      while (turn.last) await turn.last;
      turn.isOpen = false;
      if (turn.doom && !turn.isUndone) this.doom ??= turn.doom;
      if (this.last === own) this.last = null;
      leave();
    }
  }
}

/** The parent of a new turn: the innermost of the current context that has not ended. */
export const currentTurn = (strapi: Core.Strapi): Turn | null => {
  if (!strapi.db.inTransaction()) return null;
  let turn = turns.getStore() ?? null;
  while (turn?.parent && !turn.isOpen) turn = turn.parent;
  return turn;
};

/** Runs a callback after commit and catches its rejection, which would end the process as no caller awaits it. */
const follow = (strapi: Core.Strapi, callback: () => unknown): void => {
  const following = callback();
  if (!(following instanceof Promise)) return;
  following.catch(logFailure(strapi, 'a task after a commit failed'));
};

/** Fails calls in a lost transaction before validation: yup never ends after a failed query, which ends the process. */
const refuseLost = (strapi: Core.Strapi): void => {
  strapi.documents.use(async (_context, next) => {
    const { lost, fault } = currentTurn(strapi)?.transaction ?? {};
    if (lost) throw lost;
    // PostgreSQL takes no statement before the transaction goes back to before the error.
    const isFailed = strapi.db.dialect.client === 'postgres' && isDatabaseError(fault);
    if (isFailed) throw new LostTransactionError(fault);
    return next();
  });
};

const watched = new WeakSet<object>();

/**
 * Watches every transaction of the site: detects false commits, lets parts take turns, and makes the plugin's own
 * transactions read committed rows. Call it in `register`, before any transaction opens. A part shares the async
 * context of the whole; with one of its own, the ended transaction would stay visible and unawaited work fail.
 */
export const watchTransactions = (strapi: Core.Strapi): void => {
  const db = strapi.db as unknown as {
    connection: Knex;
    transaction(work?: (tools: HostTools) => unknown): Promise<unknown>;
    dialect: { client: string };
  };
  if (watched.has(db)) return;
  watched.add(db);
  refuseLost(strapi);
  const open = db.transaction;
  const parts = new WeakMap<Transaction, HostTools>();
  /** The host's own method opens it, with another isolation. */
  const fresh: object = Object.create(db, {
    connection: {
      get: () => ({
        transaction: () =>
          (db.connection.transaction as (work: undefined, settings: object) => unknown)(undefined, {
            isolationLevel: 'read committed',
          }),
      }),
    },
  }) as object;

  db.transaction = async (work) => {
    const isOurs = isOpeningOurs;
    isOpeningOurs = false;
    if (strapi.db.inTransaction()) {
      const tools = parts.get(currentTurn(strapi)?.transaction as Transaction);
      return work && tools ? work(tools) : open.call(db, work);
    }
    const isCalls = inCall.getStore() === true;
    const isFresh = db.dialect.client === 'mysql' && (isOurs || isCalls);
    const given = { isFresh, isOurs, isCalls };
    const host = isFresh ? fresh : db;
    if (!work) {
      const handle = (await open.call(host)) as { get(): Knex.Transaction };
      watch(strapi, handle.get(), given);
      return handle;
    }
    return open.call(host, (tools: HostTools) => {
      const transaction = watch(strapi, tools.trx, given);
      const whole: HostTools = {
        ...tools,
        onCommit(callback) {
          const turn = turns.getStore();
          tools.onCommit(() => {
            if (!turn?.isGone()) follow(strapi, callback);
          });
        },
      };
      // A part does not end the whole.
      parts.set(transaction, { ...whole, commit: async () => {}, rollback: async () => {} });
      return new Turn(transaction).whole(() => work(whole));
    });
  };
};

/** Makes the transaction that `open` begins at once one of the plugin's: with fresh reads on MySQL. */
export const openingOurs = <T>(open: () => T): T => {
  isOpeningOurs = true;
  try {
    return open();
  } finally {
    isOpeningOurs = false;
  }
};

/** Runs a call of the host's: its transaction has fresh reads on MySQL, and may leave answers on PostgreSQL. */
export const runningCall = <T>(strapi: Core.Strapi, work: () => T): T =>
  strapi.db.dialect.client === 'sqlite' ? work() : inCall.run(true, work);

/**
 * Runs `work` so that it reads committed rows. On MySQL a transaction keeps its first snapshot even after waiting for a
 * lock; locking reads do not. Only for rows to be written and what belongs to them.
 */
export const readNewest = <T>(strapi: Core.Strapi, work: () => T): T =>
  strapi.db.dialect.client === 'mysql' && strapi.db.inTransaction()
    ? newest.run(true, work)
    : work();

/** True if a part of the transaction that an executor is may have been undone. */
export const hasGoneBack = (executor: object): boolean =>
  Boolean(transactions.get(executor)?.wentBack);

/** True if the database has rolled back the transaction that an executor is. */
export const isLost = (executor: object): boolean => Boolean(transactions.get(executor)?.lost);

/** Runs a part of the current transaction in its turn (`Turn`); outside of a transaction at once. */
export const inTurn = <T>(strapi: Core.Strapi, work: (turn: Turn) => Promise<T>): Promise<T> =>
  currentTurn(strapi)?.part(work) ?? work(new Turn(null));
