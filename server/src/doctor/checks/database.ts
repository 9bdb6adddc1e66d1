import { sqliteWarnings } from '../../database/db';
import { type Check, ok, warn } from '../types';
import type { App } from '../../app';

/** Beyond this a receiver may refuse signatures, and tills may be refused that keep the time. */
const CLOCKS_APART_MS = 5000;

/** The node's clock is in signatures, and tills are judged against it; all else is the database's. */
export const clocks: Check = {
  name: 'clocks',
  async look(app) {
    const clock = app.clock;
    await clock.sync();
    const offset = Date.now() - clock.now();
    const message = `this node's clock and the database's are ${Math.abs(offset)} ms apart (node ${offset < 0 ? 'behind' : 'ahead'})`;
    if (Math.abs(offset) <= CLOCKS_APART_MS) return ok(message);
    return warn(message, 'set the clocks with NTP or chrony on both machines');
  },
};

/** So many are named; of a site that was never started there are some fifty. */
const NAMED = 5;

const namedOf = (missing: readonly string[]): string => {
  const others = missing.length - NAMED;
  return `${missing.slice(0, NAMED).join(', ')}${others > 0 ? ` and ${others} more` : ''}`;
};

/** @param expected the plain tables of the features that the site has */
export const tables = (expected: (app: App) => readonly string[]): Check => ({
  name: 'tables',
  async look(app) {
    const types = Object.values(app.strapi.contentTypes)
      .filter(({ uid }) => uid.startsWith('plugin::switchboard.'))
      .map(({ collectionName }) => String(collectionName));
    const names = [...new Set([...types, ...expected(app)])];
    const present = new Set(await app.strapi.db.dialect.schemaInspector.getTables());
    const missing = names.filter((name) => !present.has(name)).sort();
    if (missing.length === 0) return ok(`all ${names.length} tables are there`);
    return warn(
      missing.length === names.length
        ? `none of the ${names.length} tables exists yet`
        : `${missing.length} of ${names.length} tables are missing: ${namedOf(missing)}`,
      'start the site once with this version: it creates them'
    );
  },
});

export const sqlite: Check = {
  name: 'sqlite',
  async look(app) {
    if (app.db.client !== 'sqlite') return null;
    const warnings = await sqliteWarnings(app.db);
    if (warnings.length === 0) return ok('SQLite has its write-ahead log (WAL)');
    return warn(
      warnings.join(' '),
      "set journal_mode = WAL and busy_timeout = 50 in afterCreate of the database's pool"
    );
  },
};
