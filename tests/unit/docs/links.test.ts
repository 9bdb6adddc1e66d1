import fs from 'node:fs';
import path from 'node:path';
import { anchors, localLinks, readDocument, ROOT } from './support/markdown';

const documents = [
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'SECURITY.md',
  '.changeset/README.md',
  'examples/compose/README.md',
  'examples/receivers/README.md',
  'tests/support/README.md',
  ...['docs', 'docs/decisions'].flatMap((folder) =>
    fs
      .readdirSync(path.join(ROOT, folder))
      .filter((name) => name.endsWith('.md'))
      .map((name) => `${folder}/${name}`)
  ),
];

describe('links', () => {
  it.each(documents)('of %s lead somewhere', (document) => {
    const broken = localLinks(readDocument(document)).filter((link) => {
      const [file = '', anchor] = link.split('#');
      const target = file === '' ? document : path.join(path.dirname(document), file);
      if (!fs.existsSync(path.join(ROOT, target))) return true;
      return anchor !== undefined && !anchors(readDocument(target)).has(anchor);
    });
    expect(broken).toEqual([]);
  });
});
