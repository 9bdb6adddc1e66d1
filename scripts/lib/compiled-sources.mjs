import { transformSync } from '@swc/core';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { ROOT, SCRATCH } from './paths.mjs';

const filesBelow = (folder) =>
  fs.readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const full = path.join(folder, entry.name);
    return entry.isDirectory() ? filesBelow(full) : [full];
  });

/** The sources as CommonJS, in a folder below the root's node_modules. */
const compile = () => {
  const target = path.join(SCRATCH, `compiled-sources.${process.pid}`);
  for (const folder of ['server/src', 'shared']) {
    for (const file of filesBelow(path.join(ROOT, folder))) {
      const name = path.relative(ROOT, file);
      const isSource = name.endsWith('.ts');
      const output = path.join(target, isSource ? name.replace(/\.ts$/, '.js') : name);
      fs.mkdirSync(path.dirname(output), { recursive: true });
      const text = fs.readFileSync(file, 'utf8');
      const code = isSource
        ? transformSync(text, {
            swcrc: false,
            configFile: false,
            filename: file,
            jsc: { parser: { syntax: 'typescript' }, target: 'es2022' },
            module: { type: 'commonjs', ignoreDynamic: true },
          }).code
        : text;
      fs.writeFileSync(output, code);
    }
  }
  return target;
};

/**
 * Calls `work` with a `require` of the server's sources, by paths such as `./server/src/parts.js`.
 * @template T
 * @param {(load: NodeRequire) => Promise<T> | T} work
 * @returns {Promise<T>}
 */
export const withSources = async (work) => {
  const target = compile();
  try {
    return await work(createRequire(path.join(target, 'load.js')));
  } finally {
    fs.rmSync(target, { recursive: true, force: true });
  }
};
