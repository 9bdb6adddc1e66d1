// Lists words that a reader has to decode, with the word to say instead; part of `npm run lint`.
// Reads comments, names, messages (log lines, errors, help), the panel's English texts and the
// documents. The words are in lib/words.mjs.
import fs from 'node:fs';
import path from 'node:path';
import { ROOT } from './lib/paths.mjs';
import {
  findInDescriptions,
  findInMarkdown,
  findInMessages,
  findInTranslations,
  findWords,
} from './lib/words.mjs';

const FOLDERS = ['admin', 'bin', 'server', 'shared'];
const FOLDERS_OF_COMMENTS = ['scripts', 'till-client/src'];
/** Texts of the panel are in its translations. */
const FOLDERS_OF_MESSAGES = ['bin', 'server', 'shared'];
const FOLDERS_OF_PAGES = ['.changeset', 'docs', 'examples', 'till-client'];
const PAGES = [
  ...['ARCHITECTURE.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'README.md', 'SECURITY.md'],
  ...['playground/README.md', 'tests/support/README.md'],
];
const DESCRIPTIONS = ['docs/asyncapi.json', 'docs/openapi.json'];
const TRANSLATIONS = ['', 'menu/', 'tills/'].map((part) => `admin/src/translations/${part}en.json`);

/** The files of folders whose name matches, except for those that were built or installed. */
const filesIn = (folders, pattern) =>
  folders.flatMap((folder) =>
    fs
      .readdirSync(path.join(ROOT, folder), { recursive: true })
      .map((name) => path.join(folder, String(name)))
      .filter((name) => pattern.test(name) && !/\b(dist|node_modules)\b/.test(name))
      .sort()
  );

const CODE = /\.m?[jt]sx?$/;
const commentsOnly = (file, text) => findWords(file, text, { withNames: false });

const found = [
  [filesIn(FOLDERS, CODE), findWords],
  [filesIn(FOLDERS_OF_COMMENTS, CODE), commentsOnly],
  [filesIn(FOLDERS_OF_MESSAGES, CODE), findInMessages],
  [[...PAGES, ...filesIn(FOLDERS_OF_PAGES, /\.md$/)], (_file, text) => findInMarkdown(text)],
  [DESCRIPTIONS, (_file, text) => findInDescriptions(text)],
  [TRANSLATIONS, (_file, text) => findInTranslations(text)],
].flatMap(([files, find]) =>
  files.map((file) => [file, find(file, fs.readFileSync(path.join(ROOT, file), 'utf8'))])
);
const lines = found.flatMap(([file, words]) =>
  words.map(({ line, found: word, say }) => `${file}:${line}: ${word}; say: ${say}`)
);
if (lines.length > 0) {
  console.error(lines.join('\n'));
  console.error(`${lines.length} to rewrite. CONTRIBUTING.md says how texts are written.`);
  process.exitCode = 1;
}
