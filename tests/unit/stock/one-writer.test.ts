import fs from 'node:fs';
import path from 'node:path';
import { filesBelow } from '../../support/plugin-build';
import { ROOT } from '../../support/paths';

/** Statements that begin with the table of levels and write it, by what they write. */
const writesIn = (source: string): string[] =>
  [...source.matchAll(/LEVELS_TABLE\)([^;]*?)\.(?:insert|update|delete|del)\(([^;]*);/g)].map(
    ([, , written = '']) => written.replace(/\s+/g, ' ').trim()
  );

describe('levels', () => {
  it('are written by the ledger alone, and by what marks for it which counts were accepted', () => {
    const writers = filesBelow(path.join(ROOT, 'server/src')).flatMap((file) =>
      writesIn(fs.readFileSync(file, 'utf8')).map((written) => ({
        file: path.relative(path.join(ROOT, 'server/src'), file),
        written,
      }))
    );
    const files = new Set(writers.map(({ file }) => file));
    expect([...files].sort()).toEqual(['stock/counts.ts', 'stock/ledger.ts']);
    const marks = writers.filter(({ file }) => file === 'stock/counts.ts');
    expect(marks.every(({ written }) => written.startsWith('{ accepted_count_at:'))).toBe(true);
  });
});
