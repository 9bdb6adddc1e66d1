import type { Executor } from '../connection';

/** SQL types that a batch update has to name, because PostgreSQL does not guess them from parameters. */
export type ColumnType = 'integer' | 'bigint' | 'text' | 'boolean';

export type SqlValue = string | number | boolean | null;

/** A table whose rows are written in batches. */
export interface UpdatedTable {
  /** With the schema where the site has one, each part quoted as an identifier by the statement. */
  name: string;
  schema: string | undefined;
  /** Types of the columns that are written. */
  columns: Readonly<Record<string, ColumnType>>;
}

/** A row that is changed; where `owner` is given, only while that one still holds the row. */
export interface RowUpdate {
  id: number;
  owner?: string;
  set: Readonly<Record<string, SqlValue>>;
}

/** Where rows are inserted, and what they have. */
export interface InsertTarget extends Pick<UpdatedTable, 'name' | 'schema'> {
  columns: readonly string[];
}

export type InsertedRow = Readonly<Record<string, SqlValue>>;

export interface Dialect {
  /**
   * Inserts rows that have these columns, no more than one statement takes. Within a transaction:
   * where a row is refused, those before it may have been inserted.
   */
  insert(executor: Executor, target: InsertTarget, rows: readonly InsertedRow[]): Promise<void>;

  /** As `insert`, where the statement can say the ids of the rows, by their document ids. */
  insertForIds?(
    executor: Executor,
    target: InsertTarget,
    rows: readonly InsertedRow[]
  ): Promise<[documentId: string, id: number][]>;

  /**
   * Writes a batch, rows with an owner only `WHERE id = ? AND owner = ?`. Every row has the same columns.
   * @returns the ids that were still held by their owner.
   */
  updateRows(
    executor: Executor,
    table: UpdatedTable,
    rows: readonly RowUpdate[]
  ): Promise<Set<number>>;

  /** Texts in SQL, put together. */
  joined(texts: readonly string[]): string;

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
    table: Pick<UpdatedTable, 'name' | 'schema'>,
    keys: readonly string[],
    rows: readonly Readonly<Record<string, number | string>>[]
  ): Promise<void>;
}

/** `schema.table` as knex's `??` binding takes it. */
export const qualified = (table: Pick<UpdatedTable, 'name' | 'schema'>): string =>
  table.schema ? `${table.schema}.${table.name}` : table.name;
