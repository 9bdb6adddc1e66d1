import type { App } from '../../app';
import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { table } from '../connection';
import { ensureTables, type PlainTable } from './plain-tables';
import type { Site } from '../site-instance';

/** What a content type's table was like before it was one, and what it has beside its attributes. */
export interface InternalTable {
  uid: string;
  tableName: string;
  /** Columns that have another name now, by the name they had. */
  renamed: Readonly<Record<string, string>>;
  /** Columns that its rows gain. */
  added: PlainTable['attributes'];
  /** What rows get that have nothing in a column; null: the row's own id. */
  filled: Readonly<Record<string, string | boolean | null>>;
  /** Columns and indexes that are no attributes: the plugin's alone, unknown to the host. */
  besides?: PlainTable;
  /** May have millions of rows: these are only ever changed in batches. */
  large?: boolean;
}

interface StoredTable {
  name: string;
  columns: { name: string }[];
  indexes: { name: string }[];
}

const FILL_AT_ONCE = 5000;
const STAMP = 'site_instance';

const rowsOf = (strapi: Core.Strapi, name: string): Knex.QueryBuilder =>
  table(strapi, strapi.db.connection, name);

const hasColumn = (strapi: Core.Strapi, name: string, column: string): Promise<boolean> =>
  strapi.db.getSchemaConnection().hasColumn(name, column);

const renameColumns = async (
  strapi: Core.Strapi,
  { tableName, renamed }: InternalTable
): Promise<void> => {
  for (const [from, to] of Object.entries(renamed)) {
    if (!(await hasColumn(strapi, tableName, from))) continue;
    try {
      await strapi.db
        .getSchemaConnection()
        .alterTable(tableName, (builder) => builder.renameColumn(from, to));
    } catch (error) {
      // Another node that boots at this moment did it.
      if (!(await hasColumn(strapi, tableName, to))) throw error;
    }
  }
};

/** Walks over the table by its ids, so that neither memory nor a lock grows with it. */
const fillStamps = async (
  strapi: Core.Strapi,
  tableName: string,
  instance: string
): Promise<void> => {
  let last = 0;
  for (;;) {
    const some = (await rowsOf(strapi, tableName)
      .select('id')
      .where('id', '>', last)
      .orderBy('id')
      .limit(FILL_AT_ONCE)) as { id: number }[];
    const end = some.at(-1)?.id;
    if (end === undefined) return;
    await rowsOf(strapi, tableName)
      .where('id', '>', last)
      .andWhere('id', '<=', end)
      .whereNull(STAMP)
      .update({ [STAMP]: instance });
    last = end;
  }
};

/**
 * Adds the stamp to a table that may be large without writing its rows: as a default, which is taken
 * away again. SQLite could not take it away without copying the table.
 */
const addStamp = async (
  strapi: Core.Strapi,
  tableName: string,
  instance: string
): Promise<void> => {
  if (await hasColumn(strapi, tableName, STAMP)) return;
  const column = { type: 'string' as const, column: { defaultTo: instance } };
  await ensureTables(strapi, [{ tableName, attributes: { [STAMP]: column } }]);
  const schema = strapi.db.getSchemaName();
  await (strapi.db.connection as Knex).raw('ALTER TABLE ?? ALTER COLUMN ?? SET DEFAULT NULL', [
    schema ? `${schema}.${tableName}` : tableName,
    STAMP,
  ]);
};

const documentIdOf = (strapi: Core.Strapi, uid: string): string => {
  const { documentId } = strapi.db.metadata.get(uid).attributes as unknown as {
    documentId: { default(): string };
  };
  return documentId.default();
};

const fill = async (
  strapi: Core.Strapi,
  { uid, tableName, filled, large }: InternalTable,
  instance: string
): Promise<void> => {
  if (large) {
    if (strapi.db.dialect.client === 'sqlite') await fillStamps(strapi, tableName, instance);
    return;
  }
  for (const [column, value] of Object.entries({ ...filled, [STAMP]: instance })) {
    await rowsOf(strapi, tableName)
      .whereNull(column)
      .update({ [column]: value ?? strapi.db.connection.ref('id') });
  }
  const bare = (await rowsOf(strapi, tableName).select('id').whereNull('document_id')) as {
    id: number;
  }[];
  for (const { id } of bare) {
    await rowsOf(strapi, tableName)
      .where({ id })
      .whereNull('document_id')
      .update({ document_id: documentIdOf(strapi, uid) });
  }
};

/**
 * Takes what is the plugin's alone out of what the host remembers of the table: it drops what it
 * made once and does not find in a schema any more.
 */
const untrack = async (
  strapi: Core.Strapi,
  { tableName, besides }: InternalTable
): Promise<void> => {
  if (!besides) return;
  const storage = strapi.db.schema.schemaStorage;
  const stored = (await storage.read()) as { schema: { tables: StoredTable[] } } | null;
  const known = stored?.schema.tables.find(({ name }) => name === tableName);
  if (!stored || !known) return;
  const columns = new Set(Object.keys(besides.attributes));
  const indexes = new Set((besides.indexes ?? []).map(({ name }) => name));
  if (!known.columns.some(({ name }) => columns.has(name))) return;
  known.columns = known.columns.filter(({ name }) => !columns.has(name));
  known.indexes = known.indexes.filter(({ name }) => !indexes.has(name));
  await storage.add(stored.schema as Parameters<typeof storage.add>[0]);
};

/** Whether the host has this table on record with everything it has now. */
const isKnownWhole = async (
  strapi: Core.Strapi,
  { tableName }: InternalTable
): Promise<boolean> => {
  const stored = (await strapi.db.schema.schemaStorage.read()) as {
    schema: { tables: StoredTable[] };
  } | null;
  const known = stored?.schema.tables.find(({ name }) => name === tableName);
  return known?.columns.some(({ name }) => name === STAMP) ?? false;
};

/**
 * Brings a table that an earlier version made as a plain one to what the content type wants, before
 * the host compares the two: of a column with another name it would make an empty one and drop the
 * old one. May be interrupted anywhere: the next boot goes on, because the host takes note of the
 * table's new columns only after this.
 */
const upgrade = async (strapi: Core.Strapi, site: Site, wanted: InternalTable): Promise<void> => {
  const { tableName, added, large } = wanted;
  if (!(await strapi.db.getSchemaConnection().hasTable(tableName))) return;
  if (await isKnownWhole(strapi, wanted)) return;
  const instance = await site.load();
  await renameColumns(strapi, wanted);
  if (large && strapi.db.dialect.client !== 'sqlite') await addStamp(strapi, tableName, instance);
  const stamp = { [STAMP]: { type: 'string' as const } };
  await ensureTables(strapi, [{ tableName, attributes: { ...added, ...stamp } }]);
  await fill(strapi, wanted, instance);
  await untrack(strapi, wanted);
};

/** Registers what has to be done around the host's schema synchronisation. To be called in `register`. */
export const keepInternalTables = (
  { strapi, site }: Pick<App, 'strapi' | 'site'>,
  tables: readonly InternalTable[]
): void => {
  strapi.hook('strapi::content-types.beforeSync').register(async () => {
    await site.load();
    for (const wanted of tables) await upgrade(strapi, site, wanted);
  });
  strapi.hook('strapi::content-types.afterSync').register(async () => {
    const besides = tables.flatMap(({ besides: own }) => own ?? []);
    await ensureTables(strapi, besides);
  });
};
