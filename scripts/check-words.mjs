// Lists words in comments and names that a reader has to decode, with the word to say instead;
// part of `npm run lint`. The words are in lib/words.mjs.
import fs from 'node:fs';
import path from 'node:path';
import { ROOT } from './lib/paths.mjs';
import { findWords } from './lib/words.mjs';

const FOLDERS = ['admin', 'bin', 'server', 'shared'];

const files = FOLDERS.flatMap((folder) =>
  fs
    .readdirSync(path.join(ROOT, folder), { recursive: true })
    .map((name) => path.join(folder, String(name)))
    .filter((name) => /\.[jt]sx?$/.test(name) && !/\b(dist|node_modules)\b/.test(name))
).sort();

const lines = files.flatMap((file) =>
  findWords(file, fs.readFileSync(path.join(ROOT, file), 'utf8')).map(
    ({ line, found, say }) => `${file}:${line}: ${found}; say: ${say}`
  )
);
if (lines.length > 0) {
  console.error(lines.join('\n'));
  console.error(`${lines.length} to rewrite. CONTRIBUTING.md says how texts are written.`);
  process.exitCode = 1;
}
