import { once } from 'node:events';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { logFailure } from '../runtime/text';
import type { App, Slot } from '../app';

const THREAD = path.join(__dirname, 'checkpoint-thread.js');

export interface CheckpointThread {
  /** The file of the module that the site's own connection is of. */
  driver: string;
  file: string;
  /** How a connection syncs: pragmas of the site's own. */
  syncs: Readonly<Record<string, number>>;
  /** How many pages of the log are copied at once. */
  pages: number;
}

/** A write of the site makes a checkpoint only if the log is so many times as long: the thread may fall behind. */
const LATER = 4;
const SYNCS = ['synchronous', 'fullfsync', 'checkpoint_fullfsync'];
/** Before it, a checkpoint next to another connection's commits could leave an index without rows: sqlite.org/wal.html. */
const FIRST_SAFE = [3, 51, 3];
const LONGEST_STOP_MS = 2000;

/** True if two connections of a process may make checkpoints. @param version of SQLite, such as `3.51.3` */
export const isSafe = (version: string): boolean => {
  const parts = version.split('.').map(Number);
  const at = FIRST_SAFE.findIndex((part, index) => part !== parts[index]);
  return at < 0 || (parts[at] ?? 0) > (FIRST_SAFE[at] ?? 0);
};

const thread = (): Slot<Worker> => ({});

const start = async (app: App): Promise<void> => {
  const { knex } = app.db.pool;
  const read = async (sql: string): Promise<unknown> =>
    Object.values((await knex.raw<object[]>(sql))[0] ?? {}).at(-1);
  const pragma = (text: string) => read(`PRAGMA ${text}`);
  const file = String(await pragma('database_list'));
  const pages = Number(await pragma('wal_autocheckpoint'));
  const modes = `${await pragma('journal_mode')} ${await pragma('locking_mode')}`;
  const version = String(await read('SELECT sqlite_version()'));
  if (!file || pages <= 0 || modes !== 'wal normal' || !isSafe(version)) return;
  // Another copy of SQLite in this process would undo the locks that this one has on the file.
  const { connectionSettings, driver } = knex.client as Record<string, { options?: unknown }>;
  const loaded = Object.values(require.cache).find((one) => one?.exports === driver);
  if (!loaded || connectionSettings?.options) return;
  const syncs: Record<string, number> = {};
  for (const name of SYNCS) syncs[name] = Number(await pragma(name));
  const workerData: CheckpointThread = { driver: loaded.filename, file, syncs, pages };
  const worker = new Worker(THREAD, { workerData, execArgv: [] });
  worker.unref();
  worker.once('error', (error) => {
    logFailure(app, 'the thread for SQLite checkpoints ended', 'warn')(error);
    pragma(`wal_autocheckpoint = ${pages}`).catch(() => {}); // The database may be closed.
  });
  app.part(thread).value = worker;
  await pragma(`wal_autocheckpoint = ${LATER * pages}`);
};

/**
 * Starts a thread that copies SQLite's write-ahead log into its file, where a write of the site would wait for the disk.
 * Not if the site has switched automatic checkpoints off, for a tool that copies the log. Never rejects.
 */
export const startCheckpoints = async (app: App): Promise<void> => {
  if (app.db.client !== 'sqlite') return;
  await start(app).catch(
    logFailure(app, 'no thread for SQLite checkpoints could be started', 'warn')
  );
};

/** Ends the thread if there is one, and waits for it, for two seconds at most. Never rejects. */
export const stopCheckpoints = async (app: App): Promise<void> => {
  const worker = app.part(thread).value;
  if (!worker || worker.threadId < 0) return;
  // It ends itself: a driver that is interrupted while a checkpoint fails would end the process.
  worker.ref();
  worker.postMessage('stop');
  await Promise.race([once(worker, 'exit'), sleep(LONGEST_STOP_MS, undefined, { ref: false })]);
  worker.unref();
};
