import type { Core } from '@strapi/strapi';
import type { Db } from '../database/db';

/** Core store key of tables the host never drops; at boot it drops other tracked tables that left the schema. */
const KEY = 'core_persisted_tables';
const STORE_TABLE = 'strapi_core_store_settings';

/** As the host writes them; plain names are understood too. */
type Entry = string | { name: string; dependsOn?: { name: string }[] };

const nameOf = (entry: Entry): string => (typeof entry === 'string' ? entry : entry.name);

const parse = (value: string | null): Entry[] => {
  const entries = JSON.parse(value ?? '[]') as Entry[] | null;
  return Array.isArray(entries) ? entries : [];
};

/** True if the host has created its core store; on an empty database it has not yet. */
export const hasCoreStore = (strapi: Core.Strapi): Promise<boolean> =>
  strapi.db.getSchemaConnection().hasTable(STORE_TABLE);

/** Adds tables to those the host never drops; keeps entries of others, and merges duplicate rows of two processes. */
export const persistTables = async (db: Db, names: readonly string[]): Promise<void> => {
  const rows = () => db.table(STORE_TABLE).where({ key: KEY });
  for (;;) {
    const found = (await rows().select('id', 'value').orderBy('id')) as {
      id: number;
      value: string | null;
    }[];
    const listed = [
      ...found.flatMap((row) => parse(row.value)),
      ...names.map((name) => ({ name })),
    ];
    const seen = new Set<string>();
    const entries = listed.filter((entry) => !seen.has(nameOf(entry)) && seen.add(nameOf(entry)));
    const value = JSON.stringify(entries);
    const [first, ...others] = found;
    if (!first) {
      // Looked at once more, in case another process did the same.
      await rows().insert({ key: KEY, value, type: 'object', environment: null, tag: null });
      continue;
    }
    if (others.length === 0 && value === first.value) return;
    const ids = others.map(({ id }) => id);
    if (await rows().where({ id: first.id, value: first.value }).update({ value }))
      await rows().whereIn('id', ids).delete();
  }
};

const PREFIX = 'switchboard_';
const PARTS = ['columns', 'indexes', 'foreignKeys'] as const;

type Named = { name: string };

interface Schema {
  tables: (Named & Record<(typeof PARTS)[number], Named[]>)[];
}

interface Compared {
  /** The schema that the host created at the last boot of any node. */
  previousSchema?: Schema;
  userSchema: Schema;
}

const withoutUnknown = (known: Schema, wanted: Schema): Schema => ({
  ...known,
  tables: known.tables.map((table) => {
    const own = wanted.tables.find(({ name }) => name === table.name);
    if (!own || !table.name.startsWith(PREFIX)) return table;
    const kept = { ...table };
    for (const part of PARTS) {
      const names = new Set(own[part].map(({ name }) => name));
      kept[part] = table[part].filter(({ name }) => names.has(name));
    }
    return kept;
  }),
});

const patched = new WeakSet<object>();

/** Keeps the host from dropping columns that it created for a later version running next to this one. */
export const keepColumns = (strapi: Core.Strapi): void => {
  const { schemaDiff } = strapi.db.schema as unknown as {
    schemaDiff: { diff(given: Compared): Promise<unknown> };
  };
  if (patched.has(schemaDiff)) return;
  patched.add(schemaDiff);
  const diff = schemaDiff.diff.bind(schemaDiff);
  schemaDiff.diff = ({ previousSchema, userSchema, ...given }) =>
    diff({
      ...given,
      userSchema,
      previousSchema: previousSchema && withoutUnknown(previousSchema, userSchema),
    });
};
