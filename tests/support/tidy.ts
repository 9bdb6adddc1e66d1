import fs from 'node:fs';
import path from 'node:path';
import { SCRATCH } from './paths';

const DAY_MS = 86_400_000;

/** Whether a name that begins with a process id (`123-…`) is of a process that is gone. */
export const isOfDeadProcess = (pidText: string): boolean => {
  const pid = Number(pidText);
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
};

const list = (folder: string): string[] => {
  try {
    return fs.readdirSync(path.join(SCRATCH, folder));
  } catch {
    return [];
  }
};

const remove = (folder: string, name: string): void =>
  fs.rmSync(path.join(SCRATCH, folder, name), { recursive: true, force: true });

let done = false;

/** Removes what killed test runs left, and compiled plugins that nobody used for a day. */
export const tidyScratch = (now: number = Date.now()): void => {
  if (done) return;
  done = true;
  for (const folder of ['sites', 'playgrounds']) {
    for (const name of list(folder)) {
      if (isOfDeadProcess(name.split('-')[0] ?? '')) remove(folder, name);
    }
  }
  for (const name of list('plugin')) {
    const stat = fs.statSync(path.join(SCRATCH, 'plugin', name), { throwIfNoEntry: false });
    if (stat && now - stat.mtimeMs > DAY_MS) remove('plugin', name);
  }
};
