// npm run version: makes the next version of what .changeset says. The version goes into
// package.json and package-lock.json, the texts become its section of CHANGELOG.md, and the
// changesets are removed. Commits nothing.
import fs from 'node:fs';
import path from 'node:path';
import { textOf, withRelease } from './lib/changelog.mjs';
import { ROOT } from './lib/paths.mjs';
import { mustRun } from './lib/run.mjs';

const FOLDER = path.join(ROOT, '.changeset');
const CHANGELOG = path.join(ROOT, 'CHANGELOG.md');
const LOCK = path.join(ROOT, 'package-lock.json');

const read = (file) => fs.readFileSync(file, 'utf8');

const main = async () => {
  const texts = fs
    .readdirSync(FOLDER)
    .filter((name) => name.endsWith('.md') && name !== 'README.md')
    .sort()
    .map((name) => textOf(read(path.join(FOLDER, name))));
  if (texts.length === 0)
    throw new Error('There is no changeset in .changeset: nothing to release.');
  // Asked for before anything is changed.
  const changelog = read(CHANGELOG);
  await mustRun('changeset version', process.execPath, [
    path.join(ROOT, 'node_modules/@changesets/cli/bin.js'),
    'version',
  ]);
  const { version } = JSON.parse(read(path.join(ROOT, 'package.json')));
  const lock = JSON.parse(read(LOCK));
  lock.version = version;
  lock.packages[''].version = version;
  fs.writeFileSync(LOCK, `${JSON.stringify(lock, null, 2)}\n`);
  fs.writeFileSync(CHANGELOG, withRelease(changelog, version, texts));
  console.log(`This is ${version} now. Read its section of CHANGELOG.md, and put it in order.`);
};

main().catch((error) => {
  console.error(error.message);
  process.exitCode = 1;
});
