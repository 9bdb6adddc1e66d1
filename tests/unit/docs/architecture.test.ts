import fs from 'node:fs';
import path from 'node:path';
import { codeBlocks, readDocument, ROOT } from './support/markdown';

/** ARCHITECTURE.md leads to files: they have to be there, and every folder has to be named. */

const SERVER = path.join(ROOT, 'server/src');
const text = readDocument('ARCHITECTURE.md');

/** A path as the page writes it: below `server/src/`, or from the repository's root. */
const exists = (name: string): boolean =>
  [SERVER, ROOT].some((base) => fs.existsSync(path.join(base, name)));

const isFolder = (file: string): boolean => fs.statSync(path.join(SERVER, file)).isDirectory();

describe('ARCHITECTURE.md', () => {
  it('names files and folders that there are', () => {
    const named = [...text.matchAll(/`((?:[\w.-]+\/)+[\w.-]*)`/g)].map(([, name]) => name!);
    expect(named.length).toBeGreaterThan(80);
    expect(named.filter((name) => !exists(name))).toEqual([]);
  });

  it('has a line for each folder of the server', () => {
    const layout =
      codeBlocks(text).find(({ code }) => code.startsWith('server/src/\n'))?.code ?? '';
    const lines = [...layout.matchAll(/^ {2}([\w.-]+\/?) /gm)].map(([, name]) => name!);
    expect(lines.filter((name) => !fs.existsSync(path.join(SERVER, name)))).toEqual([]);
    const folders = fs.readdirSync(SERVER).filter(isFolder);
    expect(lines.filter((name) => name.endsWith('/')).sort()).toEqual(
      folders.map((name) => `${name}/`).sort()
    );
  });
});

it.each([
  ['ARCHITECTURE.md', 20_000],
  ['CONTRIBUTING.md', 10_000],
])('%s can be read in one go: at most %i bytes', (document, most) => {
  expect(Buffer.byteLength(readDocument(document))).toBeLessThanOrEqual(most);
});
