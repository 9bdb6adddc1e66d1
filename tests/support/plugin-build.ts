import { type Options, transformSync } from '@swc/core';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { ROOT, SCRATCH } from './paths';

const FOLDERS = ['server/src', 'shared'];

export const filesBelow = (folder: string): string[] =>
  fs.readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const full = path.join(folder, entry.name);
    return entry.isDirectory() ? filesBelow(full) : [full];
  });

const swcOptions: Options = {
  swcrc: false,
  configFile: false,
  jsc: { parser: { syntax: 'typescript' }, target: 'es2022' },
  module: { type: 'commonjs', ignoreDynamic: true },
  sourceMaps: 'inline',
};

const MANIFEST = {
  version: '0.0.0',
  strapi: { kind: 'plugin', name: 'switchboard', displayName: 'Switchboard' },
  exports: { './strapi-server': './server/src/index.js', './package.json': './package.json' },
};

/**
 * The server half of the plugin, file by file through swc, in a folder named after the sources'
 * content. Takes well under a second, where the whole build takes half a minute; several test
 * processes at different states of the sources do not meet.
 */
const compile = (): string => {
  const files = FOLDERS.flatMap((folder) => filesBelow(path.join(ROOT, folder))).sort();
  const contents = files.map((file) => [path.relative(ROOT, file), fs.readFileSync(file)] as const);
  const hash = crypto.createHash('sha256').update(JSON.stringify(swcOptions));
  for (const [name, bytes] of contents) hash.update(name).update('\0').update(bytes).update('\0');
  const target = path.join(SCRATCH, 'plugin', hash.digest('hex').slice(0, 16));
  if (fs.existsSync(target)) {
    // Used: tidy.ts removes what was not, for a day.
    fs.utimesSync(target, new Date(), new Date());
    return target;
  }

  const building = `${target}.${process.pid}`;
  for (const [name, bytes] of contents) {
    const isSource = /\.tsx?$/.test(name) && !name.endsWith('.d.ts');
    const file = path.join(building, isSource ? name.replace(/\.tsx?$/, '.js') : name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    const code = isSource
      ? transformSync(bytes.toString('utf8'), { ...swcOptions, filename: path.join(ROOT, name) })
          .code
      : bytes;
    fs.writeFileSync(file, code);
  }
  fs.writeFileSync(path.join(building, 'package.json'), JSON.stringify(MANIFEST, null, 2));
  try {
    fs.renameSync(building, target);
  } catch {
    // Another test process was first, with the same content.
    fs.rmSync(building, { recursive: true, force: true });
  }
  return target;
};

let compiled: string | undefined;

/**
 * Where the site finds the plugin: `SWITCHBOARD_PATH`, which names the built package, or the sources as
 * they are when a test file first asks.
 */
export const pluginPath = (): string => process.env.SWITCHBOARD_PATH ?? (compiled ??= compile());
