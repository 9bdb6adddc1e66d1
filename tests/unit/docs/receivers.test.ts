import fs from 'node:fs';
import path from 'node:path';
import { SAMPLES } from '../../support/receiver-samples';
import { readDocument, ROOT } from './support/markdown';

/** What `examples/receivers` says of itself; `tests/samples` runs them. */

describe('receivers.json', () => {
  it('has every folder, and no other', () => {
    const folders = fs
      .readdirSync(path.join(ROOT, 'examples/receivers'), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
    expect(SAMPLES.map(({ folder }) => folder).sort()).toEqual(folders.sort());
  });

  it.each(SAMPLES)('says what $folder needs, as lists of words', (sample) => {
    expect(sample).toEqual({
      folder: expect.stringMatching(/^[a-z-]+$/),
      framework: expect.stringMatching(/\S/),
      runtime: expect.stringMatching(/\S/),
      install: expect.any(Array),
      run: expect.any(Array),
      path: expect.stringMatching(/^\//),
    });
    expect(sample.run.length).toBeGreaterThan(0);
    expect([...sample.install, ...sample.run].filter((word) => !/^\S+$/.test(word))).toEqual([]);
  });

  it.each(['examples/receivers/README.md', 'docs/receivers.md'])('%s lists each', (document) => {
    const text = readDocument(document);
    expect(SAMPLES.filter(({ folder }) => !text.includes(`\`${folder}\``))).toEqual([]);
  });

  it('has exact versions of what npm installs', () => {
    const loose = SAMPLES.flatMap(({ folder }) => {
      const file = `examples/receivers/${folder}/package.json`;
      if (!fs.existsSync(path.join(ROOT, file))) return [];
      const { dependencies } = JSON.parse(readDocument(file)) as { dependencies: object };
      return Object.entries(dependencies).filter(([, range]) => !/^\d+\.\d+\.\d+$/.test(range));
    });
    expect(loose).toEqual([]);
  });
});
