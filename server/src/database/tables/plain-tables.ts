import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { rawStatement, rowsOf, table } from '../connection';
import { logFailure } from '../../runtime/text';
import { qualified } from '../dialects/shared';

/** Another node that boots at this moment makes the same change: what counts is that it is made. */
export const unlessMade = async (
  isMade: () => Promise<boolean>,
  change: () => PromiseLike<unknown>
): Promise<void> => {
  if (await isMade()) return;
  try {
    await change();
  } catch (error) {
    if (!(await isMade())) throw error;
  }
};

/**
 * Tables of the plugin that are no content types. The plugin creates and extends them, because the host would drop
 * columns of a newer version that shares the database. Columns are only added, nullable or with a default, and never
 * change type or meaning. The one exception: `database/tables/old-queues.ts` moves and then drops columns, once.
 */

export interface Column {
  /** `key`: the primary key, a number from another table. */
  type: 'increments' | 'key' | 'string' | 'text' | 'integer' | 'biginteger' | 'boolean';
  column?: {
    /** The length of a `string`, 255 if left out. */
    args?: [length: number];
    /** The value for existing rows, and for inserts that do not name the column. */
    defaultTo?: string | number | boolean;
  };
  /** A row may have no value. The database lets any be null; this is for `RowOf`. */
  null?: true;
}

export interface PlainTable {
  tableName: string;
  /** Else it has an `id` of the database's own, unless one is named. */
  withoutId?: true;
  attributes: Record<string, Column>;
  /** Names are unique in the whole database (PostgreSQL) and at most 30 characters long. */
  indexes?: { name: string; columns: string[]; type?: 'unique' }[];
  /** PostgreSQL fill factor in percent, unless the table has its own: leaves room for heap-only (no index) updates. */
  fillFactor?: number;
}

/** The values of a column, as the drivers hand them out. */
interface Values {
  increments: number;
  key: number | string;
  string: string;
  text: string;
  integer: number;
  biginteger: number | string;
  boolean: boolean | number;
}

/** A row of a table; the columns that say so may be null. */
export type RowOf<Table extends PlainTable> = (Table extends { withoutId: true }
  ? unknown
  : { id: number }) & {
  [Name in keyof Table['attributes']]:
    | Values[Table['attributes'][Name]['type']]
    | (Table['attributes'][Name] extends { null: true } ? null : never);
};

const addColumn = (
  builder: Knex.TableBuilder,
  name: string,
  { type, column }: Column,
  client: string
): void => {
  const added = {
    increments: () => builder.increments(name, { primaryKey: true }),
    // SQLite has the row by the key itself where its type is this very word.
    key: () => (client === 'sqlite' ? builder.integer(name) : builder.bigInteger(name)).primary(),
    string: () => builder.string(name, ...(column?.args ?? [])),
    text: () => builder.text(name, 'longtext'),
    integer: () => builder.integer(name),
    biginteger: () => builder.bigInteger(name),
    boolean: () => builder.boolean(name),
  }[type]();
  if (type === 'increments' || type === 'key') return;
  if (column?.defaultTo !== undefined) added.defaultTo(column.defaultTo);
  added.nullable();
};

/** The host lists no indexes of a table that its owner has partitioned; docs/scaling.md. */
const indexNamesOf = async (strapi: Core.Strapi, tableName: string): Promise<string[]> => {
  if (strapi.db.dialect.client !== 'postgres') {
    const indexes = await strapi.db.dialect.schemaInspector.getIndexes(tableName);
    return indexes.map(({ name }) => name);
  }
  const answer = await strapi.db.connection.raw<unknown>(
    'SELECT indexname AS name FROM pg_indexes WHERE tablename = ? AND schemaname = COALESCE(?::text, current_schema())',
    [tableName, strapi.db.getSchemaName() ?? null] as Knex.RawBinding[]
  );
  return rowsOf<{ name: string }>(answer).map(({ name }) => name);
};

/** Sets the fill factor. Partitioned tables take none; without ownership it stays unchanged and updates are slower. */
const setFillFactor = async (strapi: Core.Strapi, tableName: string, percent: number) => {
  const name = qualified({ name: tableName, schema: strapi.db.getSchemaName() });
  const quoted = name.split('.').map((part) => `"${part}"`);
  const answer = await rawStatement(
    strapi.db.connection,
    `SELECT 1 FROM pg_class WHERE oid = ?::regclass AND relkind = 'r'
     AND NOT EXISTS (SELECT 1 FROM unnest(reloptions) AS set(option) WHERE option LIKE 'fillfactor=%')`,
    [quoted.join('.')]
  );
  if (rowsOf(answer).length === 0) return;
  const set = `ALTER TABLE ?? SET (fillfactor = ${percent})`;
  const failed = `the fill factor of ${name} could not be set to ${percent}`;
  await rawStatement(strapi.db.connection, set, [name]).catch(logFailure(strapi, failed, 'warn'));
};

const ensureTable = async (strapi: Core.Strapi, wanted: PlainTable): Promise<void> => {
  const { tableName, indexes = [], fillFactor } = wanted;
  const attributes: PlainTable['attributes'] = {
    ...(!wanted.withoutId && { id: { type: 'increments' } }),
    ...wanted.attributes,
  };
  const { client } = strapi.db.dialect;
  const schema = () => strapi.db.getSchemaConnection();
  const columns = async (): Promise<Record<string, unknown>> =>
    table(strapi, strapi.db.connection, tableName).columnInfo();
  const indexNames = (): Promise<string[]> => indexNamesOf(strapi, tableName);

  await unlessMade(
    () => schema().hasTable(tableName),
    () =>
      schema().createTable(tableName, (builder) => {
        for (const [name, column] of Object.entries(attributes)) {
          addColumn(builder, name, column, client);
        }
      })
  );
  if (fillFactor !== undefined && client === 'postgres') {
    await setFillFactor(strapi, tableName, fillFactor);
  }
  const present = await columns();
  for (const [name, column] of Object.entries(attributes)) {
    if (name in present) continue;
    await unlessMade(
      async () => name in (await columns()),
      () => schema().alterTable(tableName, (builder) => addColumn(builder, name, column, client))
    );
  }
  const known = await indexNames();
  for (const { name, columns: over, type } of indexes) {
    if (known.includes(name)) continue;
    await unlessMade(
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
export const ensureTables = async (strapi: Core.Strapi, tables: readonly PlainTable[]) => {
  for (const wanted of tables) await ensureTable(strapi, wanted);
};
