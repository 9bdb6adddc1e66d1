import fs from 'node:fs';
import path from 'node:path';
import { ROOT, readDocument } from '../docs/support/markdown';

it('only files that are there are excused from a rule', () => {
  const excused = JSON.parse(readDocument('eslint-suppressions.json')) as object;
  const gone = Object.keys(excused).filter((file) => !fs.existsSync(path.join(ROOT, file)));
  expect(gone).toEqual([]);
});
