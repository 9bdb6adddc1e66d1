// The last step of `npm run build`: what strapi-plugin makes twice is packed once, and declarations that
// nobody can import are not packed at all. Half of the package's size was that. The file that threads run
// is placed next to the server half.
import fs from 'node:fs';
import path from 'node:path';
import { buildSync } from 'esbuild';
import { ROOT } from './lib/paths.mjs';

const DIST = path.join(ROOT, 'dist');
const TYPES = path.join(DIST, 'types');
const ENTRIES = ['server/src/index.d.ts', 'admin/src/index.d.ts'];

const referencesOf = (file) =>
  [...fs.readFileSync(file, 'utf8').matchAll(/(?:from|import)\s*\(?\s*['"](\.[^'"]*)['"]/g)].map(
    ([, reference]) => path.resolve(path.dirname(file), reference)
  );

const declarationOf = (reference) => {
  const found = [`${reference}.d.ts`, path.join(reference, 'index.d.ts')].find((file) =>
    fs.existsSync(file)
  );
  if (!found)
    throw new Error(`dist/types has no declaration of ${path.relative(TYPES, reference)}`);
  return found;
};

const reachable = new Set();
const waiting = ENTRIES.map((entry) => path.join(TYPES, entry));
for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
  if (reachable.has(file)) continue;
  reachable.add(file);
  waiting.push(...referencesOf(file).map(declarationOf));
}

/** @returns whether the folder is empty now */
const prune = (folder) => {
  let isEmpty = true;
  for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
    const file = path.join(folder, entry.name);
    const goes = entry.isDirectory() ? prune(file) : !reachable.has(file);
    if (goes) fs.rmSync(file, { recursive: true });
    else isEmpty = false;
  }
  return isEmpty;
};
prune(TYPES);

/** Strapi requires the server half; who imports it gets the same module, not a second one. */
fs.writeFileSync(
  path.join(DIST, 'server/index.mjs'),
  `import plugin from './index.js';
export * from './index.js';
export default plugin.default;
`
);

/** Bundlers, Strapi's among them, import the admin half; Node from 20.19 on can require a module, too. */
const admin = path.join(DIST, 'admin');
for (const name of fs.readdirSync(admin)) {
  if (name.endsWith('.js')) fs.rmSync(path.join(admin, name));
}
fs.writeFileSync(
  path.join(admin, 'index.js'),
  `'use strict';

module.exports = require('./index.mjs');
`
);

/** Each thread loads one file alone, and of the plugin only what it needs. */
buildSync({
  entryPoints: ['webhooks/sending/thread.ts', 'database/checkpoint-thread.ts'].map((name) =>
    path.join(ROOT, 'server/src', name)
  ),
  entryNames: '[name]',
  outdir: path.join(DIST, 'server'),
  bundle: true,
  packages: 'external',
  platform: 'node',
  target: 'node20',
  minify: true,
});
