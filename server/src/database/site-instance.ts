import { randomBytes } from 'node:crypto';
import type { Core } from '@strapi/strapi';
import { type Executor, table } from './connection';
import { ensureTables, type PlainTable } from './tables/plain-tables';

export const SITE_TABLE = 'switchboard_site';

/**
 * What belongs to this database alone. A plain table, because `strapi export`, `import` and
 * `transfer` carry content types: it is how a copy of a site knows that it is one. All nodes of a
 * database share it.
 */
export const siteTable: PlainTable = {
  tableName: SITE_TABLE,
  attributes: {
    id: { type: 'increments' },
    name: { type: 'string' },
    value: { type: 'string' },
  },
  indexes: [{ name: 'sb_site_name', columns: ['name'], type: 'unique' }],
};

const INSTANCE = { name: 'instance' };

/** Why a row that belongs to another instance is off. */
export const CAME_FROM_ANOTHER_SITE =
  'It came from another site by an import, a transfer or a copied database, and waits until its owner switches it on here.';

/** The instance of this database; null where no site has started on it. For commands that change nothing. */
export const readSiteInstance = async (strapi: Core.Strapi): Promise<string | null> => {
  const rows = table(strapi, strapi.db.connection as Executor, SITE_TABLE);
  const row = (await rows.where(INSTANCE).first()) as { value: string } | undefined;
  return row?.value ?? null;
};

const instances = new WeakMap<Core.Strapi, string>();

/** Reads this site's instance, and makes it at the first boot; nodes that boot at once agree. */
export const loadSiteInstance = async (strapi: Core.Strapi): Promise<string> => {
  await ensureTables(strapi, [siteTable]);
  const rows = () => table(strapi, strapi.db.connection as Executor, SITE_TABLE);
  const made = { ...INSTANCE, value: randomBytes(12).toString('base64url') };
  const known = () => rows().where(INSTANCE).first() as Promise<{ value: string } | undefined>;
  if (!(await known())) await rows().insert(made).onConflict('name').ignore();
  const instance = (await known())?.value ?? made.value;
  instances.set(strapi, instance);
  return instance;
};

/** The instance of the site that runs, once it has been read at boot. */
export const siteInstance = (strapi: Core.Strapi): string => {
  const instance = instances.get(strapi);
  if (instance === undefined) throw new Error('The plugin switchboard is not running.');
  return instance;
};

/**
 * Whether a row belongs to another site. Rows without a stamp were made by hand here: what a
 * transfer carries has one.
 */
export const isFromAnotherSite = (
  strapi: Core.Strapi,
  row: { site_instance: string | null }
): boolean => row.site_instance !== null && row.site_instance !== siteInstance(strapi);
