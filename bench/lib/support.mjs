import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { transformSync } from '@swc/core';

const require = createRequire(import.meta.url);
const SUPPORT = path.resolve(import.meta.dirname, '../../tests/support');

// The tests' own way of booting a site is TypeScript, which Node 20 does not read.
require.extensions['.ts'] = (module, filename) => {
  const { code } = transformSync(fs.readFileSync(filename, 'utf8'), {
    filename,
    swcrc: false,
    configFile: false,
    jsc: { parser: { syntax: 'typescript' }, target: 'es2022' },
    module: { type: 'commonjs', ignoreDynamic: true },
  });
  module._compile(code, filename);
};

/** A module of tests/support: `support('site').startSite()`. */
export const support = (name) => require(path.join(SUPPORT, `${name}.ts`));
