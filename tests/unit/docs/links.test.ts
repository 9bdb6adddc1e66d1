import fs from 'node:fs';
import path from 'node:path';
import { anchors, links, localLinks, readDocument, ROOT } from './support/markdown';

const documents = [
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'SECURITY.md',
  '.changeset/README.md',
  'examples/compose/README.md',
  'examples/grafana/README.md',
  'examples/middleware/README.md',
  'examples/receivers/README.md',
  'till-client/README.md',
  'tests/support/README.md',
  ...['docs', 'docs/decisions'].flatMap((folder) =>
    fs
      .readdirSync(path.join(ROOT, folder))
      .filter((name) => name.endsWith('.md'))
      .map((name) => `${folder}/${name}`)
  ),
];

/** The package's own address, which a publisher fills in. */
const REPOSITORY =
  /\]\((https:\/\/[^\s)]+?)\/blob\/main\//.exec(readDocument('README.md'))?.[1] ?? '';

/** The file, and the section, that a link to the repository names; undefined where it names none. */
const inRepository = (link: string): string | undefined =>
  link.startsWith(`${REPOSITORY}/`)
    ? /^(?:blob|raw|tree)\/main\/(.+)$/.exec(link.slice(REPOSITORY.length + 1))?.[1]
    : undefined;

const leadsNowhere = (target: string, anchor: string | undefined): boolean =>
  !fs.existsSync(path.join(ROOT, target)) ||
  (anchor !== undefined && !anchors(readDocument(target)).has(anchor));

describe('links', () => {
  it.each(documents)('of %s lead somewhere', (document) => {
    const broken = localLinks(readDocument(document)).filter((link) => {
      const [file = '', anchor] = link.split('#');
      const target = file === '' ? document : path.join(path.dirname(document), file);
      return leadsNowhere(target, anchor);
    });
    expect(broken).toEqual([]);
  });

  it.each(documents)('of %s to the repository name what is in it', (document) => {
    const broken = links(readDocument(document)).filter((link) => {
      const inside = inRepository(link);
      if (inside === undefined) return false;
      const [file = '', anchor] = inside.split('#');
      return leadsNowhere(file, anchor);
    });
    expect(broken).toEqual([]);
  });

  it.each(documents)('of %s to other sites are addresses', (document) => {
    const others = links(readDocument(document)).filter((link) => /^[a-z]+:/.test(link));
    expect(others.filter((link) => !URL.canParse(link) || !/^https?:\/\//.test(link))).toEqual([]);
  });
});

describe('README.md, which is npm\u2019s page as well', () => {
  const targets = links(readDocument('README.md'));

  it('has no link that leads nowhere there', () => {
    expect(targets.filter((target) => !/^(#|https:)/.test(target))).toEqual([]);
  });

  it('names one repository, in one way', () => {
    const inside = targets.filter((target) => /\/(?:blob|raw|tree)\/main\//.test(target));
    expect(inside.length).toBeGreaterThan(10);
    expect(inside.filter((target) => inRepository(target) === undefined)).toEqual([]);
  });

  it('has a picture', () => {
    const pictures = targets.filter((target) => target.endsWith('.png'));
    expect(pictures.length).toBeGreaterThan(0);
    expect(pictures.every((target) => target.includes('/raw/main/docs/screens/'))).toBe(true);
  });
});
