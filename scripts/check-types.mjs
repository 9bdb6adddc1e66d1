// Compiles a consumer of the package's types, as it is packed from the built dist, under each module
// resolution. Usage: npm run build && node scripts/check-types.mjs
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { checkTypes } from './lib/check-types.mjs';
import { ROOT, SCRATCH } from './lib/paths.mjs';

// Below the repository, so that the host's types are found in its node_modules.
const project = path.join(SCRATCH, 'types-project');
const target = path.join(project, 'node_modules/strapi-plugin-switchboard');
fs.rmSync(project, { recursive: true, force: true });
fs.mkdirSync(target, { recursive: true });
const output = execFileSync(
  'npm',
  ['pack', '--ignore-scripts', '--json', '--pack-destination', project],
  { cwd: ROOT, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 }
);
const { filename } = JSON.parse(output.slice(output.indexOf('[')))[0];
execFileSync('tar', ['-xzf', path.join(project, filename), '-C', target, '--strip-components=1']);
const faults = checkTypes(project);
for (const fault of faults) console.error(fault);
fs.rmSync(project, { recursive: true, force: true });
console.log(`the types: ${faults.length === 0 ? 'all is well' : `${faults.length} faults`}`);
process.exit(faults.length === 0 ? 0 : 1);
