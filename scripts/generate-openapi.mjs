// node scripts/generate-openapi.mjs [--check]
//
// Writes docs/openapi.json from the routes and schemas in the sources. With --check it writes
// nothing and fails where it is stale.
import fs from 'node:fs';
import path from 'node:path';
import { format, resolveConfig } from 'prettier';
import { withSources } from './lib/compiled-sources.mjs';
import { openapi } from './lib/openapi/document.mjs';
import { ROOT } from './lib/paths.mjs';

const FILE = path.join(ROOT, 'docs/openapi.json');
const { version } = JSON.parse(fs.readFileSync(path.join(ROOT, 'package.json'), 'utf8'));

const document = await withSources((load) => openapi({ load, version }));
const text = await format(JSON.stringify(document), {
  ...(await resolveConfig(FILE)),
  filepath: FILE,
});

if (process.argv.includes('--check')) {
  if (!fs.existsSync(FILE) || fs.readFileSync(FILE, 'utf8') !== text) {
    console.error('docs/openapi.json is stale\nRun: node scripts/generate-openapi.mjs');
    process.exitCode = 1;
  }
} else {
  fs.writeFileSync(FILE, text);
  console.log(path.relative(ROOT, FILE));
}
