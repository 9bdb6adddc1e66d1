import fs from 'node:fs';
import fileCosts from '../../tests/support/file-costs.js';

const { parentOf, secondsOf } = fileCosts;

/** Microseconds of the processor that a process took so far, with those that it started. */
export const usOf = (pid) => secondsOf(pid) * 1e6;

const COUNTERS = {
  async postgres(site) {
    const [{ pid, wal }] = await site.control('sql', {
      statement: `SELECT pg_backend_pid() AS pid,
        pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint AS wal`,
    });
    const counted = { 'bytes of WAL': Number(wal) };
    // On another machine, or in a container, the number is that of something else here.
    const isHere = fs.readFileSync(`/proc/${pid}/comm`, 'utf8').trim() === 'postgres';
    return isHere ? { 'us of PostgreSQL': usOf(parentOf(pid)), ...counted } : counted;
  },

  async sqlite(site) {
    const io = fs.readFileSync(`/proc/${site.pid}/io`, 'utf8');
    return { 'bytes written': Number(/^write_bytes: (\d+)$/m.exec(io)[1]) };
  },
};

/** Counters of the site and of its database; none where the system does not tell. */
const readCounters = async (database, site) => {
  if (process.platform !== 'linux') return {};
  return { 'us of the site': usOf(site.pid), ...(await COUNTERS[database]?.(site)) };
};

/**
 * Notes what deliveries cost beside time: microseconds of the processor, and bytes that are written.
 * @param site resolves with the site in which the work is done
 * @returns `spend(work)`, which runs work that resolves with `{ deliveries }` and answers as it does, and
 * `note()`, which says the sum of all work divided by its deliveries
 */
export const costsOf = (database, site) => {
  const spent = {};
  let deliveries = 0;
  return {
    async spend(work) {
      const running = await site();
      const before = await readCounters(database, running);
      const result = await work();
      const after = await readCounters(database, running);
      deliveries += result.deliveries;
      for (const [name, value] of Object.entries(after))
        spent[name] = (spent[name] ?? 0) + value - before[name];
      return result;
    },
    note() {
      const each = Object.entries(spent).map(
        ([name, value]) => `${Math.round(value / deliveries)} ${name}`
      );
      return each.length > 0 ? `a delivery, queueing included: ${each.join(', ')}` : null;
    },
  };
};
