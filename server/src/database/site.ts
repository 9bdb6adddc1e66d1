import { randomBytes } from 'node:crypto';
import type { Core } from '@strapi/strapi';
import type { Knex } from 'knex';
import { rowsOf, table } from './connection';
import { ensureTables, type PlainTable } from './tables/plain-tables';

export const SITE_TABLE = 'switchboard_site';

/** Facts about this database, which exports and transfers do not carry: so a copy of a site detects that it is one. */
export const siteTable: PlainTable = {
  tableName: SITE_TABLE,
  attributes: { name: { type: 'string' }, value: { type: 'string' } },
  indexes: [{ name: 'sb_site_name', columns: ['name'], type: 'unique' }],
};

const INSTANCE = { name: 'instance' };

/** Why a row that belongs to another instance is off. */
export const CAME_FROM_ANOTHER_SITE =
  'It came from another site by an import, a transfer or a copied database, and waits until its owner switches it on here.';

export class Site {
  private known: string | undefined;
  private address: string | undefined;

  constructor(private readonly strapi: Core.Strapi) {}

  /** Its address in JSON, fixed from the first event on: reading it takes longer than the rest of an envelope. */
  get addressInJson(): string {
    const read = (key: string): unknown => this.strapi.config.get(key);
    this.address ??= JSON.stringify(read('server.absoluteUrl') ?? read('server.url') ?? '');
    return this.address;
  }

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

  /** The instance of this database; null if no site has started on it. For commands that change nothing. */
  async read(): Promise<string | null> {
    const row = (await this.rows().where(INSTANCE).first()) as { value: string } | undefined;
    return row?.value ?? null;
  }

  /** True if a row belongs to another site. Rows without a stamp were created manually here. */
  isForeign({ site_instance: stamp }: { site_instance: string | null }): boolean {
    return stamp !== null && stamp !== this.instance;
  }

  private rows(): Knex.QueryBuilder {
    return table(this.strapi, this.strapi.db.connection, SITE_TABLE);
  }
}

/** In UTC, independent of the session's time zone: no hour is repeated. */
const NOW: Readonly<Record<string, string>> = {
  sqlite: "SELECT CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) AS now",
  postgres: 'SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS bigint) AS now',
  mysql:
    "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000 AS now",
};

/** A slower answer is too imprecise about the moment it is from. */
const SLOW_MS = 250;
const EVERY_MS = 1000;

/** The database's clock, shared by all nodes: leases, due times and retries do not depend on the nodes' clocks. */
export class DatabaseClock {
  /** The database's time when this process's clock, which only goes forward, was 0. */
  private origin = Date.now() - performance.now();
  private bestTook = Number.POSITIVE_INFINITY;
  private synced = Number.NEGATIVE_INFINITY;

  constructor(private readonly strapi: Core.Strapi) {}

  /** Epoch milliseconds, from the database's last answer and the time since. No query. */
  now(): number {
    return Math.round(this.origin + performance.now());
  }

  /** Asks the database, at most once a second. */
  async sync(): Promise<void> {
    if (performance.now() - this.synced < EVERY_MS) return;
    this.synced = performance.now();
    const { db } = this.strapi;
    const executor = db.inTransaction() ? (await db.transaction()).get() : db.connection;
    const statement = NOW[db.dialect.client] ?? (NOW.sqlite as string);
    const sentAt = performance.now();
    const [row] = rowsOf<{ now: number | string }>(await executor.raw(statement));
    const answered = performance.now();
    const took = answered - sentAt;
    const next = Number(row?.now) - (sentAt + answered) / 2;
    // A slow answer counts only if the clock must have been set since.
    const tells = took <= Math.max(SLOW_MS, this.bestTook) || Math.abs(next - this.origin) > took;
    if (!Number.isFinite(next) || !tells) return;
    this.bestTook = Math.min(this.bestTook, took);
    this.origin = next;
  }
}
