import type { Core } from '@strapi/strapi';
import { rawStatement } from '../connection';
import { unlessThere } from './unless-there';

/**
 * An index of those rows alone in which a column has a value: of a table of work, what waits, however
 * much is done. It follows from the row, so it holds for rows of every version and every tool.
 *
 * PostgreSQL and SQLite have partial indexes. MySQL and MariaDB have none, so the table gains a column
 * that the database itself works out and keeps in the index alone: the index's first column, where
 * the other one has a value.
 */
export interface SparseIndex {
  name: string;
  columns: readonly string[];
  present: string;
}

/** What MySQL and MariaDB call the first column of such an index. */
export const sparseColumn = (column: string, present: string): string => `${column}_if_${present}`;

/** Adds the column by itself: beside anything else MySQL would copy the whole table. */
const addSparseColumn = (
  strapi: Core.Strapi,
  tableName: string,
  first: string,
  present: string
): Promise<void> => {
  const { connection } = strapi.db;
  const column = sparseColumn(first, present);
  return unlessThere(
    () => strapi.db.getSchemaConnection().hasColumn(tableName, column),
    () =>
      rawStatement(
        connection,
        'ALTER TABLE ?? ADD COLUMN ?? BIGINT AS (CASE WHEN ?? IS NULL THEN NULL ELSE ?? END) VIRTUAL',
        [tableName, column, present, first]
      )
  );
};

/** @throws where the index is there already */
export const addSparseIndex = async (
  strapi: Core.Strapi,
  tableName: string,
  { name, columns, present }: SparseIndex
): Promise<void> => {
  const { connection } = strapi.db;
  const marks = columns.map(() => '??').join(', ');
  if (strapi.db.dialect.client === 'mysql') {
    const [first = '', ...others] = columns;
    await addSparseColumn(strapi, tableName, first, present);
    const column = sparseColumn(first, present);
    await rawStatement(connection, `ALTER TABLE ?? ADD INDEX ?? (${marks})`, [
      tableName,
      name,
      column,
      ...others,
    ]);
    return;
  }
  const schema = strapi.db.getSchemaName();
  await rawStatement(connection, `CREATE INDEX ?? ON ?? (${marks}) WHERE ?? IS NOT NULL`, [
    name,
    schema ? `${schema}.${tableName}` : tableName,
    ...columns,
    present,
  ]);
};
