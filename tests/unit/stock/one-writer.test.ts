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
  it('are written by the ledger and what locks for it alone, but for their low marks', () => {
    const writers = filesBelow(path.join(ROOT, 'server/src')).flatMap((file) =>
      writesIn(fs.readFileSync(file, 'utf8')).map((written) => ({
        file: path.relative(path.join(ROOT, 'server/src'), file),
        written,
      }))
    );
    const files = new Set(writers.map(({ file }) => file));
    expect([...files].sort()).toEqual([
      'stock/ledger.ts',
      'stock/levels-service.ts',
      'stock/levels.ts',
    ]);
    const others = writers.filter(({ file }) => file === 'stock/levels-service.ts');
    expect(others.map(({ written }) => written)).toEqual(['{ low_at: lowAt })']);
  });
});
