import fs from 'node:fs';
import path from 'node:path';
import { ROOT } from './paths.mjs';
import { mustRun } from './run.mjs';

const readJson = (file) => {
  try {
    return JSON.parse(fs.readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
};

/**
 * True if node_modules matches package-lock.json. By content: file times say nothing after
 * a checkout.
 */
export const modulesAreInstalled = () => {
  const wanted = readJson(path.join(ROOT, 'package-lock.json'));
  const installed = readJson(path.join(ROOT, 'node_modules/.package-lock.json'));
  if (!wanted || !installed) return false;
  return Object.entries(wanted.packages).every(([name, entry]) => {
    if (name === '' || entry.optional || entry.devOptional || entry.peer) return true;
    return installed.packages[name]?.version === entry.version;
  });
};

export const installWhatIsMissing = async () => {
  if (modulesAreInstalled()) return;
  console.log('Installing the dependencies (npm ci) …');
  await mustRun('npm ci', 'npm', ['ci', '--no-audit', '--no-fund']);
};

/** The newest modification below these files and folders, in epoch milliseconds. */
export const newestChange = (...places) => {
  let newest = 0;
  for (const place of places) {
    const stat = fs.statSync(place, { throwIfNoEntry: false });
    if (!stat) continue;
    if (stat.isDirectory()) {
      for (const name of fs.readdirSync(place))
        newest = Math.max(newest, newestChange(path.join(place, name)));
    } else newest = Math.max(newest, stat.mtimeMs);
  }
  return newest;
};

const BUILT = ['dist/server/index.js', 'dist/server/index.mjs', 'dist/admin/index.mjs'];
const SOURCES = ['server/src', 'admin/src', 'shared', 'package.json', 'package-lock.json'];

export const pluginIsBuilt = () => {
  const times = BUILT.map((file) => fs.statSync(path.join(ROOT, file), { throwIfNoEntry: false }));
  if (times.some((stat) => !stat)) return false;
  const oldest = Math.min(...times.map((stat) => stat.mtimeMs));
  return oldest >= newestChange(...SOURCES.map((name) => path.join(ROOT, name)));
};

export const buildPluginWhenStale = async () => {
  if (pluginIsBuilt()) return;
  console.log('Building the plugin …');
  await mustRun('Building the plugin', 'npm', ['run', '--silent', 'build']);
};

/** The browser that end-to-end tests drive, or undefined. */
export const findChromium = () =>
  [process.env.CHROMIUM_PATH, '/usr/bin/chromium', '/usr/bin/chromium-browser'].find(
    (file) => file && fs.existsSync(file)
  );
