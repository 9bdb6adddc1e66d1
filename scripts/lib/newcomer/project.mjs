import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
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
    // What it says on standard error is part of the error where it fails.
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
 * A new project as `create-strapi-app` makes it, without its dependencies.
 * @param {'typescript' | 'javascript'} language
 * @param {string} strapi the version of Strapi
 */
export const createProject = (workspace, language, strapi) => {
  const name = `a-${language}-site`;
  const app = `create-strapi-app@${strapi}`;
  const choices = [
    '--non-interactive',
    '--skip-cloud',
    '--no-example',
    '--no-git-init',
    '--no-run',
  ];
  run(
    'npx',
    ['--yes', app, name, `--${language}`, '--use-npm', '--no-install', ...choices],
    workspace
  );
  return path.join(workspace, name);
};

const INSTALL = /^npm install strapi-plugin-switchboard$/m;

/** Runs the README's own line, with the tarball where the registry's package would be. */
export const install = (project, tarball, readme) => {
  if (!INSTALL.test(readme)) throw new Error('README.md does not say how it is installed');
  const flags = '--no-audit --no-fund --prefer-offline --loglevel=error';
  shell(`npm install ${flags} ${tarball}`, project);
};

/**
 * Has npm work out what it would install if a project had these packages, too, and installs nothing: it
 * refuses where a version is out of somebody's range.
 */
export const resolveBeside = (project, packages) => {
  const folder = fs.mkdtempSync(path.join(path.dirname(project), 'beside-'));
  for (const file of ['package.json', 'package-lock.json'])
    fs.copyFileSync(path.join(project, file), path.join(folder, file));
  const flags = ['--package-lock-only', '--ignore-scripts', '--no-audit', '--no-fund'];
  run('npm', ['install', ...flags, '--prefer-offline', ...packages], folder);
  fs.rmSync(folder, { recursive: true });
};

/** What `from` has installed, in another project, without asking the registry again. */
export const installAs = (from, project) => {
  run('cp', ['-al', path.join(from, 'node_modules'), `${project}/`], project);
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
