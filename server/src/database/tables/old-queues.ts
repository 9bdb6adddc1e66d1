import type { App } from '../../app';
import type { Database, Tx } from '../db';
import { withTransientRetry } from '../retry';
import { SITE_TABLE } from '../site';
import { qualified } from '../dialects/shared';
import { unlessMade } from './plain-tables';
import { nextTurn } from '../../runtime/event-loop';

/** A queue that an earlier version kept in columns of its log. */
export interface OldQueue<Row extends { id: number } = { id: number }> {
  /** The site remembers by it how far its rows were moved. */
  name: string;
  tableName: string;
  /** Columns removed from the log, in this order: the last one gone means done. MySQL used `a_if_b` in place of `b`. */
  columns: readonly string[];
  indexes: readonly string[];
  /** Tables that are no longer used. */
  tables?: readonly string[];
  /** Rows of the log after one that are not done, in the order of their ids, and no more than `limit`. */
  read(tx: Tx, after: number, limit: number): Promise<Row[]>;
  /** Queues those of them that are not in the queue by now. */
  insert(tx: Tx, rows: readonly Row[]): Promise<void>;
}

const MOVED = 'moved';
const AT_ONCE = 500;

/** Moves the next rows, once: nodes that boot at once take turns. Returns whether all are moved. */
export const moveSome = <Row extends { id: number }>(
  database: Database,
  old: OldQueue<Row>,
  limit = AT_ONCE
): Promise<boolean> =>
  database.retrying(async (tx) => {
    const mark = () => tx.table(SITE_TABLE).where({ name: old.name });
    // SQLite locks nothing but the database, and that with the first write.
    await mark().update({ name: old.name });
    const { value } = (await mark().forUpdate().first()) as { value: string };
    if (value === MOVED) return true;
    const rows = await old.read(tx, Number(value), limit);
    await old.insert(tx, rows);
    const last = rows.at(-1)?.id;
    await mark().update({ value: last === undefined ? MOVED : String(last) });
    return last === undefined;
  });

const dropOld = async (
  { strapi, db }: App,
  { tableName, columns, indexes, tables = [] }: Omit<OldQueue, 'read' | 'insert'>
): Promise<void> => {
  const schema = () => strapi.db.getSchemaConnection();
  const log = qualified({ name: tableName, schema: db.schema });
  const indexesNow = () => strapi.db.dialect.schemaInspector.getIndexes(tableName);
  const unlessGone = (isThere: () => Promise<boolean>, drop: () => PromiseLike<unknown>) =>
    unlessMade(
      async () => !(await isThere()),
      () => withTransientRetry(async () => drop())
    );
  for (const table of tables) await schema().dropTableIfExists(table);
  for (const index of indexes) {
    await unlessGone(
      async () => (await indexesNow()).some(({ name }) => name === index),
      () => schema().alterTable(tableName, (builder) => builder.dropIndex([], index))
    );
  }
  for (const column of columns) {
    await unlessGone(
      () => schema().hasColumn(tableName, column),
      // The query builder would have SQLite copy the table.
      () => db.pool.raw('ALTER TABLE ?? DROP COLUMN ??', [log, column])
    );
  }
};

/** Moves rows of an earlier version from the log to the queue, at the first boot, before any work; interruptible. */
export const moveIntoQueue = async <Row extends { id: number }>(app: App, old: OldQueue<Row>) => {
  const last = old.columns.at(-1) as string;
  if (!(await app.strapi.db.getSchemaConnection().hasColumn(old.tableName, last))) return;
  const start = [{ name: old.name, value: '0' }];
  await app.db.pool.insert(SITE_TABLE, start, { unique: ['name'], then: 'ignore' });
  while (!(await moveSome(app.db, old))) await nextTurn();
  await dropOld(app, old);
};
