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
  'playground/README.md',
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
const REPOSITORY = (
  JSON.parse(fs.readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as { homepage: string }
).homepage.replace(/#readme$/, '');

/** What of the repository a link names, if it does. */
const insideOf = (link: string): string | undefined =>
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
      const inside = insideOf(link);
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

describe('README.md', () => {
  it('has links that work in a checkout', () => {
    const own = links(readDocument('README.md')).filter((target) => target.startsWith(REPOSITORY));
    expect(own.filter((target) => insideOf(target) !== undefined)).toEqual([]);
  });

  it('has links and pictures that work from npm’s page once it is packed', async () => {
    const { withAbsoluteLinks } = (await import(
      path.join(ROOT, 'scripts/lib/readme-links.mjs')
    )) as { withAbsoluteLinks(text: string, repository: string): string };
    const targets = links(withAbsoluteLinks(readDocument('README.md'), REPOSITORY));
    expect(targets.filter((target) => !/^(#|https:)/.test(target))).toEqual([]);
    const own = targets.filter((target) => target.startsWith(`${REPOSITORY}/`));
    expect(own.length).toBeGreaterThan(10);
    expect(own.filter((target) => !insideOf(target))).toEqual([]);
    const pictures = targets.filter((target) => target.endsWith('.png'));
    expect(pictures.length).toBeGreaterThan(0);
    expect(pictures.every((target) => target.includes('/raw/main/docs/screens/'))).toBe(true);
  });
});
