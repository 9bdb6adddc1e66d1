import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { anchors, readDocument, ROOT } from './support/markdown';

/** Where comments send a reader: each place has to be there. */

const FOLDERS = [
  'server',
  'shared',
  'admin',
  'till-client',
  'bin',
  'scripts',
  'bench',
  'playground',
  'examples',
  'tests',
];
const GENERATED = /^playground\/(types|build|dist)\//;

const sources = execFileSync(
  'git',
  ['ls-files', '--cached', '--others', '--exclude-standard', ...FOLDERS],
  {
    cwd: ROOT,
    encoding: 'utf8',
  }
)
  .split('\n')
  .filter((file) => /\.(tsx?|m?js)$/.test(file) && !GENERATED.test(file))
  .filter((file) => fs.existsSync(path.join(ROOT, file)));

/** The comments of a source, each on one line. */
const commentsIn = (file: string): string[] =>
  (readDocument(file).match(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/ .*(?:\n\s*\/\/ .*)*/g) ?? []).map(
    (comment) => comment.replace(/\s*\n\s*(?:\*(?!\/)|\/\/)?\s*/g, ' ')
  );

const comments = sources.flatMap((file) => commentsIn(file).map((comment) => ({ file, comment })));

const references = comments.flatMap(({ file, comment }) =>
  [...comment.matchAll(/(?<![\w/.])((?:[\w-]+\/)*[\w-]+\.md)(?:#([\w-]+))?/g)].map(
    ([, document = '', anchor]) => ({ file, document, anchor })
  )
);

const find = (file: string, document: string): string | undefined =>
  [document, path.join(path.dirname(file), document)].find((one) =>
    fs.existsSync(path.join(ROOT, one))
  );

it('comments refer to both contracts', () => {
  const cited = new Set(references.map(({ document }) => document));
  expect([...cited]).toEqual(
    expect.arrayContaining(['docs/contract-webhooks.md', 'docs/contract-pos.md'])
  );
});

it('every document and section that a comment names is there', () => {
  const lost = references.filter(({ file, document, anchor }) => {
    const found = find(file, document);
    return !found || (anchor !== undefined && !anchors(readDocument(found)).has(anchor));
  });
  expect(lost).toEqual([]);
});

it('a section is named after #, where the test above can see it', () => {
  const loose = comments.filter(({ comment }) =>
    /\.md,? (?:section|§)|\.md, [A-Z]\w+(?: \w+)*[,;.)]/.test(comment)
  );
  expect(loose).toEqual([]);
});

it('no comment cites a specification that a reader has not got', () => {
  const cites = comments.filter(({ comment }) =>
    /\b(?:specifications? [12]\b|the specifications?\b|DESIGN\b)/i.test(comment)
  );
  // What this test itself says.
  expect(cites.filter(({ file }) => !file.endsWith('references.test.ts'))).toEqual([]);
});
