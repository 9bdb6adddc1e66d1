import fs from 'node:fs';
import path from 'node:path';
import { readDocument, ROOT } from './support/markdown';

/** `docs/decisions` keeps to what its README asks for. */

const FOLDER = 'docs/decisions';
const names = fs
  .readdirSync(path.join(ROOT, FOLDER))
  .filter((name) => name !== 'README.md')
  .sort();
const index = readDocument(`${FOLDER}/README.md`);

it('records are numbered without a gap', () => {
  expect(names.length).toBeGreaterThan(9);
  expect(names.map((name) => Number(/^(\d{4})-[a-z0-9-]+\.md$/.exec(name)?.[1]))).toEqual(
    names.map((_name, at) => at + 1)
  );
});

describe.each(names)('%s', (name) => {
  const text = readDocument(`${FOLDER}/${name}`);

  it('has its parts, in order', () => {
    expect(text).toMatch(/^# \d{4}\. .+\n\n- Status: .+\n- Date: \d{4}-\d\d-\d\d\n- Code: .+\n/);
    expect(text.startsWith(`# ${name.slice(0, 4)}. `)).toBe(true);
    expect(text.match(/^## .+$/gm)).toEqual([
      '## Context',
      '## Decision',
      '## Consequences',
      '## Alternatives',
    ]);
    expect(text.split('\n').length).toBeLessThanOrEqual(60);
  });

  it('is in the list with its title and date', () => {
    const [, title, date] = /^# (.+)\n[\s\S]*^- Date: (\S+)$/m.exec(text) ?? [];
    const row = index.split('\n').find((line) => line.includes(`](${name})`));
    expect(row).toContain(`[${title}](${name})`);
    expect(row).toContain(`| ${date} |`);
  });

  it('names files that there are', () => {
    const [, code = ''] = /^- Code: (.+)$/m.exec(text) ?? [];
    const files = [...code.matchAll(/`([\w./-]+\/[\w./-]*)`/g)].map(([, file]) => file!);
    expect(files.length).toBeGreaterThan(0);
    expect(files.filter((file) => !fs.existsSync(path.join(ROOT, file)))).toEqual([]);
  });
});
