import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { table } from '../connection';

/**
 * Tables of the plugin that are no content types. The plugin makes and extends them itself, because
 * the host's schema synchronisation drops what is not in the schema of the process that boots: an
 * older version beside a newer one would take the newer one's columns away. Here things are only
 * ever added, so any two versions can share a database.
 *
 * For that to hold, a column that a later version adds is nullable or has a default (older versions
 * insert without it), and neither a column's type nor its meaning ever changes: a new meaning is a
 * new column.
 */

export interface Column {
  type: 'increments' | 'string' | 'text' | 'integer' | 'biginteger' | 'boolean';
  column?: {
    /** Of a `string`: its length, 255 if left out. */
    args?: [length: number];
    /** What rows that are there already get, and inserts that do not name the column. */
    defaultTo?: string | number | boolean;
  };
}

export interface PlainTable {
  tableName: string;
  attributes: Record<string, Column>;
  /** Names are unique in the whole database (PostgreSQL) and at most 30 characters long. */
  indexes?: { name: string; columns: string[]; type?: 'unique' }[];
}

const addColumn = (builder: Knex.TableBuilder, name: string, { type, column }: Column): void => {
  if (type === 'increments') {
    builder.increments(name, { primaryKey: true });
    return;
  }
  const added = {
    string: () => builder.string(name, ...(column?.args ?? [])),
    text: () => builder.text(name, 'longtext'),
    integer: () => builder.integer(name),
    biginteger: () => builder.bigInteger(name),
    boolean: () => builder.boolean(name),
  }[type]();
  if (column?.defaultTo !== undefined) added.defaultTo(column.defaultTo);
  added.nullable();
};

/** Another node that boots at this moment does the same: what counts is that it is there now. */
const unlessThere = async (
  isThere: () => Promise<boolean>,
  add: () => PromiseLike<unknown>
): Promise<void> => {
  if (await isThere()) return;
  try {
    await add();
  } catch (error) {
    if (!(await isThere())) throw error;
  }
};

const ensureTable = async (strapi: Core.Strapi, wanted: PlainTable): Promise<void> => {
  const { tableName, attributes, indexes = [] } = wanted;
  const { schemaInspector } = strapi.db.dialect;
  const schema = () => strapi.db.getSchemaConnection();
  const columns = async (): Promise<Record<string, unknown>> =>
    table(strapi, strapi.db.connection, tableName).columnInfo();
  const indexNames = async (): Promise<string[]> =>
    (await schemaInspector.getIndexes(tableName)).map(({ name }) => name);

  await unlessThere(
    () => schema().hasTable(tableName),
    () =>
      schema().createTable(tableName, (builder) => {
        for (const [name, column] of Object.entries(attributes)) addColumn(builder, name, column);
      })
  );
  const present = await columns();
  for (const [name, column] of Object.entries(attributes)) {
    if (name in present) continue;
    await unlessThere(
      async () => name in (await columns()),
      () => schema().alterTable(tableName, (builder) => addColumn(builder, name, column))
    );
  }
  const known = await indexNames();
  for (const { name, columns: over, type } of indexes) {
    if (known.includes(name)) continue;
    await unlessThere(
      async () => (await indexNames()).includes(name),
      () =>
        schema().alterTable(tableName, (builder) => {
          if (type === 'unique') builder.unique(over, { indexName: name });
          else builder.index(over, name);
        })
    );
  }
};

/** Makes what is missing of these tables: the table, columns, indexes. Takes nothing away. */
export const ensureTables = async (
  strapi: Core.Strapi,
  tables: readonly PlainTable[]
): Promise<void> => {
  for (const wanted of tables) await ensureTable(strapi, wanted);
};
