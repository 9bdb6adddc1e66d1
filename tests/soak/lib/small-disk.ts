import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

/** A disk of a few megabytes, which a test can fill. */
export interface SmallDisk {
  readonly folder: string;
  /** Takes all that is left of it, but for so many bytes. */
  fill(leave?: number): void;
  /** Gives back what `fill` took. */
  free(): void;
  unmount(): void;
}

const mount = (folder: string, megabytes: number): boolean =>
  spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=777`, 'tmpfs', folder])
    .status === 0;

const unmount = (folder: string): void => {
  spawnSync('umount', ['-l', folder]);
  fs.rmdirSync(folder);
};

const newFolder = (): string => fs.mkdtempSync(path.join(os.tmpdir(), 'switchboard-disk-'));

/** Whether a file system may be mounted here. */
export const canMount = (): boolean => {
  if (process.getuid?.() !== 0) return false;
  const folder = newFolder();
  const done = mount(folder, 1);
  if (done) unmount(folder);
  else fs.rmdirSync(folder);
  return done;
};

export const createSmallDisk = (megabytes: number): SmallDisk => {
  const folder = newFolder();
  if (!mount(folder, megabytes)) throw new Error('nothing may be mounted here');
  const ballast = path.join(folder, 'ballast');
  return {
    folder,
    fill(leave = 0) {
      const { bavail, bsize } = fs.statfsSync(folder);
      const size = Math.max(0, bavail * bsize - leave);
      const file = fs.openSync(ballast, 'a');
      try {
        for (let left = size; left > 0; left -= 1 << 20)
          fs.writeSync(file, Buffer.alloc(Math.min(left, 1 << 20)));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
      } finally {
        fs.closeSync(file);
      }
    },
    free: () => fs.rmSync(ballast, { force: true }),
    unmount: () => unmount(folder),
  };
};
