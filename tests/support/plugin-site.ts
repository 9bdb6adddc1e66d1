import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { ROOT } from './paths';

export interface PluginSite {
  folder: string;
  /** The text of a file in it. */
  read(file: string): string;
  remove(): void;
}

/** A folder that is a site's as far as `switchboard create-plugin` looks. */
export const makePluginSite = (config: Record<string, string> = {}): PluginSite => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'switchboard-plugin-'));
  fs.writeFileSync(path.join(folder, 'package.json'), '{ "name": "a-site", "private": true }');
  fs.symlinkSync(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'), 'dir');
  fs.mkdirSync(path.join(folder, 'config'));
  for (const [file, text] of Object.entries(config))
    fs.writeFileSync(path.join(folder, 'config', file), text);
  return {
    folder,
    read: (file) => fs.readFileSync(path.join(folder, file), 'utf8'),
    remove: () => fs.rmSync(folder, { recursive: true, force: true }),
  };
};
