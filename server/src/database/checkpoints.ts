import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { logFailure } from '../runtime/text';
import type { App, Slot } from '../app';

const THREAD = path.join(__dirname, 'checkpoint-thread.js');

/** `driver`: the file of the module that the site's own connection is of. `pages`: at which a write would checkpoint. */
export interface CheckpointThread {
  driver: string;
  file: string;
  pages: number;
}

/** The site's own checkpoints come later by this factor: each one waits for the disk while a write waits for it. */
const LATER = 4;

const thread = (): Slot<Worker> => ({});

/**
 * Copies commits from SQLite's write-ahead log into its file, in a thread: otherwise one write in fifty or so does it.
 * Not if the site has switched its own checkpoints off, as tools that copy the log ask for.
 */
export const startCheckpoints = async (app: App): Promise<void> => {
  const settings = await app.db.sqliteSettings();
  if (settings?.journalMode !== 'wal' || settings.checkpointPages <= 0) return;
  const { knex } = app.db.pool;
  const { connectionSettings, driver } = knex.client as {
    connectionSettings: { options?: object };
    driver: unknown;
  };
  // Another copy of SQLite in this process would undo the locks that this one has on the file.
  const loaded = Object.values(require.cache).find((one) => one?.exports === driver);
  if (!loaded || connectionSettings.options) return;
  const checkpointAt = (pages: number) => knex.raw(`PRAGMA wal_autocheckpoint = ${pages}`);
  const pages = LATER * settings.checkpointPages;
  const workerData: CheckpointThread = { driver: loaded.filename, file: settings.file, pages };
  const worker = new Worker(THREAD, { workerData });
  worker.unref();
  worker.once('error', (error) => {
    logFailure(app, 'the thread for SQLite checkpoints ended', 'warn')(error);
    checkpointAt(settings.checkpointPages).catch(() => {}); // The database may be closed.
  });
  app.part(thread).value = worker;
  await checkpointAt(pages);
};

export const stopCheckpoints = async (app: App): Promise<void> => {
  await app.part(thread).value?.terminate();
};
