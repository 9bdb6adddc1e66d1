import { createRequire } from 'node:module';
import { workerData } from 'node:worker_threads';
import type { CheckpointThread } from './checkpoints';

interface Connection {
  /** Pages in the write-ahead log, and how many of them have been copied. */
  pragma(text: string): { log: number; checkpointed: number }[];
}

const SHORTEST_MS = 20;
const LONGEST_MS = 500;

const { driver, file, pages: limit, synchronous } = workerData as CheckpointThread;
const Database = createRequire(driver)(driver) as new (name: string, how: object) => Connection;
const connection = new Database(file, { fileMustExist: true, timeout: 0 });
connection.pragma(`synchronous = ${synchronous}`);

let before = { log: 0, checkpointed: 0 };
let pauseMs = SHORTEST_MS;

/** Waits for no lock, and none waits for it. */
const checkpoint = (): void => {
  try {
    const [now = before] = connection.pragma('wal_checkpoint(PASSIVE)');
    // Once all of it is copied, the next commit starts the log again.
    const isNew = before.log === before.checkpointed && now.log !== before.log;
    const pages = isNew ? now.log : now.log - before.log;
    // By steps: if the site was first, these are only the last of many.
    if (pages > limit / 2) pauseMs = Math.max(SHORTEST_MS, pauseMs / 2);
    else if (pages < limit / 5) pauseMs = Math.min(LONGEST_MS, pauseMs * 1.5);
    before = now;
  } catch {
    // The disk may be full; a write of the site says so.
    pauseMs = LONGEST_MS;
  }
  setTimeout(checkpoint, pauseMs);
};
checkpoint();
