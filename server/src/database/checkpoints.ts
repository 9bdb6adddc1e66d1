import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { logFailure } from '../runtime/text';
import type { App, Slot } from '../app';

const THREAD = path.join(__dirname, 'checkpoint-thread.js');

export interface CheckpointThread {
  /** The file of the module that the site's own connection is of. */
  driver: string;
  file: string;
  /** `PRAGMA synchronous` of the site. */
  synchronous: number;
  /** Pages in the log at which a write of the site would checkpoint. */
  pages: number;
}

/** A write's own checkpoint comes later by this factor: it waits for the disk, and the site with it. */
const LATER = 4;

const thread = (): Slot<Worker> => ({});

/**
 * Copies commits from SQLite's write-ahead log into its file, in a thread: otherwise one write in fifty or so does it.
 * Not if the site has switched automatic checkpoints off, as tools that copy the log want it.
 */
export const startCheckpoints = async (app: App): Promise<void> => {
  if (app.db.client !== 'sqlite') return;
  const { knex } = app.db.pool;
  const pragma = async (text: string): Promise<unknown> =>
    Object.values((await knex.raw<object[]>(`PRAGMA ${text}`))[0] ?? {}).at(-1);
  const file = String(await pragma('database_list'));
  const own = Number(await pragma('wal_autocheckpoint'));
  if (!file || own <= 0 || (await pragma('journal_mode')) !== 'wal') return;
  // Another copy of SQLite in this process would undo the locks that this one has on the file.
  const { connectionSettings, driver } = knex.client as Record<string, { options?: unknown }>;
  const loaded = Object.values(require.cache).find((one) => one?.exports === driver);
  if (!loaded || connectionSettings?.options) return;
  const pages = own * LATER;
  const synchronous = Number(await pragma('synchronous'));
  const workerData: CheckpointThread = { driver: loaded.filename, file, synchronous, pages };
  const worker = new Worker(THREAD, { workerData });
  worker.unref();
  worker.once('error', (error) => {
    logFailure(app, 'the thread for SQLite checkpoints ended', 'warn')(error);
    pragma(`wal_autocheckpoint = ${own}`).catch(() => {}); // The database may be closed.
  });
  app.part(thread).value = worker;
  await pragma(`wal_autocheckpoint = ${pages}`);
};

export const stopCheckpoints = async (app: App): Promise<void> => {
  await app.part(thread).value?.terminate();
};
