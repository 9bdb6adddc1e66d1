import fs from 'node:fs/promises';
import path from 'node:path';

const UNFINISHED = '.part';

/** A rename is on the disk only when its folder is. Not every system lets a folder be synced. */
export const syncFolder = async (folder) => {
  try {
    const handle = await fs.open(folder, 'r');
    await handle.sync().finally(() => handle.close());
  } catch {
    // Windows.
  }
};

/** Resolves when the whole file is on the disk under its name; a crash leaves all of it or none. */
export const writeDurably = async (file, content) => {
  const temporary = `${file}${UNFINISHED}`;
  const handle = await fs.open(temporary, 'w', 0o600);
  try {
    await handle.writeFile(content);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await fs.rename(temporary, file);
  await syncFolder(path.dirname(file));
};

/** What a killed process had begun to write; nobody was told that it is kept. */
export const removeLeftovers = async (folder) => {
  for (const name of await fs.readdir(folder)) {
    if (name.endsWith(UNFINISHED)) await fs.rm(path.join(folder, name), { force: true });
  }
};
