// Scripts that need node_modules run this first: on a fresh clone it says what to do instead of
// "eslint: not found".
import fs from 'node:fs';
import path from 'node:path';
import { ROOT } from './lib/paths.mjs';

if (!fs.existsSync(path.join(ROOT, 'node_modules/.package-lock.json'))) {
  console.error('The dependencies are not installed yet. Run `npm ci` first.');
  process.exitCode = 1;
}
