import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { readDocument, ROOT } from '../unit/docs/support/markdown';

/** ARCHITECTURE.md leads a reader along both ways: it has to name each file that runs on them. */

const text = readDocument('ARCHITECTURE.md');
const section = (title: string): string => text.split(`### ${title}\n`)[1]?.split(/^##/m)[0] ?? '';
const named = (title: string): Set<string> =>
  new Set([...section(title).matchAll(/`((?:[\w-]+\/)+[\w-]+\.ts)`/g)].map(([, file]) => file!));

it('names each file that a contact and a sale pass through', async () => {
  const { stdout } = await promisify(execFile)('node', ['scripts/ways.mjs', '--json'], {
    cwd: ROOT,
    timeout: 170_000,
  });
  const ways = JSON.parse(stdout.trim().split('\n').at(-1)!) as {
    contact: string[];
    sale: string[];
  };
  expect(ways.contact.length).toBeGreaterThan(10);
  expect(ways.sale.length).toBeGreaterThan(10);
  const missing = (title: string, files: string[]) => {
    const known = named(title);
    return files.filter((file) => !known.has(file));
  };
  expect(missing('From a contact to its signed post', ways.contact)).toEqual([]);
  expect(missing('From a sale to its level', ways.sale)).toEqual([]);
}, 180_000);
