'use strict';

const fs = require('node:fs');
const path = require('node:path');

/** The compiled folders of a TypeScript site; `types` are generated, and compile to no files. */
const SOURCES = ['src', 'config', 'database'];
const LEFT_OUT = new Set(['node_modules', 'dist', 'build']);

const modified = (file) => fs.statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;

/**
 * When something below a folder changed last; the folders count too, since a file that was taken away
 * is seen by nothing else. 0 where there is none.
 */
const newestBelow = (folder) => {
  let newest = modified(folder);
  if (newest === 0) return 0;
  for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
    if (LEFT_OUT.has(entry.name) || entry.name.startsWith('.')) continue;
    const file = path.join(folder, entry.name);
    newest = Math.max(newest, entry.isDirectory() ? newestBelow(file) : modified(file));
  }
  return newest;
};

/** The folder of compiled files in the site's `tsconfig.json`; null if it names none. */
const outDirOf = (appDir) => {
  const file = path.join(appDir, 'tsconfig.json');
  if (!fs.existsSync(file)) return null;
  const [, outDir] = /^\s*"outDir"\s*:\s*"([^"]+)"/m.exec(fs.readFileSync(file, 'utf8')) ?? [];
  return outDir === undefined ? null : path.resolve(appDir, outDir);
};

/**
 * The folder of a TypeScript site's compiled files, if nothing of it changed since.
 * @param {string} appDir the site's folder
 * @returns {string | null} null: the site has to be compiled, or is no TypeScript site
 */
const upToDateDist = (appDir) => {
  const distDir = outDirOf(appDir);
  // A folder with something else in it, such as a panel alone, is no compiled site.
  if (distDir === null || !fs.existsSync(path.join(distDir, 'config'))) return null;
  if (!fs.existsSync(path.join(distDir, 'src'))) return null;
  const sources = SOURCES.map((name) => newestBelow(path.join(appDir, name)));
  const changed = Math.max(modified(path.join(appDir, 'tsconfig.json')), ...sources);
  // TypeScript writes only changed files again, and notes each time that it did.
  const made = Math.max(
    modified(path.join(distDir, 'tsconfig.tsbuildinfo')),
    ...SOURCES.map((name) => newestBelow(path.join(distDir, name)))
  );
  return made > changed ? distDir : null;
};

/**
 * The site's folders, as the host's `compileStrapi` answers them. That compiles a TypeScript site each
 * time, for seconds of a processor, so it is asked only where something changed since.
 * @param {() => Promise<{ appDir: string, distDir: string }>} compileStrapi
 */
const siteFolders = async (compileStrapi, appDir = process.cwd()) => {
  const distDir = upToDateDist(appDir);
  return distDir === null ? compileStrapi() : { appDir, distDir };
};

module.exports = { siteFolders, upToDateDist };
