import fs from 'node:fs';
import path from 'node:path';
import { readDocument, ROOT } from '../docs/support/markdown';

/** What `.github/workflows` runs, and with which rights. */

const FOLDER = '.github/workflows';
const workflows = fs
  .readdirSync(path.join(ROOT, FOLDER))
  .map((name) => ({ name, text: readDocument(path.join(FOLDER, name)) }));
const { scripts } = JSON.parse(readDocument('package.json')) as { scripts: object };

/** The jobs of a workflow, each as its text. */
const jobsOf = (text: string): string[] =>
  text
    .slice(text.search(/^jobs:$/m))
    .split(/^(?= {2}[\w-]+:$)/m)
    .slice(1);

describe.each(workflows)('$name', ({ text }) => {
  it('takes each action by its commit, and says which version that is', () => {
    const used = [...text.matchAll(/uses: (.+)/g)]
      .map(([, action]) => action!)
      .filter((action) => !action.startsWith('./'));
    expect(used.length).toBeGreaterThan(0);
    const pinned = /^actions\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/;
    expect(used.filter((action) => !pinned.test(action))).toEqual([]);
  });

  it('begins with the right to read the repository and no other', () => {
    expect(text).toMatch(/^permissions:\n {2}contents: read\n\n/m);
  });

  it('has a group in which runs replace each other or wait', () => {
    expect(text).toMatch(/^concurrency:\n {2}group: /m);
  });

  it('has jobs that end', () => {
    const jobs = jobsOf(text);
    expect(jobs.length).toBeGreaterThan(0);
    // A workflow that is called has its own.
    const own = jobs.filter((job) => !/^ {4}uses: \.\//m.test(job));
    expect(own.filter((job) => !/^ {4}timeout-minutes: \d+$/m.test(job))).toEqual([]);
  });

  it('runs scripts that package.json has', () => {
    const run = [...text.matchAll(/npm run (?:--silent )?([\w:]+)/g)].map(([, name]) => name);
    expect(run.filter((name) => !(name! in scripts))).toEqual([]);
  });
});

describe('who publishes', () => {
  const release = workflows.find(({ name }) => name === 'release.yml')?.text ?? '';
  const publish = jobsOf(release).find((job) => job.includes('npm publish')) ?? '';

  it('runs no code of the repository or of a dependency', () => {
    expect(publish).toContain('id-token: write');
    expect(publish).toContain('--provenance --access public');
    expect(publish).not.toMatch(/checkout|npm (?:ci|install|run)|npx|node /);
  });

  it('proves who it is, and holds no token', () => {
    expect(workflows.filter(({ text }) => /secrets\.|NODE_AUTH_TOKEN/.test(text))).toEqual([]);
  });

  it('waits for everything that CI runs', () => {
    expect(publish).toMatch(/^ {4}needs: \[full, package\]$/m);
    expect(release).toMatch(/^ {2}full:\n.*\n {4}uses: \.\/\.github\/workflows\/ci\.yml$/m);
    const ci = workflows.find(({ name }) => name === 'ci.yml')?.text ?? '';
    expect(ci).toMatch(/^ {2}workflow_call:$/m);
    expect(ci).toMatch(/^ {6}- run: \.ci\/run$/m);
  });
});

it.each([
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  '.changeset/README.md',
  'playground/README.md',
  'tests/support/README.md',
])('%s names npm scripts that there are', (document) => {
  const named = [...readDocument(document).matchAll(/\bnpm run ([\w:]+)/g)].map(([, one]) => one);
  // A site's own, as Strapi makes it.
  const known = { ...scripts, ...(document === 'README.md' && { develop: 'strapi develop' }) };
  expect(named.filter((name) => !(name! in known))).toEqual([]);
});
