// Makes the README's links absolute while the package is packed, and relative again afterwards.
//
//   node scripts/pack-readme.mjs             prepack
//   node scripts/pack-readme.mjs --restore   postpack
import fs from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { ROOT } from './lib/paths.mjs';
import { withAbsoluteLinks } from './lib/readme-links.mjs';

const README = path.join(ROOT, 'README.md');
const KEPT = path.join(ROOT, '.tmp', 'README.md');

const restore = () => {
  if (fs.existsSync(KEPT)) fs.renameSync(KEPT, README);
};

const { values } = parseArgs({ options: { restore: { type: 'boolean' } } });
// Packing may have been interrupted before.
restore();
if (!values.restore) {
  const { repository } = JSON.parse(fs.readFileSync(path.join(ROOT, 'package.json'), 'utf8'));
  const address = repository.url.replace(/^git\+/, '').replace(/\.git$/, '');
  fs.mkdirSync(path.dirname(KEPT), { recursive: true });
  fs.copyFileSync(README, KEPT);
  fs.writeFileSync(README, withAbsoluteLinks(fs.readFileSync(README, 'utf8'), address));
}
