// npm run version: makes the next version of what .changeset says. The version goes into
// package.json, that of the till client and package-lock.json, the texts become its section of
// CHANGELOG.md, and the changesets are removed. Commits nothing.
import fs from 'node:fs';
import path from 'node:path';
import { textOf, withRelease } from './lib/changelog.mjs';
import { runChangesets } from './lib/changesets.mjs';
import { ROOT } from './lib/paths.mjs';

const FOLDER = path.join(ROOT, '.changeset');
const CHANGELOG = path.join(ROOT, 'CHANGELOG.md');
const LOCK = path.join(ROOT, 'package-lock.json');

/** The packages of this repository, as package-lock.json calls them. */
const FOLDERS = ['', 'till-client'];

const read = (file) => fs.readFileSync(file, 'utf8');
const write = (file, value) => fs.writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);

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
  const { version } = await runChangesets(['version']);
  for (const folder of FOLDERS) {
    const file = path.join(ROOT, folder, 'package.json');
    write(file, { ...JSON.parse(read(file)), version });
  }
  const lock = JSON.parse(read(LOCK));
  lock.version = version;
  for (const folder of FOLDERS) lock.packages[folder].version = version;
  write(LOCK, lock);
  fs.writeFileSync(CHANGELOG, withRelease(changelog, version, texts));
  console.log(`This is ${version} now. Read its section of CHANGELOG.md, and put it in order.`);
};

main().catch((error) => {
  console.error(error.message);
  process.exitCode = 1;
});
