import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { ROOT } from '../paths.mjs';
import { addTo } from './add-to-config.mjs';
import { environment } from './programs.mjs';

const own = JSON.parse(fs.readFileSync(path.join(ROOT, 'package.json'), 'utf8'));
/** The version of Strapi that the repository is tested with. */
export const PINNED = own.devDependencies['@strapi/strapi'];

export const run = (command, args, cwd, env = {}) =>
  execFileSync(command, args, {
    cwd,
    env: environment(env),
    // Its standard error is part of the error if it fails.
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: 64 * 1024 * 1024,
    encoding: 'utf8',
  });

/** Runs what a page says, as it stands. */
export const shell = (code, cwd, env) => run('bash', ['-euc', code], cwd, env);

/** @returns {string} the path of the packed tarball in `folder` */
export const pack = (folder) => {
  const output = run(
    'npm',
    ['pack', '--ignore-scripts', '--json', '--pack-destination', folder],
    ROOT
  );
  return path.join(folder, JSON.parse(output.slice(output.indexOf('[')))[0].filename);
};

/**
 * New projects as `create-strapi-app` makes them, without their dependencies.
 * @param {string[]} languages of `typescript` and `javascript`
 * @param {string} strapi the version of Strapi
 * @returns {Record<string, string>} the folder of each, by language
 */
export const createProjects = (workspace, languages, strapi) => {
  const choices = '--non-interactive --skip-cloud --no-example --no-git-init --no-run';
  const nameOf = (language) => `a-${language}-site`;
  const commands = languages.map(
    (language) =>
      `create-strapi-app ${nameOf(language)} --${language} --use-npm --no-install ${choices}`
  );
  run(
    'npx',
    ['--yes', `--package=create-strapi-app@${strapi}`, '--call', commands.join(' && ')],
    workspace
  );
  return Object.fromEntries(
    languages.map((language) => [language, path.join(workspace, nameOf(language))])
  );
};

const DRIVER = 'better-sqlite3';

/**
 * Packs SQLite's driver, which this checkout has installed, the way its author offers it for download. If
 * a machine cannot load it from there, each install compiles it: a minute and a half of the processor.
 */
const offerDriver = (folder) => {
  const home = path.join(ROOT, 'node_modules', DRIVER);
  const built = 'build/Release/better_sqlite3.node';
  fs.mkdirSync(folder, { recursive: true });
  if (!fs.existsSync(path.join(home, built))) return;
  const { version } = JSON.parse(fs.readFileSync(path.join(home, 'package.json'), 'utf8'));
  const { modules } = process.versions;
  const name = `${DRIVER}-v${version}-node-v${modules}-${process.platform}-${process.arch}.tar.gz`;
  run('tar', ['-czf', path.join(folder, name), '-C', home, built], folder);
};

const INSTALL = /^npm install strapi-plugin-switchboard$/m;

/** Runs the README's own line, with the tarball where the registry's package would be. */
export const install = (project, tarball, readme) => {
  if (!INSTALL.test(readme)) throw new Error('README.md does not say how it is installed');
  const flags = '--no-audit --no-fund --prefer-offline --loglevel=error';
  const driver = path.join(path.dirname(project), 'driver');
  offerDriver(driver);
  shell(`npm install ${flags} ${tarball}`, project, {
    npm_config_better_sqlite3_local_prebuilds: driver,
  });
};

/**
 * Makes npm resolve a project with these packages added, without an install: npm refuses if a version
 * is out of a package's range.
 */
export const resolveBeside = (project, packages) => {
  const folder = fs.mkdtempSync(path.join(path.dirname(project), 'beside-'));
  for (const file of ['package.json', 'package-lock.json'])
    fs.copyFileSync(path.join(project, file), path.join(folder, file));
  const flags = ['--package-lock-only', '--ignore-scripts', '--no-audit', '--no-fund'];
  run('npm', ['install', ...flags, '--prefer-offline', ...packages], folder);
  fs.rmSync(folder, { recursive: true });
};

/**
 * Moves what `from` has installed, and the admin panel that it has built, into a JavaScript project: both
 * are what that one would install and build, for the panel is the same in either language.
 */
export const handOver = (from, project) => {
  fs.renameSync(path.join(from, 'node_modules'), path.join(project, 'node_modules'));
  fs.renameSync(path.join(from, 'dist/build'), path.join(project, 'build'));
  const file = path.join(project, 'package.json');
  const mine = JSON.parse(fs.readFileSync(file, 'utf8'));
  const theirs = JSON.parse(fs.readFileSync(path.join(from, 'package.json'), 'utf8'));
  mine.dependencies[own.name] = theirs.dependencies[own.name];
  fs.writeFileSync(file, JSON.stringify(mine, null, 2));
};

const edit = (project, file, change) => {
  const target = path.join(project, file);
  fs.writeFileSync(target, change(fs.readFileSync(target, 'utf8')));
};

/** Adds what a page says to add to what is there. */
export const addEntries = (project, entries) => {
  for (const { file, key, code } of entries) edit(project, file, (text) => addTo(text, code, key));
};

/** As a project of some years ago: without the key and without the line that reads it. */
export const withoutKey = (project, extension) => {
  edit(project, '.env', (text) => text.replace(/^ENCRYPTION_KEY=.*\n/m, ''));
  edit(project, `config/admin${extension}`, (text) => {
    const without = text.replace(/ {2}secrets: \{[^}]*\},\n/, '');
    if (without === text) throw new Error('config/admin has no secrets to take away');
    return without;
  });
};

export const setEnvironment = (project, values) =>
  edit(project, '.env', (text) =>
    Object.entries(values).reduce(
      (sum, [name, value]) =>
        `${sum.replace(new RegExp(`^${name}=.*\n`, 'm'), '').trimEnd()}\n${name}=${value}\n`,
      text
    )
  );

export const editFile = edit;

/** By a program: it takes half of what Node takes for so many files. */
export const remove = (folder) => run('rm', ['-rf', folder], os.tmpdir());
