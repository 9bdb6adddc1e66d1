import { randomUUID } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';
import { pause } from './retry.mjs';

const UNFINISHED = '.part';
/** Files that a running process is writing are younger than this. */
const ABANDONED_MS = 24 * 60 * 60_000;

/** The system is short of something for a moment: nothing is wrong with the file. */
const PASSING = new Set(['EMFILE', 'ENFILE', 'EAGAIN', 'EBUSY', 'EINTR', 'ENOMEM']);
export const isPassing = ({ code }) => PASSING.has(code);

const PAUSES_MS = [10, 30, 90, 270];

/** Tries again while the system is short of handles, for less than half a second. */
export const patiently = async (work) => {
  for (const milliseconds of PAUSES_MS) {
    try {
      return await work();
    } catch (error) {
      if (!isPassing(error)) throw error;
      await pause(milliseconds);
    }
  }
  return work();
};

/** True if there is a file of this name. */
export const isThere = (file) =>
  fs.lstat(file).then(
    () => true,
    (error) => {
      if (error.code === 'ENOENT') return false;
      throw error;
    }
  );

/** A rename is on the disk only when its folder is. Not every system lets a folder be synced. */
export const syncFolder = async (folder) => {
  try {
    const handle = await patiently(() => fs.open(folder, 'r'));
    await handle.sync().finally(() => handle.close());
  } catch (error) {
    if (isPassing(error)) throw error;
    // Windows.
  }
};

const fill = async (handle, content) => {
  try {
    await handle.writeFile(content);
    await handle.sync();
  } finally {
    await handle.close();
  }
};

/** Resolves when the whole file is on the disk under its name; a crash leaves all of it or none. */
export const writeDurably = async (file, content) => {
  const temporary = `${file}.${randomUUID()}${UNFINISHED}`;
  await fill(await patiently(() => fs.open(temporary, 'wx', 0o600)), content);
  await fs.rename(temporary, file);
  await syncFolder(path.dirname(file));
};

/**
 * Writes a file of which no other process writes one with the same claim at the same time: only the
 * process that makes `<claim>.part` may. `isTaken` is called while no other one can take it.
 * @returns {Promise<boolean>} false: it belongs to somebody else, and nothing was written
 */
export const writeClaimed = async ({ claim, isTaken, file }, content) => {
  const temporary = `${claim}${UNFINISHED}`;
  let handle;
  try {
    handle = await patiently(() => fs.open(temporary, 'wx', 0o600));
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
  try {
    if (await isTaken()) {
      await handle.close();
      await fs.rm(temporary, { force: true });
      return false;
    }
    await fill(handle, content);
    await fs.rename(temporary, file);
  } catch (error) {
    await handle.close().catch(() => {});
    await fs.rm(temporary, { force: true });
    throw error;
  }
  await syncFolder(path.dirname(file));
  return true;
};

/** Written before claims were known. */
const FORMER = /\.json\.part$/;

/**
 * Removes what a killed process had begun to write; nobody was told that it is kept. Another process
 * may be writing in this folder now.
 */
export const removeLeftovers = async (folder, nowMs = Date.now()) => {
  for (const name of await fs.readdir(folder)) {
    if (!name.endsWith(UNFINISHED)) continue;
    const file = path.join(folder, name);
    const { mtimeMs } = await fs.lstat(file).catch(() => ({ mtimeMs: nowMs }));
    const isAbandoned = FORMER.test(name) || nowMs - mtimeMs > ABANDONED_MS;
    if (isAbandoned) await fs.rm(file, { force: true });
  }
};
