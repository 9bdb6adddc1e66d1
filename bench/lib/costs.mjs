import fs from 'node:fs';

const TICK_US = 10_000;

/** Fields of /proc/<pid>/stat from the third on, which follows the command's name. */
const statOf = (pid) => {
  const text = fs.readFileSync(`/proc/${pid}/stat`, 'utf8');
  return text.slice(text.lastIndexOf(')') + 2).split(' ');
};

const sum = (numbers) => numbers.reduce((total, one) => total + Number(one), 0);

/** Microseconds of the processor that a process took, and its children that have ended. */
const ownUs = (pid) => sum(statOf(pid).slice(11, 15)) * TICK_US;

const childrenOf = (pid) =>
  fs
    .readdirSync(`/proc/${pid}/task`)
    .flatMap((task) =>
      fs.readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').trim().split(' ')
    )
    .filter(Boolean);

const COUNTERS = {
  async postgres(site) {
    const [{ pid, wal }] = await site.control('sql', {
      statement: `SELECT pg_backend_pid() AS pid,
        pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint AS wal`,
    });
    const [, server] = statOf(pid);
    return {
      'us of PostgreSQL': ownUs(server) + sum(childrenOf(server).map(ownUs)),
      'bytes of WAL': Number(wal),
    };
  },

  async sqlite(site) {
    const io = fs.readFileSync(`/proc/${site.pid}/io`, 'utf8');
    return { 'bytes written': Number(/^write_bytes: (\d+)$/m.exec(io)[1]) };
  },
};

/** Counters of the site and of its database; none where the system or a server elsewhere does not tell. */
const readCounters = async (database, site) => {
  try {
    return { 'us of the site': ownUs(site.pid), ...(await COUNTERS[database]?.(site)) };
  } catch {
    return {};
  }
};

/**
 * Notes what work costs beside time: of the processor in microseconds, and written.
 * @returns `spend(work)`, which runs work that resolves with `{ deliveries }`, and `note()`: all of it a delivery
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
        spent[name] = (spent[name] ?? 0) + value - (before[name] ?? value);
      return result;
    },
    note: () =>
      Object.entries(spent)
        .map(([name, value]) => `${Math.round(value / deliveries)} ${name}`)
        .join(', ') + ' a delivery, queueing included',
  };
};
