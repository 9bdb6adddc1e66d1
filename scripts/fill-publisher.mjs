// Fills in who publishes the package, wherever it stands: package.json, the till client's, the README's
// links and pictures.
//
//   node scripts/fill-publisher.mjs --repository https://github.com/acme/switchboard --author "Acme <dev@acme.example>"
//   node scripts/fill-publisher.mjs --check     ends with 1 while a placeholder is left (prepublishOnly)
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { ROOT } from './lib/paths.mjs';
import { authorOf, filledIn, repositoryOf, withPlaceholder } from './lib/publisher.mjs';

/** Scripts and their tests name the placeholder to find it. */
const isLeftAlone = (file) => /^(?:scripts|tests)\//.test(file);
const isText = (file) => /\.(?:md|json|mjs|js|ts|svg|yml|yaml)$/.test(file);

const readTexts = () => {
  const output = execFileSync('git', ['ls-files', '-z'], { cwd: ROOT, encoding: 'utf8' });
  const files = output.split('\0').filter((file) => isText(file) && !isLeftAlone(file));
  return new Map(
    files
      .filter((file) => fs.existsSync(path.join(ROOT, file)))
      .map((file) => [file, fs.readFileSync(path.join(ROOT, file), 'utf8')])
  );
};

const check = () => {
  const left = withPlaceholder(readTexts());
  if (left.length === 0) return;
  console.error(`The publisher is not filled in: ${left.join(', ')}`);
  console.error('See node scripts/fill-publisher.mjs, and .changeset/README.md.');
  process.exitCode = 1;
};

const fill = (publisher) => {
  const texts = readTexts();
  for (const file of withPlaceholder(texts)) {
    fs.writeFileSync(path.join(ROOT, file), filledIn(texts.get(file), publisher));
    console.log(file);
  }
  check();
};

const { values } = parseArgs({
  options: {
    check: { type: 'boolean' },
    repository: { type: 'string' },
    author: { type: 'string' },
  },
});
try {
  if (values.check) check();
  else fill({ repository: repositoryOf(values.repository), author: authorOf(values.author) });
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
