// How long whole runs took on this machine, for `npm run house`.
// As a program: node scripts/lib/durations.mjs <name of the run> <seconds>
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { SCRATCH } from './paths.mjs';

const FILE = path.join(SCRATCH, 'results/durations.json');

export const ON_SQLITE = 'npm test on SQLite alone';
export const EVERYTHING = '.ci/run';

/** @returns {Record<string, number>} seconds by run */
export const readDurations = () => {
  try {
    return JSON.parse(fs.readFileSync(FILE, 'utf8'));
  } catch {
    return {};
  }
};

export const recordDuration = (run, seconds) => {
  fs.mkdirSync(path.dirname(FILE), { recursive: true });
  fs.writeFileSync(FILE, JSON.stringify({ ...readDurations(), [run]: Math.round(seconds) }));
};

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  recordDuration(process.argv[2], Number(process.argv[3]));
}
