import type { Core } from '@strapi/strapi';
import { rowsOf } from './connection';

/** In UTC, whatever time zone a session has: no hour comes twice. */
const NOW: Readonly<Record<string, string>> = {
  sqlite: "SELECT CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) AS now",
  postgres: 'SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS bigint) AS now',
  mysql:
    "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000 AS now",
};

/** An answer that took longer says too little about the moment it was given in. */
const SLOW_MS = 250;
const EVERY_MS = 1000;

/**
 * The database's clock, which all nodes of a site share. Leases, due times and retries go by it, so
 * that it does not matter what the nodes' own clocks say.
 */
export class DatabaseClock {
  /** The database's time when this process's clock, which only goes forward, was 0. */
  private origin = Date.now() - performance.now();
  private bestTook = Number.POSITIVE_INFINITY;
  private synced = Number.NEGATIVE_INFINITY;

  constructor(private readonly strapi: Core.Strapi) {}

  /** Epoch milliseconds, told from the last answer of the database and the time since. Asks nothing. */
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
    const asked = performance.now();
    const [row] = rowsOf<{ now: number | string }>(await executor.raw(statement));
    const answered = performance.now();
    const took = answered - asked;
    const next = Number(row?.now) - (asked + answered) / 2;
    // A slow answer counts only where the clock must have been set since.
    const tells = took <= Math.max(SLOW_MS, this.bestTook) || Math.abs(next - this.origin) > took;
    if (!Number.isFinite(next) || !tells) return;
    this.bestTook = Math.min(this.bestTook, took);
    this.origin = next;
  }
}
