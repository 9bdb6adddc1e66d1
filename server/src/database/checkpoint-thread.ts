import { createRequire } from 'node:module';
import { parentPort, workerData } from 'node:worker_threads';
import type { CheckpointThread } from './checkpoints';

interface Connection {
  /** Pages in the write-ahead log, and how many of them have been copied. */
  pragma(text: string): { log: number; checkpointed: number }[];
}

const SHORTEST_MS = 20;
const LONGEST_MS = 250;
/** Each copies what was written during the one before: only a log of which all is copied starts again. */
const PASSES = 4;

const { driver, file, pages, syncs } = workerData as CheckpointThread;
const Database = createRequire(driver)(driver) as new (name: string, how: object) => Connection;
const connection = new Database(file, { fileMustExist: true });
for (const [name, value] of Object.entries(syncs)) connection.pragma(`${name} = ${value}`);
connection.pragma('busy_timeout = 0');

let before = 0;
let pauseMs = SHORTEST_MS;

/** The number of pages that are not copied. Looking takes no lock and reads no file. */
const look = (): number => {
  const [{ log, checkpointed } = { log: 0, checkpointed: 0 }] =
    connection.pragma('wal_checkpoint(NOOP)');
  return log - checkpointed;
};

/** Waits for no lock, and no writer waits for it. */
const checkpoint = (): void => {
  try {
    const found = look();
    if (found >= pages) {
      for (let pass = 0; pass < PASSES && look() > 0; pass += 1)
        connection.pragma('wal_checkpoint(PASSIVE)');
    }
    // Often while much is written.
    pauseMs =
      Math.abs(found - before) > pages / 20 ? SHORTEST_MS : Math.min(LONGEST_MS, pauseMs * 2);
    before = found;
  } catch {
    // The disk may be full; a write of the site says so.
    pauseMs = LONGEST_MS;
  }
  setTimeout(checkpoint, pauseMs);
};
checkpoint();
parentPort?.once('message', () => process.exit());
