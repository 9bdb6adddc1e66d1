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
  it('takes each action at a major version', () => {
    const used = [...text.matchAll(/uses: (\S+)/g)].map(([, action]) => action);
    expect(used.length).toBeGreaterThan(0);
    expect(used.filter((action) => !/^actions\/[\w-]+@v\d+$/.test(action!))).toEqual([]);
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
    expect(jobs.filter((job) => !/^ {4}timeout-minutes: \d+$/m.test(job))).toEqual([]);
  });

  it('runs scripts that package.json has', () => {
    const run = [...text.matchAll(/npm run (?:--silent )?([\w:]+)/g)].map(([, name]) => name);
    expect(run.filter((name) => !(name! in scripts))).toEqual([]);
  });
});

it('who publishes runs no code of the repository or of a dependency', () => {
  const release = workflows.find(({ name }) => name === 'release.yml')?.text ?? '';
  const publish = jobsOf(release).find((job) => job.includes('npm publish')) ?? '';
  expect(publish).toContain('id-token: write');
  expect(publish).toContain('--provenance --access public');
  expect(publish).not.toMatch(/checkout|npm (?:ci|install|run)|npx|node /);
});

it.each(['README.md', 'CONTRIBUTING.md', '.changeset/README.md'])(
  '%s names npm scripts that there are',
  (document) => {
    const named = [...readDocument(document).matchAll(/\bnpm run ([\w:]+)/g)].map(([, one]) => one);
    // A site's own, as Strapi makes it.
    const known = { ...scripts, ...(document === 'README.md' && { develop: 'strapi develop' }) };
    expect(named.filter((name) => !(name! in known))).toEqual([]);
  }
);
