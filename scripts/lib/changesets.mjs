import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { ROOT } from './paths.mjs';
import { mustRun } from './run.mjs';

const read = (file) => JSON.parse(fs.readFileSync(file, 'utf8'));

/**
 * Runs Changesets on the plugin alone, and returns its package.json as that leaves it. With
 * workspaces, Changesets does not treat the root as a package; the client for tills has the plugin's
 * version anyway. So it works in a folder that has no workspaces, on the changesets of this one.
 * @param {string[]} args
 */
export const runChangesets = async (args) => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'changesets-'));
  try {
    const { workspaces: _, ...own } = read(path.join(ROOT, 'package.json'));
    fs.writeFileSync(path.join(folder, 'package.json'), `${JSON.stringify(own, null, 2)}\n`);
    fs.symlinkSync(path.join(ROOT, '.changeset'), path.join(folder, '.changeset'), 'junction');
    const program = path.join(ROOT, 'node_modules/@changesets/cli/bin.js');
    await mustRun(`changeset ${args.join(' ')}`, process.execPath, [program, ...args], {
      cwd: folder,
      stdio: 'inherit',
    });
    return read(path.join(folder, 'package.json'));
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
};
