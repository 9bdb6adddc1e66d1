import type { Database } from './db';

/** The driver waits for a lock without giving the event loop back, so the whole site waits. */
const LONGEST_WAIT_MS = 1000;

const ADVICE = 'see docs/operations.md of strapi-plugin-switchboard, Databases';

/**
 * What is to be said at boot about a site's SQLite: that it lacks the write-ahead log, and that it
 * waits too long for a lock. Nothing about databases in memory and other dialects.
 */
export const sqliteWarnings = async (database: Database): Promise<string[]> => {
  if (database.client !== 'sqlite') return [];
  const { knex } = await database.current();
  const read = async (pragma: string): Promise<Record<string, unknown>> =>
    (await knex.raw<Record<string, unknown>[]>(`PRAGMA ${pragma}`))[0] ?? {};
  const { file } = await read('database_list');
  if (!file) return [];
  const warnings: string[] = [];
  const { journal_mode: mode } = await read('journal_mode');
  if (String(mode).toLowerCase() !== 'wal') {
    warnings.push(
      `SQLite runs without its write-ahead log (journal_mode is ${String(mode)}): set it to WAL; ${ADVICE}.`
    );
  }
  const wait = Number((await read('busy_timeout')).timeout);
  if (wait > LONGEST_WAIT_MS) {
    warnings.push(
      `SQLite waits up to ${wait} ms for a lock, and the whole site with it: set busy_timeout to 50; ${ADVICE}.`
    );
  }
  return warnings;
};
