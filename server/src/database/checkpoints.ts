import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { logFailure } from '../runtime/text';
import type { App, Slot } from '../app';

const THREAD = path.join(__dirname, 'checkpoint-thread.js');

/** `driver`: the file of the module that the site's own connection is of. */
export interface CheckpointThread {
  driver: string;
  file: string;
}

const thread = (): Slot<Worker> => ({});

/**
 * Copies commits from SQLite's write-ahead log to its file in a thread: otherwise every hundredth write or so of the
 * site does it, and waits for the disk. Not where the site has switched its own checkpoints off.
 */
export const startCheckpoints = async (app: App): Promise<void> => {
  const settings = await app.db.sqliteSettings();
  if (settings?.journalMode !== 'wal' || settings.checkpointPages === 0) return;
  // Another copy of SQLite in this process would undo the file's locks.
  const { driver } = app.strapi.db.connection.client as { driver: unknown };
  const loaded = Object.values(require.cache).find((one) => one?.exports === driver);
  const { options } = app.strapi.db.connection.client.connectionSettings as { options?: object };
  if (!loaded || options) return;
  const workerData: CheckpointThread = { driver: loaded.filename, file: settings.file };
  const worker = new Worker(THREAD, { workerData });
  worker.unref();
  worker.once('error', logFailure(app, 'the thread of SQLite checkpoints ended', 'warn'));
  app.part(thread).value = worker;
};

export const stopCheckpoints = async (app: App): Promise<void> => {
  await app.part(thread).value?.terminate();
};
