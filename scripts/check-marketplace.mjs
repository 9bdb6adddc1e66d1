// Checks the rules of Strapi's marketplace and npm that `strapi-plugin verify` leaves out: part of
// `npm run verify`. Needs the build in dist.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import {
  linesOf,
  logoFaults,
  packageFaults,
  packedFaults,
  releaseFaults,
} from './lib/marketplace.mjs';
import { ROOT } from './lib/paths.mjs';

const read = (file) => fs.readFileSync(path.join(ROOT, file), 'utf8');
const require = createRequire(import.meta.url);

const output = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
  cwd: ROOT,
  encoding: 'utf8',
  maxBuffer: 64 * 1024 * 1024,
  stdio: ['ignore', 'pipe', 'ignore'],
});
const [{ files, size }] = JSON.parse(output.slice(output.indexOf('[')));

const faults = [
  ...packageFaults(JSON.parse(read('package.json')), require('@strapi/strapi/package.json')),
  ...packedFaults(files, size, linesOf(read('scripts/packed-files.txt'))),
  ...logoFaults(fs.readFileSync(path.join(ROOT, 'docs/logo.png'))),
  ...releaseFaults(read('.github/workflows/release.yml')),
];
for (const fault of faults) console.error(fault);
const largest = Math.max(
  ...files.filter(({ path: file }) => file.startsWith('dist/admin/')).map((file) => file.size)
);
console.log(`${size} bytes packed, ${files.length} files, the largest admin chunk ${largest}`);
process.exitCode = faults.length === 0 ? 0 : 1;
