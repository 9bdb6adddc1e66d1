// node scripts/build-till-client.mjs [--check]
//
// Makes till-client/index.js (CommonJS, Node) and till-client/browser.mjs (one module that a page
// can load as it is) of till-client/src, and till-client/verify.mjs of till-client/verify. They are in
// the repository, so that a clone needs no build. With --check it writes nothing and fails where they
// are stale.
import { minifySync } from '@swc/core';
import fs from 'node:fs';
import path from 'node:path';
import { format, resolveConfig } from 'prettier';
import { rollup } from 'rollup';
import { ROOT } from './lib/paths.mjs';

const FOLDER = path.join(ROOT, 'till-client');
// Comments stay in the sources, which are not in the package: that is held to 20,000 bytes.
const noteOf = (from) => `Made of ${path.dirname(from)}/ by scripts/build-till-client.mjs.`;

const CLIENT = path.join(FOLDER, 'index.js');
const TARGETS = [
  { from: 'src/node.mjs', to: 'index.js', output: { format: 'cjs', esModule: false } },
  { from: 'src/browser.mjs', to: 'browser.mjs', output: { format: 'es' } },
  {
    from: 'verify/index.mjs',
    to: 'verify.mjs',
    output: { format: 'es', paths: { [CLIENT]: './index.js' } },
  },
];

const build = async ({ from, to, output }) => {
  const bundle = await rollup({
    input: path.join(FOLDER, from),
    external: [/^node:/, CLIENT],
    onwarn: ({ message }) => {
      throw new Error(message);
    },
  });
  const { code: bundled } = (await bundle.generate({ ...output, exports: 'named' })).output[0];
  await bundle.close();
  const { code: bare } = minifySync(bundled, {
    compress: false,
    mangle: false,
    module: output.format === 'es',
    format: { comments: false },
  });
  const code = `// ${noteOf(from)}\n${bare}`;
  const file = path.join(FOLDER, to);
  return [file, await format(code, { ...(await resolveConfig(file)), filepath: file })];
};

const outputs = await Promise.all(TARGETS.map(build));

if (process.argv.includes('--check')) {
  const stale = outputs.filter(
    ([file, text]) => !fs.existsSync(file) || fs.readFileSync(file, 'utf8') !== text
  );
  for (const [file] of stale) console.error(`${path.relative(ROOT, file)} is stale`);
  if (stale.length > 0) {
    console.error('Run: node scripts/build-till-client.mjs');
    process.exitCode = 1;
  }
} else {
  for (const [file, text] of outputs) {
    fs.writeFileSync(file, text);
    console.log(path.relative(ROOT, file));
  }
}
