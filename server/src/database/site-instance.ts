import { randomBytes } from 'node:crypto';
import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { table } from './connection';
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

/** Which site this database is. */
export class Site {
  private known: string | undefined;

  constructor(private readonly strapi: Core.Strapi) {}

  /** The instance of the site that runs, once it has been read at boot. */
  get instance(): string {
    if (this.known === undefined) throw new Error('The plugin switchboard is not running.');
    return this.known;
  }

  /** Reads this site's instance, and makes it at the first boot; nodes that boot at once agree. */
  async load(): Promise<string> {
    await ensureTables(this.strapi, [siteTable]);
    const made = { ...INSTANCE, value: randomBytes(12).toString('base64url') };
    if (!(await this.read())) await this.rows().insert(made).onConflict('name').ignore();
    this.known = (await this.read()) ?? made.value;
    return this.known;
  }

  /** The instance of this database; null where no site has started on it. For commands that change nothing. */
  async read(): Promise<string | null> {
    const row = (await this.rows().where(INSTANCE).first()) as { value: string } | undefined;
    return row?.value ?? null;
  }

  /**
   * Whether a row belongs to another site. Rows without a stamp were made by hand here: what a
   * transfer carries has one.
   */
  isForeign({ site_instance: stamp }: { site_instance: string | null }): boolean {
    return stamp !== null && stamp !== this.instance;
  }

  private rows(): Knex.QueryBuilder {
    return table(this.strapi, this.strapi.db.connection, SITE_TABLE);
  }
}
