import type { Executor, Statement } from '../connection';

/** How many rows of a group to claim. */
export interface GroupRoom {
  group: number;
  limit: number;
}

/** SQL types that a batch update has to name, because PostgreSQL does not guess them from parameters. */
export type ColumnType = 'integer' | 'bigint' | 'text' | 'boolean';

export type SqlValue = string | number | boolean | null;

/** A table that work is claimed from. */
export interface ClaimTable {
  /** With the schema where the site has one, each part quoted as an identifier by the statement. */
  name: string;
  schema: string | undefined;
  /** The column that fairness goes by: the webhook of a delivery, the connection of a record. */
  groupColumn: string;
  /** Types of the columns that settling may write. */
  columns: Readonly<Record<string, ColumnType>>;
}

export interface GroupClaim {
  group: number;
  /** Rows that are due at this time, epoch milliseconds. */
  now: number;
  /** When the lease ends, epoch milliseconds. */
  leaseUntil: number;
  owner: string;
  limit: number;
}

/** The same of several groups at once. */
export interface GroupsClaim extends Omit<GroupClaim, 'group' | 'limit'> {
  groups: readonly GroupRoom[];
}

export interface GroupCap {
  atOnce: number;
  /** Rows that the caller holds, which are not counted. */
  own: number;
  /** How many may be leased beyond the cap where nothing is counted; 0: none. */
  ahead: number;
  /** The table whose row with the group's id stands for the group. */
  groups: Pick<ClaimTable, 'name' | 'schema'>;
  /** The rows that are counted. */
  counted: LeasedSpan;
}

/** Rows of a group that somebody holds: those whose leases end between two times, epoch milliseconds. */
export interface LeasedSpan {
  from: number;
  until: number;
  /** Ids of rows that do not count. */
  except: readonly number[];
}

export interface CappedGroupClaim {
  claim: GroupClaim;
  cap: GroupCap;
}

export interface ClaimedWithin {
  rows: Record<string, unknown>[];
  /** Whether the group has reached its cap. */
  isFull: boolean;
  /** Whether nobody else held any of it. */
  isAlone: boolean;
}

/** How many rows may be leased beside those that others hold. */
export const allowedBeside = (
  others: number,
  limit: number,
  { atOnce, own, ahead }: Pick<GroupCap, 'atOnce' | 'own' | 'ahead'>
): number => Math.max(0, Math.min(limit, atOnce - own - others), others === 0 ? ahead : 0);

/** Whether the group has reached its cap, once so many of the rows that were allowed are leased. */
export const isFullWith = (
  others: number,
  leased: number,
  allowed: number,
  { atOnce, own }: Pick<GroupCap, 'atOnce' | 'own'>
): boolean => allowed === 0 || (leased === allowed && others + own + leased >= atOnce);

/** A row that is changed; where `owner` is given, only while that one still holds the row. */
export interface RowUpdate {
  id: number;
  owner?: string;
  set: Readonly<Record<string, SqlValue>>;
}

/** Where rows are inserted, and what they have. */
export interface InsertTarget extends Pick<ClaimTable, 'name' | 'schema'> {
  columns: readonly string[];
}

export type InsertedRow = Readonly<Record<string, SqlValue>>;

export interface Dialect {
  /**
   * Inserts rows that have these columns, no more than one statement takes. Within a transaction:
   * where a row is refused, those before it may have been inserted.
   */
  insert(executor: Executor, target: InsertTarget, rows: readonly InsertedRow[]): Promise<void>;

  /**
   * A query for the groups after a group that have rows which wait, in the order of their ids: `id`,
   * `due_at`, when the first row is due, and `looked_at`, how many entries of the index that took.
   * Those add up to no more than `limit`, and to less only where there are no more groups. It is
   * answered by the sparse index alone (`tables/plain-tables.ts`), however many rows are done, and
   * however many groups have none that waits.
   */
  waitingGroups(table: ClaimTable, after: number, limit: number): Statement;

  /**
   * Leases up to `limit` due rows of one group, those that have been due longest, and returns them
   * whole, in any order. The owner of each becomes `<owner>/<when it was due>` (epoch milliseconds):
   * a statement that returns what it wrote has nowhere else to say what was there before.
   */
  claimGroup(
    executor: Executor,
    table: ClaimTable,
    claim: GroupClaim
  ): Promise<Record<string, unknown>[]>;

  /** As `claimGroup`, of several groups with one statement, so much of each as it says. */
  claimGroups(
    executor: Executor,
    table: ClaimTable,
    claim: GroupsClaim
  ): Promise<Record<string, unknown>[]>;

  /**
   * As `claimGroup`, with no more of the group leased at once than the cap allows: what is counted
   * is still so when the rows are leased, whichever nodes claim at the same time.
   */
  claimWithin(
    executor: Executor,
    table: ClaimTable,
    claim: GroupClaim,
    cap: GroupCap
  ): Promise<ClaimedWithin>;

  /** As `claimWithin`, several in one way to the server, where the database has that. */
  claimAllWithin?(
    executor: Executor,
    table: ClaimTable,
    claims: readonly CappedGroupClaim[]
  ): Promise<ClaimedWithin[]>;

  /**
   * Writes a batch, rows with an owner only `WHERE id = ? AND owner = ?`. Every row has the same columns.
   * @returns the ids that were still held by their owner.
   */
  updateRows(
    executor: Executor,
    table: ClaimTable,
    rows: readonly RowUpdate[]
  ): Promise<Set<number>>;

  /**
   * The condition that a column, bound as `??`, has a text in it: in any case, where the database's
   * language settings know it, and without wildcards.
   */
  contains(text: string): { sql: string; binding: string };

  /**
   * Inserts rows of numbers, and of words among their keys, all of the same columns and in the order given. Where a row with the same
   * `keys`, which have a unique index, is there already, the other columns are added to its own. Uses
   * up no ids: MySQL and PostgreSQL would, with each row, in a table that counts them.
   */
  addRows(
    executor: Executor,
    table: Pick<ClaimTable, 'name' | 'schema'>,
    keys: readonly string[],
    rows: readonly Readonly<Record<string, number | string>>[]
  ): Promise<void>;
}

/** `schema.table` as knex's `??` binding takes it. */
export const qualified = (table: Pick<ClaimTable, 'name' | 'schema'>): string =>
  table.schema ? `${table.schema}.${table.name}` : table.name;
