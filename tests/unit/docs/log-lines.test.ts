import fs from 'node:fs';
import path from 'node:path';
import { readDocument, ROOT } from './support/markdown';

/** docs/logs.md tells by what the plugin's lines are found in a site's log. */

const folder = path.join(ROOT, 'server/src');
const calls = fs
  .readdirSync(folder, { recursive: true })
  .map(String)
  .filter((name) => name.endsWith('.ts'))
  .flatMap((name) => {
    const source = fs.readFileSync(path.join(folder, name), 'utf8');
    return [
      ...source.matchAll(
        /\b(?:log\s*\.(?:error|warn|info|debug|http)|logFault)\(\s*(?!what: string)(.{0,40})/g
      ),
    ].map(([, start = '']) => ({ name, start }));
  });

it('finds the lines', () => expect(calls.length).toBeGreaterThan(15));

it('each begins with the word that docs/logs.md gives', () => {
  expect(readDocument('docs/logs.md')).toContain('begins with `switchboard`');
  // What is handed on: the name of a worker or of a kind of work, which begins with it, and what `logFault` was given.
  expect(
    calls.filter(
      ({ start }) =>
        !/^[`'"](?:switchboard|\$\{(?:(?:this\.|options\.)?(?:name|kind)|what)\})/.test(start)
    )
  ).toEqual([]);
});
