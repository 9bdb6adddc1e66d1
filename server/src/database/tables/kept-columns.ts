import type { Core } from '@strapi/strapi';

interface Named {
  name: string;
}

interface Table extends Named {
  columns: Named[];
  indexes: Named[];
  foreignKeys: Named[];
}

interface Schema {
  tables: Table[];
}

interface Compared {
  /** What the host made at the last boot of any node. */
  previousSchema?: Schema;
  /** What this node's content types say. */
  userSchema: Schema;
}

const PREFIX = 'switchboard_';
const PARTS = ['columns', 'indexes', 'foreignKeys'] as const;

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

/**
 * Has the host drop nothing from the plugin's tables. It drops what it made at an earlier boot and does
 * not find in the content types of this one: the columns of a later version, with all that is in them,
 * when a node of this version boots beside it. What it does not remember it leaves alone.
 */
export const keepColumns = (strapi: Core.Strapi): void => {
  strapi.hook('strapi::content-types.beforeSync').register(() => {
    const { schemaDiff } = strapi.db.schema as unknown as {
      schemaDiff: { diff(given: Compared): Promise<unknown> };
    };
    if (patched.has(schemaDiff)) return;
    patched.add(schemaDiff);
    const diff = schemaDiff.diff.bind(schemaDiff);
    schemaDiff.diff = (given) => {
      const { previousSchema, userSchema } = given;
      if (!previousSchema) return diff(given);
      return diff({ ...given, previousSchema: withoutUnknown(previousSchema, userSchema) });
    };
  });
};
