import type { Core } from '@strapi/strapi';
import { rowsOf } from './connection';

/**
 * The database's clock, which all nodes of a site share. Leases, due times and retries go by it, so
 * that it does not matter what the nodes' own clocks say.
 */
export interface DatabaseClock {
  /** Epoch milliseconds, told from the last answer of the database and the time since. Asks nothing. */
  now(): number;
  /** Asks the database, at most once a second. */
  sync(): Promise<void>;
}

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

export const createClock = (strapi: Core.Strapi): DatabaseClock => {
  const statement = NOW[strapi.db.dialect.client] ?? (NOW.sqlite as string);
  /** The database's time when this process's clock, which only goes forward, was 0. */
  let origin = Date.now() - performance.now();
  let bestTook = Number.POSITIVE_INFINITY;
  let synced = Number.NEGATIVE_INFINITY;
  return {
    now: () => Math.round(origin + performance.now()),
    async sync() {
      if (performance.now() - synced < EVERY_MS) return;
      synced = performance.now();
      const { db } = strapi;
      const executor = db.inTransaction() ? (await db.transaction()).get() : db.connection;
      const asked = performance.now();
      const [row] = rowsOf<{ now: number | string }>(await executor.raw(statement));
      const answered = performance.now();
      const took = answered - asked;
      const next = Number(row?.now) - (asked + answered) / 2;
      // A slow answer counts only where the clock must have been set since.
      const tells = took <= Math.max(SLOW_MS, bestTook) || Math.abs(next - origin) > took;
      if (!Number.isFinite(next) || !tells) return;
      bestTook = Math.min(bestTook, took);
      origin = next;
    },
  };
};
