import { runSql } from './databases';
import type { Site } from './site';

const LEASED = ['delivery_queue', 'delivery_slots', 'record_queue'];

/**
 * Ends the leases of processes that were killed, as the time would that they are given. Only while no process
 * works on the site's database: whoever is alive keeps what it holds.
 */
export const endLeases = async ({ database, databaseName, running }: Site): Promise<void> => {
  if (running) throw new Error('The site is running: its leases end by themselves.');
  const past = Date.now() - 1;
  for (const table of LEASED) {
    const statement = `UPDATE switchboard_${table} SET leased_until = ${past} WHERE leased_until > ${past}`;
    await runSql(database, databaseName, statement);
  }
};
